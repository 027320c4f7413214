//! Sample pages of interrupts and policy change requests.

use super::sample::{line, moment, shell};
use super::screens::asking;
use crate::pages::interrupts::view::{
    HostAssertionView, InterruptConfirmPage, InterruptPage, InterruptRow, InterruptValueRow,
};
use crate::pages::policy_changes::change_request_view::SignPolicyPage;
use crate::pages::shared::decision_form::{CommentRequirement, DecideForm, DecideFormView, StageProgressView};
use crate::pages::shared::layout::{DigestText, TimestampView, Tone};
use crate::pages::shared::passkey_signing::{PasskeySignForm, PasskeySigningView};
use crate::pages::shared::safe_text::{SafeJson, SafePath, SafeText};
use crate::pages::shared::widgets::ReviewBadge;
use crate::pages::shared::widgets::{TimelineItem, VerdictView};

fn soon() -> TimestampView {
    moment("2026-11-03T14:32:00.000Z", "3 Nov 2026, 14:32 UTC", "in 12 min")
}

fn said() -> HostAssertionView {
    let part = |path: &str, value: Option<&str>| InterruptValueRow {
        path: SafePath::new(path),
        value: value.map(SafeJson::new),
    };
    HostAssertionView {
        title: Some(line("Another user for order 8812")),
        reason: Some(SafeText::new("The customer wrote that the first one has left.")),
        thread: Some(line("order-8812")),
        interrupt_id: line("7652e9dcf1db4576f41da052dbf45ab3"),
        digest: line(&"d".repeat(64)),
        attempt: Some(2),
        keys: vec![line("target_user_id"), line("write_scope")],
        diff: vec![
            part("/target_user_id/before", Some("17")),
            part("/target_user_id/after", Some("42")),
            part("/write_scope", None),
        ],
    }
}

pub fn page() -> InterruptPage {
    InterruptPage {
        shell: shell(2),
        problem: Some("This page was used before. Your vote was not counted.".to_owned()),
        host: line("orders-app"),
        flow: line("payments"),
        words: "Waits for approval",
        tone: Tone::Care,
        standing: "The host application has paused its graph and waits for the decision.".to_owned(),
        said: said(),
        deadline: Some(soon()),
        digest: DigestText::new(format!("sha256:{}", "a".repeat(64))),
        policy: DigestText::new(format!("sha256:{}", "b".repeat(64))),
        stages: vec![StageProgressView { groups: vec![line("finance")], need: 2, approved_by: vec![line("dana")] }],
        timeline: vec![TimelineItem {
            tone: Tone::Plain,
            who: Some(line("orders-app")),
            words: "requested approval".to_owned(),
            comment: None,
            claim: None,
            at: moment("2026-11-03T12:00:00.000Z", "3 Nov 2026, 12:00 UTC", "2 h ago"),
        }],
        deciding: DecideFormView::Open(DecideForm {
            action: "/interrupts/0192f0c1/decision".to_owned(),
            csrf: "csrf-1".to_owned(),
            nonce: "nonce-1".to_owned(),
            stage: 0,
            asks: true,
            comment: CommentRequirement::Required,
            typed: SafeText::new("Agreed."),
        }),
    }
}

pub fn ended() -> InterruptPage {
    let bare = HostAssertionView { title: None, reason: None, thread: None, attempt: None, keys: vec![], ..said() };
    InterruptPage {
        problem: None,
        words: "Denied",
        tone: Tone::Bad,
        said: bare,
        deadline: None,
        deciding: DecideFormView::Closed("The request has ended. It can no longer be decided.".to_owned()),
        ..page()
    }
}

pub fn confirm() -> InterruptConfirmPage {
    InterruptConfirmPage {
        shell: shell(2),
        interrupt_url: "/interrupts/0192f0c1".to_owned(),
        action: "/interrupts/0192f0c1/decision".to_owned(),
        csrf: "csrf-1".to_owned(),
        digest: DigestText::new(format!("sha256:{}", "a".repeat(64))),
        nonce: "nonce-2".to_owned(),
        stage: 0,
        verdict: VerdictView::Approve,
        host: line("orders-app"),
        flow: line("payments"),
        said: said(),
        deadline: soon(),
        consequence: "The gateway reports the approval to the host application, which can continue within 10 min."
            .to_owned(),
        expects: "passes",
        comment: SafeText::new("Agreed."),
        signing: PasskeySigningView::NotAsked,
        typing: Some("aaaaaa".to_owned()),
        problem: None,
    }
}

pub fn row() -> InterruptRow {
    InterruptRow {
        url: "/interrupts/0192f0c1".to_owned(),
        host: line("orders-app"),
        flow: line("payments"),
        title: Some(line("Another user for order 8812")),
        digest: line(&"d".repeat(64)),
        keys: vec![line("target_user_id")],
        more: 2,
        badge: ReviewBadge::Yours,
        deadline: soon(),
    }
}

pub fn sign_policy() -> SignPolicyPage {
    let form = PasskeySignForm { asking: asking(), until: "2026-11-03T12:05:00.000Z".to_owned() };
    SignPolicyPage {
        shell: shell(2),
        amendment_url: "/amendments/0192f0c1".to_owned(),
        action: "/amendments/0192f0c1/decision".to_owned(),
        csrf: "csrf-1".to_owned(),
        digest: DigestText::new(format!("sha256:{}", "a".repeat(64))),
        stage: 0,
        nonce: "nonce-1".to_owned(),
        verdict: VerdictView::Approve,
        flow: line("payments"),
        policy: DigestText::new(format!("sha256:{}", "b".repeat(64))),
        deadline: soon(),
        comment: SafeText::new("Agreed."),
        signing: PasskeySigningView::Must(form),
    }
}
