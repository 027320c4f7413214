//! `envelope …`

use std::path::PathBuf;

use clap::Subcommand;
use countersign_domain::primitives::id::{NodeId, ThreadId};

/// `envelope …`
#[derive(Subcommand, Debug)]
pub enum EnvelopeCommand {
    /// Verify a signed context envelope.
    ///
    /// Checks the signature, the content, the thread, the node and the token budget.
    Verify(EnvelopeVerify),
}

/// `envelope verify …`
#[derive(clap::Args, Debug)]
pub struct EnvelopeVerify {
    /// The envelope file, as the gateway returned it.
    #[arg(value_name = "FILE")]
    pub envelope: PathBuf,
    /// The gateway's published keys, from `/.well-known/jwks.json`.
    #[arg(long, value_name = "FILE")]
    pub jwks: PathBuf,
    /// The thread that the envelope must belong to.
    #[arg(long, value_name = "NAME")]
    pub thread: Option<ThreadId>,
    /// The node that the envelope must be addressed to.
    #[arg(long, value_name = "NODE")]
    pub node: Option<NodeId>,
    /// The schema that the view must match.
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// A file with the gateway's response that contains the node's secrets. Default: the variable
    /// COUNTERSIGN_ENVELOPE_SECRET.
    ///
    /// If secrets are given, the envelope must have an HMAC under one of them.
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// The known head version of the thread. An envelope of an older version is stale.
    #[arg(long, value_name = "VERSION")]
    pub head: Option<u64>,
}
