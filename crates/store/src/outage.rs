//! Outages: reasons why a database is temporarily unavailable, as opposed to errors of this program.

use std::fmt;
use std::io::{self, ErrorKind};

/// The reason why the database is unavailable. The caller can only try again later, after an operator or the system has
/// solved the problem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outage {
    /// It accepts no connection or does not answer.
    Down,
    ReadOnly,
    /// Its disk is full.
    Full,
    /// Reading from or writing to its disk fails.
    Disk,
    Damaged,
    /// Its files are not the files that this process opened.
    Replaced,
}

impl Outage {
    /// Returns the outage that an error of a database file means.
    pub(super) fn of_file(error: &io::Error) -> Self {
        match error.kind() {
            // Missing permissions look the same to a caller: reads may work and writes do not.
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => Self::ReadOnly,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Self::Full,
            // Other errors of an open file come from the disk or its driver.
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
