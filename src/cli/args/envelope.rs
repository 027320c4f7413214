//! `envelope …`

use std::path::PathBuf;

use clap::Subcommand;

use crate::domain::primitives::id::{NodeId, ThreadId};

/// `envelope …`
#[derive(Subcommand, Debug)]
pub enum Envelope {
    /// Check an envelope: signed, whole, for whom it should be, and not too much.
    Verify(EnvelopeVerify),
}

/// `envelope verify …`
#[derive(clap::Args, Debug)]
pub struct EnvelopeVerify {
    /// The envelope, as the gateway gave it.
    #[arg(value_name = "FILE")]
    pub envelope: PathBuf,
    /// The gateway's published keys.
    #[arg(long, value_name = "FILE")]
    pub jwks: PathBuf,
    /// Of which thread it should be.
    #[arg(long, value_name = "NAME")]
    pub thread: Option<ThreadId>,
    /// Whose view it should be.
    #[arg(long, value_name = "NODE")]
    pub node: Option<NodeId>,
    /// The schema of what the node receives.
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// A file with what the gateway answered about the node's secrets; else that is taken from
    /// COUNTERSIGN_ENVELOPE_SECRET. With either the envelope must bear an HMAC by one of them.
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// The version that the thread is known to have come to: an older view is stale.
    #[arg(long, value_name = "VERSION")]
    pub head: Option<u64>,
}
