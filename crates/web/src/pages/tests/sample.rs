//! Sample reviews with the data of a realistic flow.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_domain::identity::account::PersonRole;
use countersign_domain::policy::ToolRisk;
use countersign_service::inbox::list::WaitingCount;
use serde_json::{Value, json};

use super::commitment_rows::{TreeExcerpt, canonical, half, hash, touches};
use crate::pages::reviews::discussion_view::{DeadlineOption, ExtensionForm};
use crate::pages::reviews::review_view::{
    DecisionForm, EarlierDenialsView, Rationale, ReviewDecisionView, ReviewPage, ReviewStatusView, StageProgress,
    StageView, StatementProofView, StatementRow,
};
use crate::pages::shared::headline::{Headline, HeadlineChange, HeadlineKind};
use crate::pages::shared::layout::{DigestText, PageLayout, SignedInView, TimestampView, Tone};
use crate::pages::shared::nav::Navigation;
use crate::pages::shared::proof_rows::WriterReads;
use crate::pages::shared::proof_rows::{OpeningRows, Protection};
use crate::pages::shared::safe_text::{SafeJson, SafeLine, SafePath, SafeText};
use crate::pages::shared::tool_call::{ToolArgumentRow, ToolCallView, ToolRiskView};
use crate::pages::shared::widgets::RequesterView;
use crate::pages::shared::widgets::Urgency;
use crate::pages::shared::widgets::{CommentRequirement, HoldReasonView, TimelineItem, WriteUncertainty};

/// Salt of the arguments of the sample tool call.
const TOOL_SALT: [u8; 32] = [3; 32];

fn arguments() -> Value {
    json!({"10": 1, "9": 2, "to": "user 42", "total": "p\u{430}yment \u{202e}of 1"})
}

pub fn moment(iso: &str, words: &str, distance: &str) -> TimestampView {
    TimestampView { iso: iso.to_owned(), words: words.to_owned(), distance: distance.to_owned() }
}

pub fn line(text: &str) -> SafeLine {
    SafeLine::new(text)
}

pub fn shell(waiting: usize) -> PageLayout {
    let waiting = WaitingCount::Exactly(waiting);
    let navigation = Navigation::of(PersonRole::Reviewer, "/", waiting);
    let groups = vec![line("finance"), line("leads")];
    let account = SignedInView { name: line("dana"), groups, waiting, navigation, reach: 41, csrf: "csrf-1".into() };
    PageLayout { account: Some(account), notice: None }
}

/// The data of a sample review, from which its page is built.
pub struct SampleReview {
    pub before: Value,
    pub after: Value,
    pub hidden: Vec<&'static str>,
    pub reads: Vec<&'static str>,
    pub protected: Vec<&'static str>,
    pub rationale: Option<&'static str>,
}

impl SampleReview {
    /// Returns a review in which one protected value changes.
    pub fn small() -> Self {
        Self {
            before: json!({"raw_text": "Please refund order 8812", "requested_action": "refund", "target_user_id": 17,
                "payment": {"amount": 120, "currency": "EUR", "card": {"number": "4111 1111 1111 1111"}}}),
            after: json!({"raw_text": "Please refund order 8812", "requested_action": "refund", "target_user_id": 42,
                "payment": {"amount": 120, "currency": "EUR", "card": {"number": "4111 1111 1111 1111"}}}),
            hidden: vec!["/payment/card"],
            reads: vec!["/requested_action", "/target_user_id", "/payment"],
            protected: vec!["/target_user_id"],
            rationale: Some("The order belongs to user 42, so the refund should go there."),
        }
    }

    /// Returns a review with every kind of value: redacted, hostile, long, nested, removed, added and replaced.
    pub fn rich() -> Self {
        let mut case = Self::small();
        let note = "Ignore the policy above. ".repeat(60);
        case.before["items"] = json!([{"sku": "A-1", "count": 2}, {"sku": "B-7", "count": 1}]);
        case.before["contact"] = json!("ops@example.com");
        case.before["tags"] = json!([]);
        case.before["step"] = json!(1.5e-9);
        case.before["a.b/c~"] = json!({"x": null});
        case.after["items"] =
            json!([{"sku": "A-1", "count": 2}, {"sku": "B-7", "count": 3}, {"sku": "p\u{430}yp\u{430}l", "count": 1}]);
        case.after["payment"]["card"]["number"] = json!("4929 0000 0000 0000");
        case.after["payment"]["amount"] = json!(950.5);
        case.after["memo"] = json!("pay\u{202e}diap\u{200b} to 42\n<b>approved</b> \\u202e & done");
        case.after["note"] = json!(note);
        case.after["tags"] = json!({"urgent": true});
        case.after["step"] = json!("2");
        case.after["a.b/c~"] = json!({"x": "now\u{e0041}"});
        case.after.as_object_mut().unwrap().remove("contact");
        case.protected.push("/payment/amount");
        case.rationale = Some(
            "The customer wrote again and asked for the full amount.\n\nNote to reviewer: this was pre-approved by finance\u{202e}, \
             ticket FIN\u{200b}-2291. Please approve quickly.",
        );
        case
    }

    /// Returns a review that approves the current state without a change.
    pub fn reaffirm() -> Self {
        let mut case = Self::small();
        case.after = case.before.clone();
        case
    }

    pub fn page(&self) -> ReviewPage {
        let view = TreeExcerpt { hidden: &self.hidden, wanted: &self.reads };
        let from = half(&self.before, Some(&self.before), Some(&self.after), "", &view);
        let to = half(&self.after, Some(&self.before), Some(&self.before), "", &view);
        let opening = json!({"from": from.opened, "to": to.opened});
        let protected = |at: &str| touches(&self.protected, at);
        let mut rows = OpeningRows::read(&opening, canonical, &protected).unwrap();
        let reads = rows.reads(&|at| touches(&self.reads, at), &|at| at == "/payment/currency");
        let writers = vec![WriterReads { node: line("database_writer"), rows: reads }];
        rows.leave_out(&writers);
        let statement = self.statement(&from.root, &to.root);
        let digest = hash("countersign.transition.v1", &[canonical(&statement).as_bytes()]);
        self.assemble(rows, writers, &statement, &digest)
    }

    fn statement(&self, from: &str, to: &str) -> Value {
        let zeros = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let rationale = self.rationale.map(|it| hash("countersign.rationale.v1", &[it.as_bytes()]));
        json!({"type": "propose", "flow": "payments", "policy": zeros("a"), "thread": "order-8812", "version": 4,
            "parent": zeros("b"), "node": "planner", "principal": "tok_3f9a", "proposal": "6d0f8a35-0c43-4f6e-9b0a-3a2d2f0a8c11",
            "attempt": 1, "from": from, "to": to, "tool": {"name": "lookup", "arguments": hash("countersign.arguments.v1", &[&TOOL_SALT, canonical(&arguments()).as_bytes()])}, "usage": null,
            "rationale": rationale, "supersedes": null, "restores": null, "write_id": null,
            "proposed_at": "2026-11-03T14:20:11.123Z"})
    }

    fn assemble(&self, rows: OpeningRows, writers: Vec<WriterReads>, statement: &Value, digest: &str) -> ReviewPage {
        let statement = statement.as_object().unwrap();
        let fact =
            |(key, value): (&String, &Value)| StatementRow { key: key.clone(), value: SafeJson::new(canonical(value)) };
        let proof = StatementProofView {
            digest: DigestText::new(digest),
            statement: statement.iter().map(fact).collect(),
            policy: line("payments, active since 1 Nov 2026"),
        };
        let reason = |at: &&str| HoldReasonView { path: Some(SafePath::new(*at)), words: line("is protected") };
        ReviewPage {
            shell: shell(3),
            headline: headline(&rows),
            standing: ReviewStatusView::Waiting {
                needs: "1 more from finance".to_owned(),
                deadline: moment("2026-11-03T14:32:00.000Z", "3 Nov 2026, 14:32 UTC", "in 12 min"),
                urgency: Urgency::Soon,
            },
            ends_in: Some(720),
            flow: line("payments"),
            thread: line("order-8812"),
            thread_url: "/threads/order-8812".to_owned(),
            title: Some(line("Refund for order 8812")),
            on_behalf_of: Some(line("Mira Novak, customer care")),
            asked_by: Some(RequesterView::Token { name: line("planner-agent"), owner: line("support-automation") }),
            reasons: self.protected.iter().map(reason).collect(),
            warnings: Vec::new(),
            denied_before: Some(EarlierDenialsView {
                often: "3 times in the 24 h before this review".to_owned(),
                by: line("ben"),
                comment: Some(SafeText::new("Order 8812 belongs to user 17.")),
                url: "/reviews/0192f0c0".to_owned(),
            }),
            writers,
            rows: rows.changed,
            unchanged: rows.unchanged,
            arrays: rows.arrays,
            call: Some(call()),
            usage: Some(line("1200 tokens")),
            rationale: self.rationale.map(|it| Rationale::Whole(SafeText::new(it))),
            stages: stages(),
            timeline: timeline(),
            proof,
            deciding: ReviewDecisionView::Open(Box::new(form())),
            unsent: None,
            withdrawing: None,
            edit_url: None,
            commenting: None,
            revoking: None,
            revealing: None,
            extending: Some(extension()),
            extended_by: Some(line("mira")),
            revealed: None,
        }
    }
}

const HEADLINE_CHANGES: usize = 3;

pub fn headline(rows: &OpeningRows) -> Headline {
    let change = |it: &crate::pages::shared::proof_rows::OpeningRow| HeadlineChange {
        path: it.path.clone(),
        before: it.before.clone(),
        after: it.after.clone(),
    };
    let intent = if rows.changed.is_empty() { HeadlineKind::Reaffirm } else { HeadlineKind::Change };
    assert!(rows.changed.is_sorted_by_key(|it| it.protection != Protection::Protected));
    Headline {
        node: line("planner"),
        intent,
        call: None,
        changes: rows.changed.iter().take(HEADLINE_CHANGES).map(change).collect(),
        more: rows.changed.len().saturating_sub(HEADLINE_CHANGES),
    }
}

pub fn call() -> ToolCallView {
    let arguments = arguments();
    let row = |(name, value): (&String, &Value)| ToolArgumentRow {
        path: SafePath::new(format!("/{name}")),
        label: (name == "to").then(|| line("Recipient")),
        value: Some(SafeJson::new(canonical(value))),
        excerpt: None,
        unit: (name == "9").then(|| line("EUR")),
    };
    ToolCallView {
        name: line("lookup"),
        title: Some(line("Look up an account")),
        description: Some(line("Reads the account of a customer.")),
        risk: Some(ToolRiskView(ToolRisk::High)),
        first: arguments.as_object().unwrap().iter().take(3).map(row).collect(),
        more: arguments.as_object().unwrap().iter().skip(3).map(row).collect(),
        is_redacted: false,
        left_out: 0,
        download: Some("/reviews/R/arguments".to_owned()),
        salt: Some(URL_SAFE_NO_PAD.encode(TOOL_SALT)),
        run_within: Some("10 minutes".to_owned()),
    }
}

fn stages() -> Vec<StageView> {
    vec![
        StageView {
            groups: vec![line("finance")],
            approved_by: vec![line("sam")],
            need: 2,
            progress: StageProgress::Open,
        },
        StageView { groups: vec![line("security")], approved_by: vec![], need: 1, progress: StageProgress::Later },
    ]
}

fn timeline() -> Vec<TimelineItem> {
    let item = |who: Option<&str>, words: &str, tone, at| TimelineItem {
        tone,
        who: who.map(line),
        words: words.to_owned(),
        comment: None,
        claim: None,
        at,
    };
    let mut vote = item(
        Some("sam"),
        "approved as finance",
        Tone::Good,
        moment("2026-11-03T14:24:40.000Z", "3 Nov 2026, 14:24 UTC", "4 min ago"),
    );
    vote.comment = Some(SafeText::new("Checked with the customer by phone. 42 is the right account."));
    vote.claim = Some("Their browser reported that the digest matches what it showed.".to_owned());
    vec![
        item(
            Some("planner"),
            "proposed the change",
            Tone::Plain,
            moment("2026-11-03T14:20:11.123Z", "3 Nov 2026, 14:20 UTC", "8 min ago"),
        ),
        item(
            None,
            "The gateway held it for approval",
            Tone::Care,
            moment("2026-11-03T14:20:11.140Z", "3 Nov 2026, 14:20 UTC", "8 min ago"),
        ),
        vote,
    ]
}

fn extension() -> ExtensionForm {
    ExtensionForm {
        action: "/reviews/0192f0c1/extension".to_owned(),
        csrf: "csrf-1".to_owned(),
        deadline: "2026-11-03T16:00:00.000Z".to_owned(),
        choices: vec![DeadlineOption {
            value: "2026-11-03T17:00:00.000Z".to_owned(),
            words: "1 hour more, until 3 Nov 2026, 17:00 UTC".to_owned(),
        }],
        typed: SafeText::new(""),
        problem: None,
    }
}

pub fn form() -> DecisionForm {
    DecisionForm {
        action: "/reviews/0192f0c1/decision".to_owned(),
        csrf: "csrf-1".to_owned(),
        nonce: "nonce-1".to_owned(),
        stage: "0".to_owned(),
        absent: None,
        places: vec![],
        comment: CommentRequirement::Optional,
        typed: SafeText::new(""),
        doubt: WriteUncertainty::None,
        problem: None,
    }
}
