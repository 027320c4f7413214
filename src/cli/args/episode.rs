//! `episode …`

use std::path::PathBuf;

use clap::Subcommand;
use countersign_domain::primitives::id::ThreadId;

use super::values::path;

/// `episode …`
#[derive(Subcommand, Debug)]
pub enum EpisodeCommand {
    /// Verify a folder of run artifacts.
    ///
    /// Checks the files against the manifest, the events, and the projections of the events.
    Verify(EpisodeVerify),
    /// Show the content of a folder and whether it is verified.
    Show(EpisodeShow),
    /// Export the artifacts of a run into a folder, as its host application would receive them.
    Export(EpisodeExport),
    /// Import the folder of a finished run as a read-only thread.
    Import(EpisodeImport),
}

/// `episode import …`
#[derive(clap::Args, Debug)]
pub struct EpisodeImport {
    /// The folder with the run artifacts.
    #[arg(value_name = "DIR", value_parser = path())]
    pub folder: PathBuf,
    /// The published keys of the source gateway. If given, one of them must have signed the manifest.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub jwks: Option<PathBuf>,
}

/// `episode export …`
#[derive(clap::Args, Debug)]
pub struct EpisodeExport {
    /// The thread of the run.
    pub thread: ThreadId,
    /// The folder to create. It must not exist yet.
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub out: PathBuf,
}

/// `episode verify …`
#[derive(clap::Args, Debug)]
pub struct EpisodeVerify {
    /// The folder with the run artifacts.
    #[arg(value_name = "DIR", value_parser = path())]
    pub folder: PathBuf,
    /// The published keys of a gateway. If given, one of them must have signed the manifest.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub jwks: Option<PathBuf>,
}

/// `episode show …`
#[derive(clap::Args, Debug)]
pub struct EpisodeShow {
    /// The folder with the run artifacts.
    #[arg(value_name = "DIR", value_parser = path())]
    pub folder: PathBuf,
}
