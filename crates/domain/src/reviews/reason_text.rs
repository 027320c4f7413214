//! Compares reasons for a review by code and pattern, because an earlier release may have worded the stored text.

use super::HoldReason;
use crate::policy::{ReasonCode, current_wording, protected_reason};

impl HoldReason {
    /// Returns the reason in the wording of this release. Two reasons with the same cause are then equal, whichever
    /// release stored them.
    #[must_use]
    pub fn in_current_wording(&self) -> Self {
        let code = ReasonCode::ALL.iter().find(|it| it.as_str() == self.code);
        let text = match (code, &self.pointer) {
            (Some(ReasonCode::Protected), Some(pattern)) => protected_reason(pattern),
            // The policy's author wrote the sentence, even if it equals one of the gateway's.
            (Some(ReasonCode::Rule), _) => self.text.clone(),
            _ => current_wording(&self.text).into_owned(),
        };
        Self { text, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(code: &str, pointer: Option<&str>, text: &str) -> HoldReason {
        let (code, pointer) = (code.to_owned(), pointer.map(str::to_owned));
        HoldReason { code, pointer, text: text.to_owned(), for_reviewers_only: false }
    }

    #[test]
    fn stored_reason_of_an_earlier_release_equals_the_current_one() {
        let stored =
            r#"{"code": "protected", "pointer": "limit", "text": "limit is protected: people decide about it"}"#;
        let stored: HoldReason = serde_json::from_str(stored).unwrap();
        let current = reason("protected", Some("limit"), "`limit` is protected and requires approval");
        assert_ne!(stored, current);
        assert_eq!(stored.in_current_wording(), current.in_current_wording());
        let other = reason("protected", Some("amount"), "limit is protected: people decide about it");
        assert_ne!(stored.in_current_wording(), other.in_current_wording(), "the pattern decides, not the text");
        let reviewers = HoldReason { for_reviewers_only: true, ..current };
        assert_ne!(stored.in_current_wording(), reviewers.in_current_wording());
    }

    #[test]
    fn words_of_a_rule_stay() {
        let rule = reason("rule", None, "limit is protected: people decide about it");
        assert_eq!(rule.in_current_wording(), rule);
    }
}
