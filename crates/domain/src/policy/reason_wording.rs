//! The gateway's own sentences for the reasons of a review, with the sentences of earlier releases.
//!
//! Reviews, Insight counts and test cases store a reason as text. A release that words a reason differently must still
//! recognize the stored text, so everything that compares or groups reasons brings both sides to the current wording.

use std::borrow::Cow;

use super::judgement::{ReasonCode, protected_reason};

/// How a reason for a protected pattern ended up to version 0.1.
const FORMER_PROTECTED: &str = " is protected: people decide about it";

/// Sentences up to version 0.1, each with the current one.
const FORMER: &[(&str, &str)] = &[
    ("a protected value is touched", ReasonCode::Protected.sentence()),
    ("a rule holds it", ReasonCode::Rule.sentence()),
    ("more is used than the policy lets pass", ReasonCode::Budget.sentence()),
    ("a reviewer rewrote the request: people decide about the new one", ReasonCode::Edit.sentence()),
    ("a receipt is asked for the state as it stands", ReasonCode::Reaffirm.sentence()),
    ("an earlier state is to stand again", ReasonCode::Rollback.sentence()),
    ("more calls than one request may make", "the request exceeds the tool call limit for one request"),
    ("more tokens than one request may take", "the request exceeds the token limit for one request"),
    ("more cost than one request may make", "the request exceeds the cost limit for one request"),
    (
        "more tokens of context than a node may be given for one request",
        "the request exceeds the context token limit for one request",
    ),
    ("more calls than this node may make in one thread", "the node exceeds its tool call limit for one thread"),
    ("more tokens than this node may take in one thread", "the node exceeds its token limit for one thread"),
    ("more cost than this node may make in one thread", "the node exceeds its cost limit for one thread"),
    (
        "more tokens of context than this node may be given in one thread",
        "the node exceeds its context token limit for one thread",
    ),
    ("more calls than may be made in one thread", "the thread exceeds its tool call limit"),
    ("more tokens than may be taken in one thread", "the thread exceeds its token limit"),
    ("more cost than may be made in one thread", "the thread exceeds its cost limit"),
    ("more tokens of context than nodes may be given in one thread", "the thread exceeds its context token limit"),
];

/// Returns a reason's text in the current wording. A text that no earlier release produced is returned unchanged.
pub fn current_wording(text: &str) -> Cow<'_, str> {
    // This sentence contains a pattern of the policy, so the table cannot list it.
    if let Some(pattern) = text.strip_suffix(FORMER_PROTECTED) {
        return Cow::Owned(protected_reason(pattern));
    }
    let former = FORMER.iter().find(|(former, _)| *former == text);
    Cow::Borrowed(former.map_or(text, |(_, current)| current))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_texts_get_the_current_wording() {
        for (former, current) in [
            ("payment.* is protected: people decide about it", "`payment.*` is protected and requires approval"),
            ("an earlier state is to stand again", "a rollback to an earlier state requires approval"),
        ] {
            assert_eq!(current_wording(former), current);
            assert_eq!(current_wording(current), current, "the current wording stays");
        }
        assert_eq!(current_wording("above ten"), "above ten", "words of a policy's author stay");
    }
}
