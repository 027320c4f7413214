//! Global flags.

use std::path::PathBuf;

use countersign_domain::primitives::secret::Secret;

use super::values::secret;

/// Flags that may stand anywhere on the line.
#[derive(clap::Args, Debug)]
pub struct GlobalArgs {
    /// The data directory: SQLite database, keyring and archives.
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The URL of a PostgreSQL database. Prefer COUNTERSIGN_DATABASE, because process lists show flags.
    // The URL can contain a password, so its type prints as `[redacted]`.
    #[arg(long, global = true, value_name = "URL", value_parser = secret)]
    pub database: Option<Secret<String>>,
    /// The configuration file. Default: the variable COUNTERSIGN_CONFIG.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

impl GlobalArgs {
    /// Returns true if the flags select a gateway's data.
    pub(super) const fn names_a_gateway(&self) -> bool {
        self.data.is_some() || self.database.is_some()
    }
}

/// The error for data flags of the demo.
pub(super) const DEMO_IS_ITS_OWN: &str =
    "the demo uses its own temporary directory, database and keyring: remove --data and --database";
