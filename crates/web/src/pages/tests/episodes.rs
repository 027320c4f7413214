//! Sample pages of agent runs.

use askama::Template as _;

use super::sample::{line, moment, shell};
use crate::pages::episodes::episode_view::{
    EpisodeEventRow, EpisodeHeadView, EpisodePage, FileRow, ImportHeader, ImportSignerView, NamedValueRow, PlanHeader,
    PlanStepRow, StatusBadge, UnverifiedRow,
};
use crate::pages::episodes::imports_view::{ImportRow, ImportsPage};
use crate::pages::shared::layout::{TimestampView, Tone};
use crate::pages::shared::safe_text::{SafeJson, SafeText};

fn at(words: &str) -> TimestampView {
    moment("2026-11-03T12:00:00.000Z", "3 Nov 2026, 12:00 UTC", words)
}

fn step(description: &str, kind: &str, words: &'static str, tone: Tone) -> PlanStepRow {
    PlanStepRow { description: line(description), kind: line(kind), status: StatusBadge { words, tone } }
}

pub fn page() -> EpisodePage {
    let did = |what: &str, tone: Tone, review: Option<&str>| EpisodeEventRow {
        what: line(what),
        tone,
        who: None,
        review_url: review.map(str::to_owned),
        says: None,
        at: at("2 h ago"),
    };
    let said = |what: &str, says: &str| EpisodeEventRow {
        what: line(what),
        tone: Tone::Plain,
        who: Some(line("planner")),
        review_url: None,
        says: Some(SafeJson::new(says)),
        at: at("2 h ago"),
    };
    EpisodePage {
        shell: shell(2),
        thread: line("order-8812"),
        head: EpisodeHeadView::Own { thread_url: "/threads/order-8812".to_owned(), flow: line("payments") },
        task: line("Refund order 8812"),
        status: StatusBadge { words: "Done", tone: Tone::Good },
        summary: Some(SafeText::new("Refunded 40 EUR.")),
        begun: at("3 h ago"),
        plan: Some(PlanHeader { source: line("planner"), rationale: Some(SafeText::new("People have to be asked.")) }),
        steps: vec![
            step("Look the order up", "detect", "done", Tone::Good),
            step("Refund it", "act", "running", Tone::Care),
            step("Write to the customer", "act", "skipped", Tone::Plain),
        ],
        events: vec![
            did("Episode started", Tone::Plain, None),
            said("plan", "{\"rationale\":\"People have to be asked.\"}"),
            did("Proposal held for approval", Tone::Care, Some("/reviews/0192f0c1")),
            did("Proposal approved", Tone::Good, Some("/reviews/0192f0c1")),
            said("terminate", "{\"status\":\"ok\"}"),
        ],
        earlier: 12,
        outcomes: vec![NamedValueRow { name: line("steps_total"), value: SafeJson::new("3") }],
        files: vec![FileRow {
            name: line("state.json"),
            url: "/threads/order-8812/episode/state.json".to_owned(),
            words: "state computed from the events",
        }],
    }
}

/// Returns an episode without reports.
pub fn begun() -> EpisodePage {
    EpisodePage {
        status: StatusBadge { words: "Running", tone: Tone::Plain },
        summary: None,
        plan: None,
        steps: Vec::new(),
        events: Vec::new(),
        earlier: 0,
        outcomes: Vec::new(),
        ..page()
    }
}

pub fn imported(vouched: ImportSignerView) -> EpisodePage {
    let untold = UnverifiedRow {
        file: line("state.json"),
        about: Some(line("step-1")),
        words: "no event says the step's status",
    };
    let head = ImportHeader {
        episode: line("ep_01"),
        by: line("command-line"),
        at: at("1 h ago"),
        vouched,
        untold: vec![untold],
    };
    EpisodePage { head: EpisodeHeadView::Imported(Box::new(head)), ..page() }
}

pub fn imports() -> ImportsPage {
    let row = ImportRow {
        url: "/threads/imported-0192/episode".to_owned(),
        task: line("Refund order 8812"),
        episode: line("ep_01"),
        vouched: "not signed",
        status: StatusBadge { words: "Done", tone: Tone::Good },
        at: at("1 h ago"),
    };
    ImportsPage { shell: shell(2), rows: vec![row], older_url: Some("/imports?older=1.a".to_owned()) }
}

pub fn no_imports() -> ImportsPage {
    ImportsPage { rows: Vec::new(), older_url: None, ..imports() }
}

/// Returns each kind of signer of an imported run.
fn vouchers() -> Vec<ImportSignerView> {
    let other = ImportSignerView::Other { issuer: line("https://b.example"), kid: line("k1") };
    let (unchecked, own, revoked) = (
        ImportSignerView::Unchecked(line("k1")),
        ImportSignerView::Gateway(line("k1")),
        ImportSignerView::Revoked(line("k1")),
    );
    vec![ImportSignerView::Nobody, unchecked, own, revoked, other]
}

#[test]
fn who_vouches_for_an_imported_run_is_said_in_words() {
    let words =
        ["Not signed", "Signature not checked", "Signed by this gateway", "Key revoked", "Signed by another gateway"];
    let pages: Vec<String> = vouchers().into_iter().map(|it| imported(it).render().unwrap()).collect();
    for (at, page) in pages.iter().enumerate() {
        let said: Vec<&str> = words.into_iter().filter(|it| page.contains(&format!(">{it}<"))).collect();
        assert_eq!(said, [words[at]]);
        assert!(page.contains("/imports") && !page.contains("/threads/order-8812\""), "it leads to no thread");
        assert!(!page.contains("from its audit log"), "nothing of it is this gateway's word");
    }
}
