//! Coverage of the check: how far each part of an episode was checked, and which parts nothing in the folder confirms.

use serde_json::{Map, Value};

use crate::primitives::named_enum::named_enum;

named_enum! {
    /// How far a part was checked.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum CheckExtent {
        Checked = "checked",
        /// As far as the folder has evidence.
        Partly = "partly",
        /// Not at all, for lack of evidence.
        Unchecked = "unchecked",
    }
}

impl CheckExtent {
    /// Returns the extent of a part of which `checked` out of `all` pieces have evidence.
    pub(super) const fn of(checked: usize, all: usize) -> Self {
        // Also for a part without pieces: nothing confirms it.
        if checked == 0 {
            Self::Unchecked
        } else if checked < all {
            Self::Partly
        } else {
            Self::Checked
        }
    }
}

named_enum! {
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum RunSection {
        /// Bytes of the files, by the manifest.
        Files = "files",
        /// Signature of the manifest.
        Signature = "signature",
        /// Order of the events and their links.
        Events = "events",
        /// `episode` of the state.
        Episode = "episode",
        /// `goal`.
        Goal = "goal",
        /// `beliefs`.
        Beliefs = "beliefs",
        /// `plan`.
        Plan = "plan",
        /// `memory`.
        Memory = "memory",
        /// `outcomes.status`.
        Status = "outcomes.status",
        /// `outcomes.actions`.
        Actions = "outcomes.actions",
        /// `outcomes.summary`.
        Message = "outcomes.summary",
        /// `outcomes.metrics`.
        Metrics = "outcomes.metrics",
        /// `links`.
        Links = "links",
        /// `summary.json`.
        Summary = "summary.json",
        /// `final.json`.
        Final = "final.json",
        /// `learn.jsonl`.
        Learn = "learn.jsonl",
    }
}

impl RunSection {
    pub(super) const OF_STATE: [Self; 10] = [
        Self::Episode,
        Self::Goal,
        Self::Beliefs,
        Self::Plan,
        Self::Memory,
        Self::Status,
        Self::Actions,
        Self::Message,
        Self::Metrics,
        Self::Links,
    ];
}

/// Coverage of each part. A part that no check covered is unchecked, and one that the folder lacks is left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CheckExtents(std::collections::BTreeMap<RunSection, CheckExtent>);

impl CheckExtents {
    pub(super) fn set(&mut self, part: RunSection, extent: CheckExtent) {
        self.0.insert(part, extent);
    }

    /// Returns how far a part was checked, if the folder has it.
    pub fn of(&self, part: RunSection) -> Option<CheckExtent> {
        self.0.get(&part).copied()
    }

    /// Returns the names of the parts with this extent.
    pub fn named(&self, extent: CheckExtent) -> Vec<&'static str> {
        self.0.iter().filter(|(_, it)| **it == extent).map(|(part, _)| part.as_str()).collect()
    }

    /// Returns it as JSON: the extent of each part by its name.
    pub fn json(&self) -> Value {
        let word = |(part, extent): (&RunSection, &CheckExtent)| (part.as_str().to_owned(), extent.as_str().into());
        Value::Object(self.0.iter().map(word).collect::<Map<_, _>>())
    }
}
