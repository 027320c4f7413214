//! Sample pages of threads, versions and comparisons.

use super::sample::{SampleReview, line, moment, shell};
use crate::web::pages::inbox::list_view::{ActiveMark, InboxTab};
use crate::web::pages::log::browse_view::{EventFact, EventPage, LogEventRow, LogPage};
use crate::web::pages::log::insight_view::{
    Bar, Chart, ChartTable, InsightContent, InsightFigures, InsightGroupRow, InsightGroups, InsightPage, OutcomeRow,
};
use crate::web::pages::log::receipt_verifier_view::{
    CheckRow, GatewayFactRow, ReceiptCheckResult, ReceiptClaimRow, VerifierInputView, VerifierPage,
};
use crate::web::pages::shared::layout::{DigestText, TimestampView, Tone};
use crate::web::pages::shared::safe_text::{SafeJson, SafeText};
use crate::web::pages::shared::widgets::GateView;
use crate::web::pages::shared::widgets::RequesterView;
use crate::web::pages::threads::compare_view::ComparePage;
use crate::web::pages::threads::list_view::{FilterState, SelectOption, ThreadRow, ThreadsPage};
use crate::web::pages::threads::thread_view::ThreadStatusView;
use crate::web::pages::threads::version_view::{
    CompareLink, RollbackForm, VersionCheckRow, VersionEventRow, VersionPage,
};

fn ago() -> TimestampView {
    moment("2026-11-03T12:00:00.000Z", "3 Nov 2026, 12:00 UTC", "2 h ago")
}

pub fn threads() -> ThreadsPage {
    let row = |name: &str, status| ThreadRow {
        url: format!("/threads/{name}"),
        name: line(name),
        title: Some(line("Refund for order 8812")),
        flow: line("payments"),
        on_behalf_of: Some(line("Mira Novak")),
        status,
        version: 3,
        since: ago(),
    };
    ThreadsPage {
        shell: shell(2),
        flows: vec![SelectOption::new("", "All flows", ""), SelectOption::new("payments", "payments", "")],
        statuses: vec![
            SelectOption::new("", "Anything", "held"),
            SelectOption::new("held", "Waiting for approval", "held"),
        ],
        name: line(""),
        title: line("Refund"),
        filter: FilterState::Some,
        rows: vec![
            row("order-8812", ThreadStatusView::Held("/reviews/0192f0c1".to_owned())),
            row("order-8813", ThreadStatusView::Closed),
        ],
        looked: Some(1000),
        more_url: Some("/threads?after=0.order-8813".to_owned()),
        problem: None,
    }
}

pub fn threads_empty() -> ThreadsPage {
    let page = threads();
    ThreadsPage { filter: FilterState::None, rows: vec![], looked: None, more_url: None, title: line(""), ..page }
}

fn chart(id: &'static str) -> Chart {
    let bar = |x, mark| Bar { x, y: 500, height: 500, mark, words: "20 Nov: 2 waiting".to_owned() };
    Chart {
        id,
        title: "Waiting over time",
        told: "The most that waited at the end of a period: 2. Waiting now: 2.".to_owned(),
        width: 20,
        bars: vec![bar(1, None), bar(11, Some("M15 0V500M11 0H19".to_owned()))],
        top: "4".to_owned(),
        middle: "2".to_owned(),
        from: "20 Nov".to_owned(),
        to: "21 Nov".to_owned(),
        table: ChartTable {
            columns: ["Day (UTC)", "Opened", "Ended", "Waiting at the end"],
            rows: vec![["21 Nov", "1", "1", "2"].map(str::to_owned)],
        },
    }
}

pub fn insight() -> InsightPage {
    let row = |name| InsightGroupRow {
        name,
        opened: 3,
        approved: 1,
        denied: 1,
        undecided: 1,
        median: "4 min".to_owned(),
        p95: "1.5 h".to_owned(),
        bar: Some((120, 1_000)),
    };
    let groups =
        |name: &str| InsightGroups { rows: vec![row(Some(line(name))), row(None)], more: 2, longest: "1.5 h".into() };
    let tab = |words, mark| InboxTab { url: "/insight?span=7d".to_owned(), words, mark };
    InsightPage {
        shell: shell(2),
        spans: vec![tab("24 hours", ActiveMark::Off), tab("7 days", ActiveMark::On)],
        span: "7d",
        span_words: "the last 7 days",
        flows: vec![SelectOption::new("", "All flows", ""), SelectOption::new("payments", "payments", "")],
        counted_until: Some(ago()),
        behind: 3,
        since: Some(ago()),
        told: InsightContent::Figures(Box::new(InsightFigures {
            summary: vec![("Waiting now", "2".to_owned()), ("Median time to decision", "4 min".to_owned())],
            waiting: chart("waiting"),
            times: chart("times"),
            outcomes: vec![OutcomeRow { words: "Approved", count: 3, width: 1_000 }],
            by_flow: groups("payments"),
            by_reason: groups("payment.amount above 1000 requires approval"),
        })),
    }
}

pub fn insight_empty() -> InsightPage {
    InsightPage { told: InsightContent::Nothing, counted_until: None, behind: 0, since: None, ..insight() }
}

pub fn version() -> VersionPage {
    let page = SampleReview::rich().page();
    VersionPage {
        shell: shell(2),
        thread: line("order-8812"),
        title: Some(line("Refund for order 8812")),
        flow: line("payments"),
        version: 2,
        head: 3,
        step: "proposed by".to_owned(),
        node: Some(line("planner")),
        by: Some(RequesterView::Token { name: line("planner-agent"), owner: line("machines") }),
        proposed: ago(),
        committed: ago(),
        gate: GateView::Approved { review_url: "/reviews/0192f0c0".to_owned(), by: vec![line("dana"), line("sam")] },
        reasons: page.reasons,
        warnings: page.warnings,
        call: page.call,
        usage: page.usage,
        rationale: Some(SafeText::new("The customer asked.")),
        rows: page.rows,
        became: vec![VersionEventRow {
            tone: Tone::Good,
            words: line("database_writer has written, fence 1"),
            at: Some(ago()),
        }],
        checks: vec![VersionCheckRow {
            words: "the statement hashes to the digest",
            but: Some("The key is retired.".to_owned()),
        }],
        statement: line("{\"version\":2}"),
        digest: DigestText::new(format!("sha256:{}", "7c".repeat(32))),
        entry: line("eyJhbGciOiJFZERTQSJ9.e30.c2ln"),
        kid: line("kid-1"),
        rollback: Some(RollbackForm {
            action: "/threads/order-8812/versions/2/rollback".to_owned(),
            csrf: "csrf-1".to_owned(),
            head: format!("sha256:{}", "9e".repeat(32)),
            attempt: "7".to_owned(),
            nodes: vec![line("planner")],
        }),
        compare: vec![CompareLink {
            url: "/threads/order-8812/compare?from=2&to=3".to_owned(),
            words: "with the head".to_owned(),
        }],
    }
}

pub fn compare() -> ComparePage {
    ComparePage {
        shell: shell(2),
        thread: line("order-8812"),
        title: None,
        head: 9,
        from: 1,
        to: 8,
        rows: SampleReview::rich().page().rows,
        more: 3,
    }
}

pub fn verifier() -> VerifierPage {
    let check = |name, tone, outcome, code| CheckRow { name, tone, outcome, says: "as it should be", code };
    VerifierPage {
        shell: shell(2),
        csrf: "csrf-1".to_owned(),
        typed: VerifierInputView {
            receipt: SafeText::new("eyJ.e30.c2ln"),
            entry: SafeText::new(""),
            statement: SafeText::new(""),
        },
        problem: None,
        told: Some(ReceiptCheckResult {
            tone: Tone::Bad,
            conclusion: "Invalid: a writer must not accept it",
            checks: vec![
                check("form", Tone::Good, "passed", None),
                check("key", Tone::Bad, "failed", Some("unknown_key")),
                check("signature", Tone::Plain, "not reached", None),
            ],
            says: vec![ReceiptClaimRow { name: "Thread", value: line("order-8812") }],
            known: vec![GatewayFactRow {
                tone: Tone::Care,
                words: line("It issued none of that id"),
                at: Some(ago()),
                url: Some("/threads/order-8812/versions/2".to_owned()),
            }],
        }),
    }
}

fn event() -> LogEventRow {
    LogEventRow {
        url: "/log/0192f0c1".to_owned(),
        words: line("Vote on a review"),
        name: line("review.vote"),
        index: Some(812),
        flow: Some(line("payments")),
        thread: Some((line("order-8812"), "/threads/order-8812".to_owned())),
        who: vec![line("dana")],
        at: ago(),
    }
}

pub fn log() -> LogPage {
    LogPage {
        shell: shell(2),
        kinds: vec![SelectOption::new("", "All kinds", "review"), SelectOption::new("review", "Reviews", "review")],
        flows: vec![SelectOption::new("", "All flows", "")],
        thread: line(""),
        who: line("dana"),
        since: line(""),
        until: line("2026-11-03T14:32"),
        filter: FilterState::Some,
        problem: None,
        rows: vec![event(), LogEventRow { thread: None, flow: None, who: vec![], index: None, ..event() }],
        looked: Some(1000),
        more_url: Some("/log?below=12".to_owned()),
        download_url: Some("/log.jsonl".to_owned()),
    }
}

pub fn log_empty() -> LogPage {
    LogPage { rows: vec![], looked: None, more_url: None, filter: FilterState::None, ..log() }
}

pub fn one_event() -> EventPage {
    EventPage {
        shell: shell(2),
        row: event(),
        seq: Some(7),
        id: line("0192f0c1"),
        hash: Some(DigestText::new(format!("sha256:{}", "7c".repeat(32)))),
        previous: None,
        facts: vec![EventFact {
            name: line("reviewer"),
            value: SafeJson::new("\"0192f0c2\""),
            called: Some(line("dana")),
            url: Some("/reviews/0192f0c1".to_owned()),
        }],
    }
}
