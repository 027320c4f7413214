//! How reviewers see the calls of one tool: `[tools.NAME]`.

use std::collections::BTreeMap;

use crate::primitives::named_enum::named_enum;

/// The words and the order in which a page shows a call. They change nothing about what is signed or allowed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ToolDescription {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) risk: Option<ToolRisk>,
    /// The arguments to show first.
    pub(super) show: Vec<String>,
    /// Labels of arguments, by their names.
    pub(super) labels: BTreeMap<String, String>,
    /// Units of arguments, by their names.
    pub(super) units: BTreeMap<String, String>,
}

named_enum! {
    /// How much harm a call can do.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum ToolRisk {
        Low = "low",
        Medium = "medium",
        High = "high",
    }
}

impl ToolDescription {
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    pub const fn risk(&self) -> Option<ToolRisk> {
        self.risk
    }

    pub fn label_of(&self, argument: &str) -> Option<&str> {
        self.labels.get(argument).map(String::as_str)
    }

    pub fn unit_of(&self, argument: &str) -> Option<&str> {
        self.units.get(argument).map(String::as_str)
    }

    /// Returns the place of an argument in the list. Arguments that `show` does not name share the last place.
    pub fn place_of(&self, argument: &str) -> usize {
        self.show.iter().position(|it| it == argument).unwrap_or(self.show.len())
    }
}
