//! The command line, parsed to final types. Unknown commands and flags are refused by name.

mod access;
mod archive;
mod envelope;
mod episode;
mod global;
mod guard;
mod hooks;
mod init;
mod mcp;
mod policy;
mod serve;
#[cfg(test)]
mod tests;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};
use countersign_domain::keys::KeyUse;
use countersign_domain::primitives::id::{Jti, ThreadId};
use countersign_domain::primitives::time::Timestamp;

use crate::config::Flags;
pub use access::{TokenAdd, TokenCommand, TokenRevoke, UserAdd, UserCommand, UserName, UserSetGroups, UserSetRole};
pub use archive::{ArchiveCommand, ArchiveList, ArchiveRestore, ArchiveVerify};
pub use envelope::{EnvelopeCommand, EnvelopeVerify};
pub use episode::{EpisodeCommand, EpisodeExport, EpisodeImport, EpisodeShow, EpisodeVerify};
use global::DEMO_IS_ITS_OWN;
pub use global::GlobalArgs;
pub use guard::{GuardCommand, GuardCommit, GuardCreate, GuardPayload, GuardTransition};
pub use hooks::{ClaudeCodeHooks, HooksCommand};
pub use init::InitArgs;
pub use mcp::{McpArgs, McpCommand, McpGuardArgs};
pub use policy::{PolicyActivate, PolicyCommand, PolicyFile, PolicyReplay, PolicyShow, PolicyTest, PolicyWhatIf};
pub use serve::{DemoArgs, ListenArgs, ServeArgs};
pub use values::{HaltAspectArg, HaltScopeArg, InputSource, NodeList};
use values::{input, key_use, label, moment, scope};

/// Self-hosted approval gateway for the state changes of AI agents.
///
/// Every command exits with 0 for yes, 1 for no, or 2 if there is no answer.
#[derive(Parser, Debug)]
#[command(name = "countersign", version, propagate_version = true, disable_help_subcommand = true)]
pub struct Args {
    /// Global flags.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run the gateway.
    ///
    /// The first start creates the data directory, the database and the keyring. While no account exists, each start
    /// prints a one-time link that creates the first account. If the clock is more than four seconds behind the newest
    /// event, the gateway does not start.
    Serve(ServeArgs),
    /// Run a demo gateway with sample flows, agents and writers, in a temporary directory.
    Demo(DemoArgs),
    /// Set up a flow: its policy, its first reviewer and the tokens of its agent.
    ///
    /// Asks for everything that no flag names. Writes a commented policy and a `.env` file that only you can read, and
    /// overwrites nothing. Prints the lines to paste for curl, Python and MCP clients. Run it before or beside `serve`.
    Init(InitArgs),
    /// Check a gateway's set-up, and print each problem with its remedy.
    ///
    /// Checks the clock, the disk, the active policies, the reviewers that their stages need, and the tokens of their
    /// nodes. Changes nothing and can run beside a running gateway.
    Doctor,
    /// Check that the configured gateway is alive, by requesting `/livez`.
    Health,
    /// Manage accounts.
    #[command(subcommand)]
    User(UserCommand),
    /// Manage machine tokens.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Check, activate, test and replay policies.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Verify a receipt offline and print the result of each check.
    Verify(VerifyCommand),
    /// Audit the database or an export.
    ///
    /// Replays every row against the signatures and the audit log. Changes nothing and can run beside a running gateway.
    Audit(AuditCommand),
    /// List, verify and restore archived versions.
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// List, rotate and revoke signing keys.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Revoke receipts.
    #[command(subcommand)]
    Receipt(ReceiptCommand),
    /// Close and reopen threads.
    #[command(subcommand)]
    Thread(ThreadCommand),
    /// Halt proposals or writes, for one flow or for all flows.
    #[command(subcommand)]
    Halt(HaltCommand),
    /// Migrate the database schema, as every start of `serve` does.
    Migrate,
    /// Validate state files without a gateway, and write those that pass.
    #[command(subcommand)]
    Guard(GuardCommand),
    /// Verify signed context envelopes offline.
    #[command(subcommand)]
    Envelope(EnvelopeCommand),
    /// Verify, show, export and import run artifacts.
    #[command(subcommand)]
    Episode(EpisodeCommand),
    /// Serve an agent's tools over the Model Context Protocol (MCP), on standard input and output.
    Mcp(McpArgs),
    /// Print settings for coding agents, so that their tool calls require approval.
    #[command(subcommand)]
    Hooks(HooksCommand),
}

/// `verify …`
#[derive(clap::Args, Debug)]
pub struct VerifyCommand {
    /// The receipt: its text, a file that contains it, or `-` for standard input.
    #[arg(value_parser = input)]
    pub receipt: InputSource,
    /// The gateway's published keys, from `/.well-known/jwks.json`.
    #[arg(long, value_name = "FILE")]
    pub jwks: PathBuf,
    /// The entry that must match the receipt: its text, or a file that contains it.
    #[arg(long, value_name = "JWS", value_parser = input)]
    pub entry: Option<InputSource>,
    /// The statement whose digest must be the receipt's transition.
    #[arg(long, value_name = "FILE")]
    pub statement: Option<PathBuf>,
    /// The opening that must produce the roots in the statement.
    #[arg(long, value_name = "FILE")]
    pub opening: Option<PathBuf>,
    /// The signatures that passkeys made for the approvals (evidence).
    #[arg(long, value_name = "FILE", requires = "passkeys")]
    pub evidence: Option<PathBuf>,
    /// The pinned passkeys. If given, every approval by passkey is checked and must be valid.
    #[arg(long, value_name = "FILE")]
    pub passkeys: Option<PathBuf>,
    /// The time of the check, like 2026-11-21T01:36:40.123Z. Default: now.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub at: Option<Timestamp>,
}

/// `audit …`
#[derive(clap::Args, Debug)]
pub struct AuditCommand {
    /// A directory of exported chain pages, archives and receipts. Audited instead of the database.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["data", "database"])]
    pub export: Option<PathBuf>,
    /// The published keys to trust. Default: `jwks.json` in the export.
    #[arg(long, value_name = "FILE", requires = "export")]
    pub jwks: Option<PathBuf>,
}

/// `keys …`
#[derive(Subcommand, Debug)]
pub enum KeysCommand {
    /// List all keys with their status.
    List,
    /// Rotate a signing key.
    ///
    /// The next key starts to sign at once. The current key is retired: it loses its private half and still verifies
    /// its earlier signatures.
    Rotate(KeysRotate),
    /// Revoke a key. Everything it signed becomes invalid.
    ///
    /// This includes entries. A thread whose head was signed by the key returns `chain_broken` and cannot continue. If
    /// no one else had the key, rotate it instead.
    Revoke(KeysRevoke),
}

/// `keys rotate …`
#[derive(clap::Args, Debug)]
pub struct KeysRotate {
    /// The use of the key: chain, log or webhook.
    #[arg(value_name = "USE", default_value = "chain", value_parser = key_use)]
    pub key_use: KeyUse,
}

/// `keys revoke …`
#[derive(clap::Args, Debug)]
pub struct KeysRevoke {
    /// The id of the key, as `keys list` prints it.
    #[arg(allow_hyphen_values = true)]
    pub kid: String,
}

/// `receipt …`
#[derive(Subcommand, Debug)]
pub enum ReceiptCommand {
    /// Revoke a receipt. It no longer authorizes a write.
    Revoke(ReceiptRevoke),
}

/// `receipt revoke …`
#[derive(clap::Args, Debug)]
pub struct ReceiptRevoke {
    /// The id of the receipt (`jti`).
    #[arg(allow_hyphen_values = true)]
    pub jti: Jti,
    /// The reason, for the audit log.
    #[arg(long, value_parser = label, default_value = NO_REASON)]
    pub reason: String,
}

/// `thread …`
#[derive(Subcommand, Debug)]
pub enum ThreadCommand {
    /// Close a thread. It accepts no proposals and authorizes no writes.
    Close(ThreadTarget),
    /// Reopen a closed thread.
    Reopen(ThreadTarget),
}

/// `thread close|reopen …`
#[derive(clap::Args, Debug)]
pub struct ThreadTarget {
    /// The id of the thread.
    pub id: ThreadId,
    /// The reason, for the audit log.
    #[arg(long, value_parser = label, default_value = NO_REASON)]
    pub reason: String,
}

/// `halt …`
#[derive(Subcommand, Debug)]
pub enum HaltCommand {
    /// Set a halt (kill switch).
    Set(HaltSet),
    /// Lift a halt.
    ///
    /// A halt for all flows and a halt for one flow are separate. Lift both to resume the flow.
    Lift(HaltLift),
}

/// `halt set …`
#[derive(clap::Args, Debug)]
pub struct HaltSet {
    /// The name of a flow, or `all`.
    #[arg(value_parser = scope)]
    pub scope: HaltScopeArg,
    /// Halt only this. Default: both.
    #[arg(long, value_name = "WHAT")]
    pub only: Option<HaltAspectArg>,
    /// The reason, for the audit log.
    #[arg(long, value_parser = label, default_value = NO_REASON)]
    pub reason: String,
}

/// `halt lift …`
#[derive(clap::Args, Debug)]
pub struct HaltLift {
    /// The name of a flow, or `all`.
    #[arg(value_parser = scope)]
    pub scope: HaltScopeArg,
    /// The reason, for the audit log.
    #[arg(long, value_parser = label, default_value = NO_REASON)]
    pub reason: String,
}

/// The reason in the audit log if `--reason` is not given.
const NO_REASON: &str = "given on the command line, without a reason";

impl Args {
    /// Parses a command line, program name first. The error contains the mistake, or the help text.
    pub fn read(line: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let args = Self::try_parse_from(line)?;
        match &args.command {
            // Clap cannot express which roles need a flow or nodes, so this is checked after parsing.
            Command::Token(TokenCommand::Add(token)) => match token.misfit() {
                Some(problem) => Err(refuse(ErrorKind::MissingRequiredArgument, problem)),
                None => Ok(args),
            },
            // Global flags are accepted by every command, and the demo would ignore these silently.
            Command::Demo(_) if args.global.names_a_gateway() => {
                Err(refuse(ErrorKind::ArgumentConflict, DEMO_IS_ITS_OWN))
            }
            _ => Ok(args),
        }
    }

    /// Returns the flags that override the configuration file and the environment.
    pub fn flags(&self) -> Flags {
        let listen = match &self.command {
            Command::Serve(ServeArgs { listen, .. }) | Command::Demo(DemoArgs { listen, .. }) => listen.listen,
            _ => None,
        };
        let GlobalArgs { data, database, config, json: _ } = &self.global;
        Flags { listen, data: data.clone(), database: database.clone(), config: config.clone() }
    }
}

fn refuse(kind: ErrorKind, problem: &str) -> clap::Error {
    Args::command().error(kind, problem)
}
