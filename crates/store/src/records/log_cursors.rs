//! Cursors of readers of the audit log.

use serde::{Deserialize, Serialize};

use crate::record::Record;
use crate::row::{Facets, Table};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFollower {
    /// The log export (SIEM).
    Copy,
    /// The sender of email notifications.
    Mail,
}

impl LogFollower {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Mail => "mail",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogCursor {
    pub of: LogFollower,
    /// The last processed log position.
    pub reached: u64,
}

impl Record for LogCursor {
    const TABLE: Table = Table::Marks;
    fn id(&self) -> String {
        self.of.name().to_owned()
    }
    fn facets(&self) -> Facets {
        Facets::default()
    }
}
