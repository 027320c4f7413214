//! Sample pages of decisions about several reviews.

use super::sample::{SampleReview, line, moment, shell};
use crate::pages::inbox::bulk_decide_view::{
    BulkDecisionPage, BulkGroupRow, BulkGroupsPage, BulkResultPage, BulkResultRow, BulkReviewRow, ExcludedReviewRow,
};
use crate::pages::shared::layout::{DigestText, Tone};
use crate::pages::shared::safe_text::SafeText;
use crate::pages::shared::widgets::Urgency;
use crate::pages::shared::widgets::{CommentRequirement, VerdictView};

fn row(case: &SampleReview, thread: &str) -> BulkReviewRow {
    let page = case.page();
    BulkReviewRow {
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

fn left_out() -> Vec<ExcludedReviewRow> {
    vec![ExcludedReviewRow {
        url: "/reviews/0192f0c2".to_owned(),
        headline: SampleReview::small().page().headline,
        thread: line("order-8790"),
        why: "Its flow requires a passkey. Decide it on its own page.".to_owned(),
    }]
}

pub fn page() -> BulkDecisionPage {
    BulkDecisionPage {
        consequence: "If your approval is the last required one, the change is committed immediately.".to_owned(),
        shell: shell(3),
        csrf: "csrf-1".to_owned(),
        sheet: "sheet-1".to_owned(),
        flow: line("payments"),
        policy: DigestText::new(format!("sha256:{}", "a".repeat(64))),
        reasons: SampleReview::small().page().reasons,
        rows: vec![row(&SampleReview::small(), "order-8812"), row(&SampleReview::rich(), "order-8813")],
        left_out: left_out(),
        comment: CommentRequirement::Required,
        typed: SafeText::new("typed before"),
        problem: Some(
            "A comment is required. Enter the reason for your decision. None of your votes was counted.".to_owned(),
        ),
    }
}

pub fn apart() -> BulkGroupsPage {
    let row = |thread: &str| BulkGroupRow {
        review: "0192f0c1".to_owned(),
        url: "/reviews/0192f0c1".to_owned(),
        headline: SampleReview::small().page().headline,
        flow: line("payments"),
        thread: line(thread),
    };
    BulkGroupsPage {
        shell: shell(3),
        csrf: "csrf-1".to_owned(),
        problem: "The selected reviews request 2 different kinds of change.".to_owned(),
        groups: vec![vec![row("order-8812"), row("order-8813")], vec![row("deploy-1")]],
        left_out: left_out(),
    }
}

pub fn told() -> BulkResultPage {
    let row = |thread: &str, word, tone, by: Vec<&str>| BulkResultRow {
        url: "/reviews/0192f0c1".to_owned(),
        headline: SampleReview::small().page().headline,
        thread: line(thread),
        word,
        tone,
        words: "This review has already been decided. Your vote was not counted.".to_owned(),
        by: by.into_iter().map(line).collect(),
        at: Some(moment("2026-11-03T14:24:40.000Z", "3 Nov 2026, 14:24 UTC", "4 min ago")),
    };
    BulkResultPage {
        shell: shell(1),
        verdict: VerdictView::Approve,
        counted: 1,
        rows: vec![
            row("order-8812", "Approved", Tone::Good, vec!["dana"]),
            row("order-8813", "Not counted", Tone::Bad, vec!["sam"]),
        ],
        unsent: Some(SafeText::new("Checked with <Mira>.")),
    }
}
