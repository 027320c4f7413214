//! Arguments of `policy …`.

use std::path::PathBuf;

use clap::Subcommand;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::primitives::id::{FlowId, NodeId};

use super::values::{NodeList, digest, format, nodes};

/// `policy …`
#[derive(Subcommand, Debug)]
pub enum PolicyCommand {
    /// Check a policy file and its schemas. Needs no gateway.
    ///
    /// Refuses a path or tool that should restrict something and can never match. Standard error has the warnings.
    Check(PolicyFile),
    /// Activate a policy for its flow.
    ///
    /// If the active policy requires approval for policy changes, the command opens a policy change request, prints its
    /// page and exits with 1. Standard error has the warnings of `policy check`, and what the flow still lacks: reviewers
    /// in the groups of a stage, or tokens for nodes.
    Activate(PolicyActivate),
    /// List the flows with their active policies.
    List,
    /// Print the text of a flow's active policy, or of another policy by its digest.
    ///
    /// With `--json` the answer has the schemas too.
    Show(PolicyShow),
    /// Evaluate a policy on one patch, as a dry run. Needs no gateway.
    #[command(name = "what-if")]
    WhatIf(PolicyWhatIf),
    /// Run a file of test cases against a policy. Needs no gateway.
    Test(PolicyTest),
    /// Replay recorded proposals against a policy, as a backtest.
    ///
    /// Lists the proposals that would have another outcome. Changes nothing and can run beside a running gateway.
    Replay(PolicyReplay),
}

/// `policy check …`
#[derive(clap::Args, Debug)]
pub struct PolicyFile {
    /// The policy file, in TOML. Its schemas are in the same directory.
    pub file: PathBuf,
}

/// `policy activate …`
#[derive(clap::Args, Debug)]
pub struct PolicyActivate {
    /// The policy file, in TOML. Its schemas are in the same directory.
    pub file: PathBuf,
    /// The digest of an earlier policy whose heads may still be written. Repeatable.
    #[arg(long = "accept", value_name = "DIGEST", value_delimiter = ',', value_parser = digest)]
    pub accepts: Vec<String>,
}

/// `policy test …`
#[derive(clap::Args, Debug)]
pub struct PolicyTest {
    /// The policy file, in TOML. Its schemas are in the same directory.
    pub file: PathBuf,
    /// The test cases: one JSON object per line.
    pub cases: PathBuf,
}

/// `policy replay …`
#[derive(clap::Args, Debug)]
pub struct PolicyReplay {
    /// The policy file, in TOML. Its schemas are in the same directory.
    pub file: PathBuf,
    /// The flow whose proposals are replayed. Default: the flow that the policy names.
    #[arg(long, value_name = "FLOW")]
    pub flow: Option<FlowId>,
    /// The largest number of proposals to replay.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub limit: u32,
    /// The position to continue from: the last line of an earlier replay prints it.
    #[arg(long, value_name = "WHERE")]
    pub after: Option<String>,
}

/// `policy what-if …`
#[derive(clap::Args, Debug)]
pub struct PolicyWhatIf {
    /// The policy file, in TOML. Its schemas are in the same directory.
    pub file: PathBuf,
    /// The current state, in JSON.
    #[arg(long, value_name = "FILE")]
    pub state: PathBuf,
    /// The patch, in JSON.
    #[arg(long, value_name = "FILE")]
    pub patch: PathBuf,
    /// The node that proposes the patch.
    #[arg(long, value_name = "NODE")]
    pub node: NodeId,
    /// The format of the patch: merge, merge-patch or json-patch.
    #[arg(long, value_name = "FORM", value_parser = format, default_value = "merge")]
    pub format: PatchFormat,
    /// The tool call of the proposal, in JSON: name and arguments.
    #[arg(long, value_name = "FILE")]
    pub tool: Option<PathBuf>,
    /// The usage of the proposal, in JSON: tokens and cost.
    #[arg(long, value_name = "FILE")]
    pub usage: Option<PathBuf>,
    /// The id of the token that would propose the patch.
    #[arg(long, value_name = "ID", requires = "owner")]
    pub principal: Option<String>,
    /// The owner of that token.
    #[arg(long, value_name = "NAME", requires = "principal")]
    pub owner: Option<String>,
    /// The nodes that have committed in the thread, separated by commas. '' means none.
    #[arg(long, value_name = "NODES", value_parser = nodes)]
    pub committed_nodes: Option<NodeList>,
    /// The earlier usage of each node in the thread, in JSON: calls, tokens and cost.
    #[arg(long, value_name = "FILE")]
    pub totals: Option<PathBuf>,
}

/// `policy show …`
#[derive(clap::Args, Debug)]
pub struct PolicyShow {
    /// The flow.
    pub flow: FlowId,
    /// The digest of an earlier policy of the flow. Default: the active policy.
    #[arg(long, value_name = "DIGEST", value_parser = digest)]
    pub policy: Option<String>,
}
