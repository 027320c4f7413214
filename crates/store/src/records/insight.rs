//! The rows of Insight's counters.

use countersign_domain::log::insight::{CountProgress, PeriodFigures};
use serde::{Deserialize, Serialize};

use crate::record::Record;
use crate::row::{Facets, Table};

/// The id of the only row for the progress of counting.
pub const COUNTED: &str = "counted";

/// The rows of Insight's counters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "there is one of the small kind, and it is read alone")]
pub enum InsightRow {
    /// The progress of counting.
    Counted(CountProgress),
    /// The counts of an hour or a day.
    Figures(PeriodFigures),
}

impl Record for InsightRow {
    const TABLE: Table = Table::Figures;
    fn id(&self) -> String {
        match self {
            Self::Counted(_) => COUNTED.to_owned(),
            Self::Figures(figures) => figures.period.name(),
        }
    }
    fn facets(&self) -> Facets {
        Facets::default()
    }
}
