//! `episode …`

use std::path::PathBuf;

use clap::Subcommand;

use super::values::path;
use crate::domain::primitives::id::ThreadId;

/// `episode …`
#[derive(Subcommand, Debug)]
pub enum Episode {
    /// Check a folder: its files against the manifest, its events, and what was projected from them.
    Verify(EpisodeVerify),
    /// Show what a folder says, and whether it can be believed.
    Show(EpisodeShow),
    /// Write what remains of a run into a folder, as its host would be given it.
    Export(EpisodeExport),
    /// Keep a finished run's folder as a thread that can be read and nothing else.
    Import(EpisodeImport),
}

/// `episode import …`
#[derive(clap::Args, Debug)]
pub struct EpisodeImport {
    /// The folder.
    #[arg(value_name = "DIR", value_parser = path())]
    pub folder: PathBuf,
    /// The published keys of the gateway that it comes from: the manifest must then be signed by one of them.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub jwks: Option<PathBuf>,
}

/// `episode export …`
#[derive(clap::Args, Debug)]
pub struct EpisodeExport {
    /// The run's thread.
    pub thread: ThreadId,
    /// The folder: one that is not there yet.
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub out: PathBuf,
}

/// `episode verify …`
#[derive(clap::Args, Debug)]
pub struct EpisodeVerify {
    /// The folder.
    #[arg(value_name = "DIR", value_parser = path())]
    pub folder: PathBuf,
    /// A gateway's published keys: the manifest must then be signed by one of them.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub jwks: Option<PathBuf>,
}

/// `episode show …`
#[derive(clap::Args, Debug)]
pub struct EpisodeShow {
    /// The folder.
    #[arg(value_name = "DIR", value_parser = path())]
    pub folder: PathBuf,
}
