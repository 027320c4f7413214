//! The headline of a change: one sentence with its first values.

use super::proof_rows::DiffSideView;
use super::safe_text::{SafeLine, SafePath};
use super::tool_call::ToolCallMention;

#[derive(Clone, Debug)]
pub struct Headline {
    pub node: SafeLine,
    pub intent: HeadlineKind,
    pub call: Option<ToolCallMention>,
    /// The first changes, protected keys first.
    pub changes: Vec<HeadlineChange>,
    pub more: usize,
}

#[derive(Clone, Debug)]
pub enum HeadlineKind {
    Change,
    /// A change that a reviewer edited.
    Edit {
        by: SafeLine,
    },
    /// An approval of the current state.
    Reaffirm,
    Rollback {
        to_version: u64,
    },
}

#[derive(Clone, Debug)]
pub struct HeadlineChange {
    pub path: SafePath,
    pub before: DiffSideView,
    pub after: DiffSideView,
}

impl HeadlineChange {
    pub const fn is_hidden(&self) -> bool {
        self.before.is_closed() && self.after.is_closed()
    }
}

impl Headline {
    /// Returns the words between the node and its tool call.
    pub const fn call_words(&self) -> &'static str {
        "wants to call"
    }

    /// Returns the words before the changes. After a tool call, the sentence goes on.
    pub fn intent_words(&self) -> String {
        let words = match &self.intent {
            HeadlineKind::Change => "wants to change".to_owned(),
            HeadlineKind::Edit { .. } => "wants to change (edited)".to_owned(),
            HeadlineKind::Reaffirm => "requests approval of the current state".to_owned(),
            HeadlineKind::Rollback { to_version } => format!("wants to roll back to version {to_version} and change"),
        };
        if self.call.is_some() { format!("and {words}") } else { words }
    }

    /// Whether the sentence is about a tool call only.
    pub const fn is_call_only(&self) -> bool {
        self.call.is_some() && self.changes.is_empty()
    }

    /// Returns the sentence without values for a page title, because values can be long or redacted.
    pub fn plain(&self) -> String {
        let mut parts = vec![self.node.plain()];
        if let Some(call) = &self.call {
            parts.push(format!("{} {}", self.call_words(), call.name.plain()));
        }
        if !self.is_call_only() {
            parts.push(self.intent_words());
            let paths: Vec<String> = self.changes.iter().map(|it| it.path.plain()).collect();
            parts.push(paths.join(", "));
        }
        if self.more > 0 {
            parts.push(format!("and {} more", self.more));
        }
        parts.retain(|it| !it.is_empty());
        parts.join(" ")
    }
}
