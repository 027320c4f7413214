//! How far the log was read by those who go on where they stopped.

use serde::{Deserialize, Serialize};

use crate::store::record::Record;
use crate::store::row::{Facets, Table};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFollower {
    /// Whoever copies it out, line by line.
    Copy,
    /// Whoever tells people by mail.
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
    /// The last place in the log that needs no looking at.
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
