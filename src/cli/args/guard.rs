//! `guard …`

use std::path::PathBuf;

use clap::Subcommand;

use super::Later;

/// `guard …`
#[derive(Subcommand, Debug)]
pub enum Guard {
    /// Say whether a state fits a schema.
    Check(GuardCheck),
    /// Say whether a state fits a schema and may follow another by the rules.
    Transition(GuardTransition),
    /// Not built yet.
    #[command(hide = true)]
    Commit(Later),
}

/// `guard check …`
#[derive(clap::Args, Debug)]
pub struct GuardCheck {
    /// The schema, as a file.
    #[arg(long, value_name = "FILE")]
    pub schema: PathBuf,
    /// Rules, as a file: read and refused like the schema, though one state alone breaks none.
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// The state, as a file.
    #[arg(value_name = "PROPOSED")]
    pub proposed: PathBuf,
}

/// `guard transition …`
#[derive(clap::Args, Debug)]
pub struct GuardTransition {
    /// The schema, as a file.
    #[arg(long, value_name = "FILE")]
    pub schema: PathBuf,
    /// The rules, as a file. Without any, no transition passes.
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// The state before, as a file.
    #[arg(value_name = "CURRENT")]
    pub current: PathBuf,
    /// The state after, as a file.
    #[arg(value_name = "PROPOSED")]
    pub proposed: PathBuf,
}
