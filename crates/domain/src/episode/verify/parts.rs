//! Coverage of the check: how far each part of an episode was checked, and which parts nothing in the folder confirms.

use serde_json::{Map, Value};

/// How far a part was checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CheckExtent {
    Checked,
    /// As far as the folder has evidence.
    Partly,
    /// Not at all, for lack of evidence.
    Unchecked,
}

impl CheckExtent {
    pub const ALL: [Self; 3] = [Self::Checked, Self::Partly, Self::Unchecked];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Checked => "checked",
            Self::Partly => "partly",
            Self::Unchecked => "unchecked",
        }
    }

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

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RunSection {
    /// Bytes of the files, by the manifest.
    Files,
    /// Signature of the manifest.
    Signature,
    /// Order of the events and their links.
    Events,
    /// `episode` of the state.
    Episode,
    /// `goal`.
    Goal,
    /// `beliefs`.
    Beliefs,
    /// `plan`.
    Plan,
    /// `memory`.
    Memory,
    /// `outcomes.status`.
    Status,
    /// `outcomes.actions`.
    Actions,
    /// `outcomes.summary`.
    Message,
    /// `outcomes.metrics`.
    Metrics,
    /// `links`.
    Links,
    /// `summary.json`.
    Summary,
    /// `final.json`.
    Final,
    /// `learn.jsonl`.
    Learn,
}

impl RunSection {
    /// All parts, in the order of a report.
    pub const ALL: [Self; 16] = [
        Self::Files,
        Self::Signature,
        Self::Events,
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
        Self::Summary,
        Self::Final,
        Self::Learn,
    ];

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

    /// Returns the name in a report.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Signature => "signature",
            Self::Events => "events",
            Self::Episode => "episode",
            Self::Goal => "goal",
            Self::Beliefs => "beliefs",
            Self::Plan => "plan",
            Self::Memory => "memory",
            Self::Status => "outcomes.status",
            Self::Actions => "outcomes.actions",
            Self::Message => "outcomes.summary",
            Self::Metrics => "outcomes.metrics",
            Self::Links => "links",
            Self::Summary => "summary.json",
            Self::Final => "final.json",
            Self::Learn => "learn.jsonl",
        }
    }
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
