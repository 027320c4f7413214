//! `guard …`

use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::values::{dialect, path};
use crate::domain::guard::Dialect;

/// `guard …`
#[derive(Subcommand, Debug)]
pub enum Guard {
    /// Say whether a state fits a schema.
    Payload(GuardPayload),
    /// Say whether a state fits a schema and may follow another by the rules.
    Transition(GuardTransition),
    /// Write a state to a file that holds the one before, if it may follow it.
    Commit(GuardCommit),
    /// Write a first state to a file that is not there yet.
    Create(GuardCreate),
}

impl Guard {
    /// The schema with the dialect that it must be in, and the rules: what every command has.
    pub fn files(&self) -> (&Path, Option<Dialect>, Option<&Path>) {
        let (schema, dialect, rules) = match self {
            Self::Payload(it) => (&it.schema, it.dialect, &it.rules),
            Self::Transition(it) => (&it.schema, it.dialect, &it.rules),
            Self::Commit(it) => (&it.schema, it.dialect, &it.rules),
            Self::Create(it) => (&it.schema, it.dialect, &it.rules),
        };
        (schema, dialect, rules.as_deref())
    }
}

/// `guard payload …`
#[derive(clap::Args, Debug)]
pub struct GuardPayload {
    /// The schema, as a file.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub schema: PathBuf,
    /// The dialect that the schema must be in: `guard` or `json-schema-2020-12`. Its text says which it is.
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Option<Dialect>,
    /// Rules, as a file: read and refused like the schema, and not held against one state alone.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub rules: Option<PathBuf>,
    /// The state, as a file, or `-` for standard input.
    #[arg(value_name = "PROPOSED", value_parser = path())]
    pub proposed: PathBuf,
}

/// `guard transition …`
#[derive(clap::Args, Debug)]
pub struct GuardTransition {
    /// The schema, as a file.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub schema: PathBuf,
    /// The dialect that the schema must be in: `guard` or `json-schema-2020-12`. Its text says which it is.
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Option<Dialect>,
    /// The rules, as a file. Without any, no transition passes.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub rules: Option<PathBuf>,
    /// The state before, as a file, or `-` for standard input.
    #[arg(value_name = "CURRENT", value_parser = path())]
    pub current: PathBuf,
    /// The state after, as a file, or `-` for standard input.
    #[arg(value_name = "PROPOSED", value_parser = path())]
    pub proposed: PathBuf,
}

/// `guard commit …`
#[derive(clap::Args, Debug)]
pub struct GuardCommit {
    /// The schema, as a file.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub schema: PathBuf,
    /// The dialect that the schema must be in: `guard` or `json-schema-2020-12`. Its text says which it is.
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Option<Dialect>,
    /// The rules, as a file. Without any, no transition passes.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub rules: Option<PathBuf>,
    /// A folder in or below which the target may lie, as an absolute path; may be said several times.
    #[arg(long = "root", value_name = "DIR", value_parser = path())]
    pub roots: Vec<PathBuf>,
    /// The target is not there yet: the state before was kept elsewhere.
    #[arg(long)]
    pub absent: bool,
    /// The state before, as a file. The target must hold it.
    #[arg(value_name = "CURRENT", value_parser = path())]
    pub current: PathBuf,
    /// The state after, as a file, or `-` for standard input.
    #[arg(value_name = "PROPOSED", value_parser = path())]
    pub proposed: PathBuf,
    /// Where the state is written: an absolute path that ends with .json.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub target: PathBuf,
}

/// `guard create …`
#[derive(clap::Args, Debug)]
pub struct GuardCreate {
    /// The schema, as a file.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub schema: PathBuf,
    /// The dialect that the schema must be in: `guard` or `json-schema-2020-12`. Its text says which it is.
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Option<Dialect>,
    /// The rules, as a file: they must find in the state what they speak of.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub rules: Option<PathBuf>,
    /// A folder in or below which the target may lie, as an absolute path; may be said several times.
    #[arg(long = "root", value_name = "DIR", value_parser = path())]
    pub roots: Vec<PathBuf>,
    /// The state, as a file, or `-` for standard input.
    #[arg(value_name = "PROPOSED", value_parser = path())]
    pub proposed: PathBuf,
    /// Where the state is written: an absolute path that ends with .json.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub target: PathBuf,
}
