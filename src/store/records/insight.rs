//! What Insight is drawn from.

use serde::{Deserialize, Serialize};

use crate::domain::log::insight::{CountProgress, PeriodFigures};
use crate::store::record::Record;
use crate::store::row::{Facets, Table};

/// How far the log was counted: there is one.
pub const COUNTED: &str = "counted";

/// What Insight is drawn from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "there is one of the small kind, and it is read alone")]
pub enum InsightRow {
    /// How far the log was counted.
    Counted(CountProgress),
    /// What was counted of an hour or a day.
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
