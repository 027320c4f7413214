//! `archive …`

use std::path::PathBuf;

use clap::Subcommand;

use crate::domain::primitives::id::ThreadId;

/// `archive …`
#[derive(Subcommand, Debug)]
pub enum Archive {
    /// Name the archives that there are.
    List(ArchiveList),
    /// Check files by published keys, with no database and no keyring.
    Verify(ArchiveVerify),
    /// Put what archives hold of a thread back into the database.
    Restore(ArchiveRestore),
}

/// `archive list …`
#[derive(clap::Args, Debug)]
pub struct ArchiveList {
    /// Only those of this thread.
    pub thread: Option<ThreadId>,
}

/// `archive verify …`
#[derive(clap::Args, Debug)]
pub struct ArchiveVerify {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The gateway's published keys.
    #[arg(long, value_name = "FILE")]
    pub jwks: PathBuf,
}

/// `archive restore …`
#[derive(clap::Args, Debug)]
pub struct ArchiveRestore {
    /// The thread.
    pub thread: ThreadId,
}
