//! Outages: why a database cannot be used for a while, as opposed to mistakes of this program.

use std::fmt;
use std::io::{self, ErrorKind};

/// Why the database cannot be used. An operator or the machine ends it; the caller can only try again later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outage {
    /// It accepts no connection, or does not answer.
    Down,
    ReadOnly,
    /// Its disk has no room left.
    Full,
    /// Its disk fails to read or to write.
    Disk,
    Damaged,
    /// Its files are no longer those that this process opened.
    Replaced,
}

impl Outage {
    /// What an error about one of the database's files means for the database.
    pub(super) fn of_file(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => Self::ReadOnly,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Self::Full,
            _ => Self::Disk,
        }
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Down => "it is down",
            Self::ReadOnly => "it is read-only",
            Self::Full => "its disk is full",
            Self::Disk => "its disk fails",
            Self::Damaged => "its content is damaged",
            Self::Replaced => "its files were removed or replaced",
        })
    }
}
