//! What may stand on every line, and where it may not.

use std::path::PathBuf;

use super::values::secret;
use crate::domain::primitives::secret::Secret;

/// Flags that may stand anywhere on the line.
#[derive(clap::Args, Debug)]
pub struct Global {
    /// The directory for the embedded database and the keyring.
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// A PostgreSQL database; better given by COUNTERSIGN_DATABASE, which no process list shows.
    #[arg(long, global = true, value_name = "URL", value_parser = secret)]
    pub database: Option<Secret<String>>,
    /// The configuration file.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Answer in JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

impl Global {
    /// Whether it says which gateway is meant.
    pub(super) const fn names_a_gateway(&self) -> bool {
        self.data.is_some() || self.database.is_some()
    }
}

/// Why the demonstration takes none.
pub(super) const DEMO_IS_ITS_OWN: &str = "the demonstration has a folder, a database and a keyring of its own, which it names when it ends: leave out --data and --database";
