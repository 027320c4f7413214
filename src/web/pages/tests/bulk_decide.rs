//! Samples of what is decided at once.

use super::sample::{Case, line, moment, shell};
use crate::web::pages::inbox::bulk_decide_view::{
    ApartPage, ApartRow, LeftOutRow, SeveralPage, SeveralRow, ToldPage, ToldRow,
};
use crate::web::pages::shared::layout::{Hash, Tone};
use crate::web::pages::shared::safe_text::Prose;
use crate::web::pages::shared::widgets::Urgency;
use crate::web::pages::shared::widgets::{CommentWish, Verdict};

fn row(case: &Case, thread: &str) -> SeveralRow {
    let page = case.page();
    SeveralRow {
        token: "0192f0c1 0 sha256:00 nonce".to_owned(),
        url: "/reviews/0192f0c1".to_owned(),
        headline: page.headline,
        thread: line(thread),
        title: page.title,
        on_behalf_of: page.on_behalf_of,
        asked_by: page.asked_by,
        digest: page.proof.digest,
        needs: "1 more from finance".to_owned(),
        deadline: moment("2026-11-03T14:32:00.000Z", "3 Nov 2026, 14:32 UTC", "in 12 min"),
        urgency: Urgency::Soon,
        rows: page.rows,
        writers: page.writers,
        call: page.call,
        usage: page.usage,
        warnings: page.reasons,
        rationale: page.rationale,
    }
}

fn left_out() -> Vec<LeftOutRow> {
    vec![LeftOutRow {
        url: "/reviews/0192f0c2".to_owned(),
        headline: Case::small().page().headline,
        thread: line("order-8790"),
        why: "Its flow asks for a passkey: decide it on its own page.".to_owned(),
    }]
}

pub fn page() -> SeveralPage {
    SeveralPage {
        consequence: "Where your approval is the last that is needed, the change is committed at once.".to_owned(),
        shell: shell(3),
        csrf: "csrf-1".to_owned(),
        sheet: "sheet-1".to_owned(),
        flow: line("payments"),
        policy: Hash::new(format!("sha256:{}", "a".repeat(64))),
        reasons: Case::small().page().reasons,
        rows: vec![row(&Case::small(), "order-8812"), row(&Case::rich(), "order-8813")],
        left_out: left_out(),
        comment: CommentWish::Required,
        typed: Prose::new("typed before"),
        problem: Some("A comment is required here: say why. None of your votes was counted.".to_owned()),
    }
}

pub fn apart() -> ApartPage {
    let row = |thread: &str| ApartRow {
        review: "0192f0c1".to_owned(),
        url: "/reviews/0192f0c1".to_owned(),
        headline: Case::small().page().headline,
        flow: line("payments"),
        thread: line(thread),
    };
    ApartPage {
        shell: shell(3),
        csrf: "csrf-1".to_owned(),
        problem: "These ask for 2 different kinds of change.".to_owned(),
        groups: vec![vec![row("order-8812"), row("order-8813")], vec![row("deploy-1")]],
        left_out: left_out(),
    }
}

pub fn told() -> ToldPage {
    let row = |thread: &str, word, tone, by: Vec<&str>| ToldRow {
        url: "/reviews/0192f0c1".to_owned(),
        headline: Case::small().page().headline,
        thread: line(thread),
        word,
        tone,
        words: "This review was decided meanwhile. Your vote was not counted.".to_owned(),
        by: by.into_iter().map(line).collect(),
        at: Some(moment("2026-11-03T14:24:40.000Z", "3 Nov 2026, 14:24 UTC", "4 min ago")),
    };
    ToldPage {
        shell: shell(1),
        verdict: Verdict::Approve,
        counted: 1,
        rows: vec![
            row("order-8812", "Approved", Tone::Good, vec!["dana"]),
            row("order-8813", "Not counted", Tone::Bad, vec!["sam"]),
        ],
        unsent: Some(Prose::new("Checked with <Mira>.")),
    }
}
