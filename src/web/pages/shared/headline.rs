//! A change in one sentence.

use super::proof_rows::DiffSideView;
use super::safe_text::{SafeLine, SafePath};

/// A change in one sentence.
#[derive(Clone, Debug)]
pub struct Headline {
    pub node: SafeLine,
    pub intent: HeadlineKind,
    /// The first of its changes, protected keys first.
    pub changes: Vec<HeadlineChange>,
    pub more: usize,
}

#[derive(Clone, Debug)]
pub enum HeadlineKind {
    Change,
    /// The same, rewritten by a reviewer.
    Edit {
        by: SafeLine,
    },
    /// A signature under the state as it stands.
    Reaffirm,
    Rollback {
        to_version: u64,
    },
}

/// One change in a sentence.
#[derive(Clone, Debug)]
pub struct HeadlineChange {
    pub path: SafePath,
    pub before: DiffSideView,
    pub after: DiffSideView,
}

impl HeadlineChange {
    /// Whether neither side is shown.
    pub const fn is_hidden(&self) -> bool {
        self.before.is_closed() && self.after.is_closed()
    }
}

impl Headline {
    /// The beginning of the sentence, after the node.
    pub fn intent_words(&self) -> String {
        match &self.intent {
            HeadlineKind::Change => "wants to change".to_owned(),
            HeadlineKind::Edit { .. } => "wants to change (edited)".to_owned(),
            HeadlineKind::Reaffirm => "requests approval of the current state".to_owned(),
            HeadlineKind::Rollback { to_version } => format!("wants to roll back to version {to_version} and change"),
        }
    }

    /// For a page's title: the sentence without values, which may be long or hidden.
    pub fn plain(&self) -> String {
        let paths: Vec<String> = self.changes.iter().map(|it| it.path.plain()).collect();
        match self.more {
            0 => format!("{} {} {}", self.node.plain(), self.intent_words(), paths.join(", ")),
            more => format!("{} {} {} and {more} more", self.node.plain(), self.intent_words(), paths.join(", ")),
        }
    }
}
