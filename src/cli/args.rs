//! The whole command line, parsed to final types. What a later version brings is refused by name.

mod access;
mod archive;
mod envelope;
mod episode;
mod global;
mod guard;
mod serve;
#[cfg(test)]
mod tests;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};
use url::Url;

use crate::config::Flags;
use crate::domain::json::patch::Format;
use crate::domain::keys::KeyUse;
use crate::domain::primitives::id::{FlowId, Jti, NodeId, ThreadId};
use crate::domain::primitives::time::Timestamp;
pub use access::{Token, TokenAdd, TokenRevoke, User, UserAdd, UserName};
pub use archive::{Archive, ArchiveList, ArchiveRestore, ArchiveVerify};
pub use envelope::{Envelope, EnvelopeVerify};
pub use episode::{Episode, EpisodeExport, EpisodeImport, EpisodeShow, EpisodeVerify};
use global::DEMO_IS_ITS_OWN;
pub use global::Global;
pub use guard::{Guard, GuardCommit, GuardCreate, GuardPayload, GuardTransition};
pub use serve::{Listen, Serve};
pub use values::{Halted, Input, Nodes, Scope};
use values::{digest, format, input, key_use, label, moment, nodes, scope};

/// A gateway that holds what AI agents would write until people have signed exactly that.
///
/// Exits with 0 for yes, 1 for no, 2 for could not tell.
#[derive(Parser, Debug)]
#[command(name = "countersign", version, propagate_version = true, disable_help_subcommand = true)]
pub struct Args {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run the gateway.
    Serve(Serve),
    /// Run a gateway of its own with sample flows, agents and writers, and follow what happens.
    Demo(Listen),
    /// Ask the gateway of this configuration whether it is alive.
    Health,
    /// People.
    #[command(subcommand)]
    User(User),
    /// Tokens of machines.
    #[command(subcommand)]
    Token(Token),
    /// Policies.
    #[command(subcommand)]
    Policy(Policy),
    /// Check a receipt offline.
    Verify(Verify),
    /// Replay everything, trusting nothing.
    Audit(Audit),
    /// States that are in files and no longer in the database.
    #[command(subcommand)]
    Archive(Archive),
    /// The keyring.
    #[command(subcommand)]
    Keys(Keys),
    /// Receipts.
    #[command(subcommand)]
    Receipt(Receipt),
    /// Threads.
    #[command(subcommand)]
    Thread(Thread),
    /// Stop proposing or verifying, for a flow or for all.
    #[command(subcommand)]
    Halt(Halt),
    /// Bring the database's tables up to date.
    Migrate,
    /// Judge a state, or a transition from one to another, without a gateway.
    #[command(subcommand)]
    Guard(Guard),
    /// Check what a node would be given, by published keys alone.
    #[command(subcommand)]
    Envelope(Envelope),
    /// Folders with what remains of a run.
    #[command(subcommand)]
    Episode(Episode),
    /// Speak the Model Context Protocol with the agent that starts this, for a gateway that is running.
    Mcp(Mcp),
}

/// `mcp …`
#[derive(clap::Args, Debug)]
pub struct Mcp {
    /// The gateway's public address.
    #[arg(long, value_name = "URL", env = "COUNTERSIGN_URL", default_value = "http://localhost:8480")]
    pub gateway: Url,
    /// A file that holds the agent's token; else it is taken from COUNTERSIGN_TOKEN.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// `policy …`
#[derive(Subcommand, Debug)]
pub enum Policy {
    /// Say whether a policy file is sound.
    Check(PolicyFile),
    /// Make a policy the one that its flow is judged by.
    Activate(PolicyActivate),
    /// Say what a policy would make of a patch, with no gateway and no effect.
    #[command(name = "what-if")]
    WhatIf(PolicyWhatIf),
    /// Hold what a policy makes of supposed requests against what is expected, with no gateway and no effect.
    Test(PolicyTest),
    /// Judge the recorded proposals of a flow by a policy, and list what would change; nothing does.
    Replay(PolicyReplay),
}

/// `policy check …`
#[derive(clap::Args, Debug)]
pub struct PolicyFile {
    /// The policy, in TOML; its schemas lie beside it.
    pub file: PathBuf,
}

/// `policy activate …`
#[derive(clap::Args, Debug)]
pub struct PolicyActivate {
    /// The policy, in TOML; its schemas lie beside it.
    pub file: PathBuf,
    /// The digest of an earlier policy whose heads may still be written; may be said several times.
    #[arg(long = "accept", value_name = "DIGEST", value_delimiter = ',', value_parser = digest)]
    pub accepts: Vec<String>,
}

/// `policy test …`
#[derive(clap::Args, Debug)]
pub struct PolicyTest {
    /// The policy, in TOML; its schemas lie beside it.
    pub file: PathBuf,
    /// The cases: one JSON object a line.
    pub cases: PathBuf,
}

/// `policy replay …`
#[derive(clap::Args, Debug)]
pub struct PolicyReplay {
    /// The policy, in TOML; its schemas lie beside it.
    pub file: PathBuf,
    /// The flow, if it should not be the one that the policy names.
    #[arg(long, value_name = "FLOW")]
    pub flow: Option<FlowId>,
    /// How many proposals at most.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub limit: u32,
    /// Where to go on, as the last line of an earlier answer says.
    #[arg(long, value_name = "WHERE")]
    pub after: Option<String>,
}

/// `policy what-if …`
#[derive(clap::Args, Debug)]
pub struct PolicyWhatIf {
    /// The policy, in TOML; its schemas lie beside it.
    pub file: PathBuf,
    /// The state before, in JSON.
    #[arg(long, value_name = "FILE")]
    pub state: PathBuf,
    /// The patch, in JSON.
    #[arg(long, value_name = "FILE")]
    pub patch: PathBuf,
    /// The node that asks.
    #[arg(long, value_name = "NODE")]
    pub node: NodeId,
    /// The patch's form: merge, merge-patch or json-patch.
    #[arg(long, value_name = "FORM", value_parser = format, default_value = "merge")]
    pub format: Format,
    /// The tool that would be called along with it, in JSON: name and arguments.
    #[arg(long, value_name = "FILE")]
    pub tool: Option<PathBuf>,
    /// What it would have taken, in JSON: tokens and cost.
    #[arg(long, value_name = "FILE")]
    pub usage: Option<PathBuf>,
    /// Who would ask: the id of a token.
    #[arg(long, value_name = "ID", requires = "owner")]
    pub principal: Option<String>,
    /// Whose token that is.
    #[arg(long, value_name = "NAME", requires = "principal")]
    pub owner: Option<String>,
    /// The nodes of which something was committed in the thread, by commas; '' for none.
    #[arg(long, value_name = "NODES", value_parser = nodes)]
    pub committed_nodes: Option<Nodes>,
    /// What each node has used in the thread before, in JSON: calls, tokens and cost by node.
    #[arg(long, value_name = "FILE")]
    pub totals: Option<PathBuf>,
}

/// `verify …`
#[derive(clap::Args, Debug)]
pub struct Verify {
    /// The receipt: itself, a file that holds it, or `-` for standard input.
    #[arg(value_parser = input)]
    pub receipt: Input,
    /// The gateway's published keys.
    #[arg(long, value_name = "FILE")]
    pub jwks: PathBuf,
    /// The entry it should belong to: itself, or a file that holds it.
    #[arg(long, value_name = "JWS", value_parser = input)]
    pub entry: Option<Input>,
    /// The statement that the receipt's transition should be the digest of.
    #[arg(long, value_name = "FILE")]
    pub statement: Option<PathBuf>,
    /// The opening that should give the statement's roots.
    #[arg(long, value_name = "FILE")]
    pub opening: Option<PathBuf>,
    /// What passkeys signed of its approvals.
    #[arg(long, value_name = "FILE", requires = "passkeys")]
    pub evidence: Option<PathBuf>,
    /// The passkeys to believe: approvals by passkey are then checked, and have to be good.
    #[arg(long, value_name = "FILE")]
    pub passkeys: Option<PathBuf>,
    /// The moment to check at, instead of now: 2026-11-21T01:36:40.123Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub at: Option<Timestamp>,
}

/// `audit …`
#[derive(clap::Args, Debug)]
pub struct Audit {
    /// Exported files, instead of the database: pages of chains, archives, receipts.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["data", "database"])]
    pub export: Option<PathBuf>,
    /// The published keys to believe, instead of the export's own jwks.json.
    #[arg(long, value_name = "FILE", requires = "export")]
    pub jwks: Option<PathBuf>,
}

/// `keys …`
#[derive(Subcommand, Debug)]
pub enum Keys {
    /// Say which keys there are.
    List,
    /// Let the next key sign and retire the one that does.
    Rotate(KeysRotate),
    /// Let a key verify nothing any more.
    Revoke(KeysRevoke),
}

/// `keys rotate …`
#[derive(clap::Args, Debug)]
pub struct KeysRotate {
    /// Which: chain, log or webhook.
    #[arg(value_name = "USE", default_value = "chain", value_parser = key_use)]
    pub key_use: KeyUse,
}

/// `keys revoke …`
#[derive(clap::Args, Debug)]
pub struct KeysRevoke {
    /// The key's name.
    #[arg(allow_hyphen_values = true)]
    pub kid: String,
}

/// `receipt …`
#[derive(Subcommand, Debug)]
pub enum Receipt {
    /// Let a receipt open nothing any more.
    Revoke(ReceiptRevoke),
}

/// `receipt revoke …`
#[derive(clap::Args, Debug)]
pub struct ReceiptRevoke {
    /// The receipt's id.
    #[arg(allow_hyphen_values = true)]
    pub jti: Jti,
    /// Why, for the log.
    #[arg(long, value_parser = label, default_value = NO_REASON)]
    pub reason: String,
}

/// `thread …`
#[derive(Subcommand, Debug)]
pub enum Thread {
    /// Take no more proposals and verifications on a thread.
    Close(OneThread),
    /// Take them again.
    Reopen(OneThread),
}

/// `thread close|reopen …`
#[derive(clap::Args, Debug)]
pub struct OneThread {
    /// The thread.
    pub id: ThreadId,
    /// Why, for the log.
    #[arg(long, value_parser = label, default_value = NO_REASON)]
    pub reason: String,
}

/// `halt …`
#[derive(Subcommand, Debug)]
pub enum Halt {
    /// Stop.
    Set(HaltSet),
    /// Go on.
    Lift(HaltLift),
}

/// `halt set …`
#[derive(clap::Args, Debug)]
pub struct HaltSet {
    /// A flow, or `all`.
    #[arg(value_parser = scope)]
    pub scope: Scope,
    /// Stop only this, and let the other go on.
    #[arg(long, value_name = "WHAT")]
    pub only: Option<Halted>,
    /// Why, for the log.
    #[arg(long, value_parser = label, default_value = NO_REASON)]
    pub reason: String,
}

/// `halt lift …`
#[derive(clap::Args, Debug)]
pub struct HaltLift {
    /// A flow, or `all`.
    #[arg(value_parser = scope)]
    pub scope: Scope,
    /// Why, for the log.
    #[arg(long, value_parser = label, default_value = NO_REASON)]
    pub reason: String,
}

/// What the log says where nobody gave a reason.
const NO_REASON: &str = "given on the command line, without a reason";

impl Args {
    /// Reads a line, program name first. What is wrong with it, or its help, is in the error.
    pub fn read(line: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let args = Self::try_parse_from(line)?;
        match &args.command {
            Command::Token(Token::Add(token)) => match token.misfit() {
                Some(problem) => Err(refuse(ErrorKind::MissingRequiredArgument, problem)),
                None => Ok(args),
            },
            Command::Demo(_) if args.global.names_a_gateway() => {
                Err(refuse(ErrorKind::ArgumentConflict, DEMO_IS_ITS_OWN))
            }
            _ => Ok(args),
        }
    }

    /// What this line says over file and environment.
    pub fn flags(&self) -> Flags {
        let listen = match &self.command {
            Command::Serve(Serve { listen, .. }) | Command::Demo(listen) => listen.listen,
            _ => None,
        };
        let Global { data, database, config, json: _ } = &self.global;
        Flags { listen, data: data.clone(), database: database.clone(), config: config.clone() }
    }
}

fn refuse(kind: ErrorKind, problem: &str) -> clap::Error {
    Args::command().error(kind, problem)
}
