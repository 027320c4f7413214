//! The headline of a change: one sentence with its first values.

use super::proof_rows::DiffSideView;
use super::safe_text::{SafeLine, SafePath};

#[derive(Clone, Debug)]
pub struct Headline {
    pub node: SafeLine,
    pub intent: HeadlineKind,
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
    /// Returns the verb of the sentence, which follows the node.
    pub fn intent_words(&self) -> String {
        match &self.intent {
            HeadlineKind::Change => "wants to change".to_owned(),
            HeadlineKind::Edit { .. } => "wants to change (edited)".to_owned(),
            HeadlineKind::Reaffirm => "requests approval of the current state".to_owned(),
            HeadlineKind::Rollback { to_version } => format!("wants to roll back to version {to_version} and change"),
        }
    }

    /// Returns the sentence without values for a page title, because values can be long or redacted.
    pub fn plain(&self) -> String {
        let paths: Vec<String> = self.changes.iter().map(|it| it.path.plain()).collect();
        match self.more {
            0 => format!("{} {} {}", self.node.plain(), self.intent_words(), paths.join(", ")),
            more => format!("{} {} {} and {more} more", self.node.plain(), self.intent_words(), paths.join(", ")),
        }
    }
}
