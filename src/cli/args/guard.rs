//! `guard …`

use std::path::{Path, PathBuf};

use clap::Subcommand;
use countersign_domain::guard::SchemaDialect;

use super::values::{dialect, path};

/// `guard …`
#[derive(Subcommand, Debug)]
pub enum GuardCommand {
    /// Check a state against a schema.
    Payload(GuardPayload),
    /// Check a transition from one state to another against a schema and rules.
    Transition(GuardTransition),
    /// Write a state to a file that contains the current state, if the transition is allowed.
    Commit(GuardCommit),
    /// Write a first state to a new file.
    Create(GuardCreate),
}

impl GuardCommand {
    /// Returns the schema, its required dialect, and the rules, which all commands have.
    pub fn files(&self) -> (&Path, Option<SchemaDialect>, Option<&Path>) {
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
    /// The schema file.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub schema: PathBuf,
    /// The required dialect of the schema: `guard` or `json-schema-2020-12`. The schema text declares its dialect.
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Option<SchemaDialect>,
    /// The rules file. It must be valid, but a single state is not checked against it.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub rules: Option<PathBuf>,
    /// The state: a file, or `-` for standard input.
    #[arg(value_name = "PROPOSED", value_parser = path())]
    pub proposed: PathBuf,
}

/// `guard transition …`
#[derive(clap::Args, Debug)]
pub struct GuardTransition {
    /// The schema file.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub schema: PathBuf,
    /// The required dialect of the schema: `guard` or `json-schema-2020-12`. The schema text declares its dialect.
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Option<SchemaDialect>,
    /// The rules file. Without rules no transition passes.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub rules: Option<PathBuf>,
    /// The current state: a file, or `-` for standard input.
    #[arg(value_name = "CURRENT", value_parser = path())]
    pub current: PathBuf,
    /// The proposed state: a file, or `-` for standard input.
    #[arg(value_name = "PROPOSED", value_parser = path())]
    pub proposed: PathBuf,
}

/// `guard commit …`
#[derive(clap::Args, Debug)]
pub struct GuardCommit {
    /// The schema file.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub schema: PathBuf,
    /// The required dialect of the schema: `guard` or `json-schema-2020-12`. The schema text declares its dialect.
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Option<SchemaDialect>,
    /// The rules file. Without rules no transition passes.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub rules: Option<PathBuf>,
    /// An absolute path of a directory that may contain the target, at any depth. Repeatable.
    #[arg(long = "root", value_name = "DIR", value_parser = path())]
    pub roots: Vec<PathBuf>,
    /// The target does not exist yet, because the current state was stored somewhere else.
    #[arg(long)]
    pub absent: bool,
    /// The current state, as a file. The target must contain it.
    #[arg(value_name = "CURRENT", value_parser = path())]
    pub current: PathBuf,
    /// The proposed state: a file, or `-` for standard input.
    #[arg(value_name = "PROPOSED", value_parser = path())]
    pub proposed: PathBuf,
    /// The file to write: an absolute path that ends with .json.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub target: PathBuf,
}

/// `guard create …`
#[derive(clap::Args, Debug)]
pub struct GuardCreate {
    /// The schema file.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub schema: PathBuf,
    /// The required dialect of the schema: `guard` or `json-schema-2020-12`. The schema text declares its dialect.
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Option<SchemaDialect>,
    /// The rules file. The state must contain every field that the rules name.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub rules: Option<PathBuf>,
    /// An absolute path of a directory that may contain the target, at any depth. Repeatable.
    #[arg(long = "root", value_name = "DIR", value_parser = path())]
    pub roots: Vec<PathBuf>,
    /// The state: a file, or `-` for standard input.
    #[arg(value_name = "PROPOSED", value_parser = path())]
    pub proposed: PathBuf,
    /// The file to write: an absolute path that ends with .json.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub target: PathBuf,
}
