//! `archive …`

use std::path::PathBuf;

use clap::Subcommand;
use countersign_domain::primitives::id::ThreadId;

/// `archive …`
#[derive(Subcommand, Debug)]
pub enum ArchiveCommand {
    /// List archives with their versions, size and file.
    List(ArchiveList),
    /// Verify archive files offline.
    ///
    /// Needs only published keys: no database and no keyring. Exits with 0 if all files are sound.
    Verify(ArchiveVerify),
    /// Restore a thread's archived versions into the database and remove the files.
    ///
    /// First remove `[retain]` from the policy, or a worker archives the versions again. While a gateway archives or erases
    /// versions, the command is refused with `wrong_state`: retry it a moment later.
    Restore(ArchiveRestore),
}

/// `archive list …`
#[derive(clap::Args, Debug)]
pub struct ArchiveList {
    /// Only the archives of this thread.
    pub thread: Option<ThreadId>,
}

/// `archive verify …`
#[derive(clap::Args, Debug)]
pub struct ArchiveVerify {
    /// The archive files.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The gateway's published keys, from `/.well-known/jwks.json`.
    #[arg(long, value_name = "FILE")]
    pub jwks: PathBuf,
}

/// `archive restore …`
#[derive(clap::Args, Debug)]
pub struct ArchiveRestore {
    /// The id of the thread.
    pub thread: ThreadId,
}
