//! Archives: stretches of a thread's past that are kept in files and no longer in the database.

use serde::{Deserialize, Serialize};

use crate::domain::chain::hash::Digest;
use crate::domain::chain::verify_export::{ExportError, VerifiedChain};
use crate::domain::keys::PublicKeys;
use crate::domain::primitives::id::ThreadId;
use crate::domain::primitives::time::Timestamp;

mod content;

pub use content::{ArchiveContent, ArchivedVersion};

/// An archive ends with the first whole state after so many versions: which stretches there are follows from the rows
/// alone, so that a run that was cut off comes to the same file again.
pub const VERSIONS_MIN: u64 = 16;

/// No file of more plain text is read. A stretch that comes to more stays in the database.
pub const PLAIN_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What a policy says of a thread's past. Nothing leaves the database unless one does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetentionPolicy {
    /// The last so many versions stay whole in the database.
    pub versions: Option<u64>,
    /// Versions that were the head within so many days stay.
    pub days: Option<u64>,
    /// The values of versions that were not the head for so many days are erased, once they are in an archive.
    pub erase_after_days: Option<u64>,
}

impl RetentionPolicy {
    /// Whether a version may go into an archive that was followed by the next at `left`, in a thread that has come so far.
    /// It stays while either says so.
    pub fn lets_go(&self, (version, left): (u64, Timestamp), head: u64, now: Timestamp) -> bool {
        self.can_ever_archive(version, head) && self.days.is_none_or(|it| are_over(it, left, now))
    }

    /// Whether a version might go, if it is only old enough.
    pub fn can_ever_archive(&self, version: u64, head: u64) -> bool {
        self.versions.is_none_or(|it| head.saturating_sub(version) >= it)
    }

    /// Whether the values of an archived version may be erased.
    pub fn may_erase(&self, left: Timestamp, now: Timestamp) -> bool {
        self.erase_after_days.is_some_and(|it| are_over(it, left, now))
    }
}

fn are_over(days: u64, since: Timestamp, now: Timestamp) -> bool {
    let millis = i64::try_from(days).unwrap_or(i64::MAX).saturating_mul(DAY_MILLIS);
    now.millis().saturating_sub(since.millis()) >= millis
}

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;

/// A stretch of a thread's past that is not in the database.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    pub thread: ThreadId,
    /// The first version in it, whose state is whole.
    pub from: u64,
    pub to: u64,
    /// Since when none of them was the head: the latest moment at which any of them or the one after them was committed. A clock may
    /// have gone back; archives of before say when the one after them was committed.
    pub left: Timestamp,
    /// The SHA-256 of the file as it is now.
    pub file: Digest,
    pub bytes: u64,
    /// How long its text is, uncompressed: no more is ever read of it.
    pub plain_bytes: u64,
    /// The policy that let it go.
    pub policy: Digest,
    pub at: Timestamp,
    pub kept: ArchiveContentState,
}

/// What is in an archive's file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "as", rename_all = "snake_case", deny_unknown_fields)]
pub enum ArchiveContentState {
    /// Everything that was taken out of the database.
    Whole {},
    /// Everything but the values: they are erased. The file that had them is being removed.
    Erasing { at: Timestamp, policy: Digest },
    /// Everything but the values, and no other file has them.
    Erased { at: Timestamp, policy: Digest },
}

/// The word of archives whose file with values is being removed.
pub const ERASING: &str = "erasing";

impl ArchiveContentState {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Whole {} => "whole",
            Self::Erasing { .. } => ERASING,
            Self::Erased { .. } => "erased",
        }
    }

    /// Whether the file has the values.
    pub const fn has_values(&self) -> bool {
        matches!(self, Self::Whole {})
    }
}

/// Where a transition is whose version is in an archive: what the database keeps of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchivedLocation {
    pub transition: Digest,
    pub thread: ThreadId,
    pub version: u64,
}

/// How far a thread's past has left the database. Both count versions, from version 0 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchivalProgress {
    pub archived: u64,
    pub erased: u64,
}

impl ArchivalProgress {
    /// The first version of which it can be told what it changed.
    pub const fn first_explained_version(&self) -> u64 {
        if self.erased == 0 { 0 } else { self.erased + 1 }
    }

    /// A thread of which everything is in the database is written as it always was.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// What is wrong with a file that was checked by published keys alone.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("version {version}: {what}")]
pub struct ArchiveCheckError {
    pub version: u64,
    pub what: &'static str,
}

/// Checks a file by published keys: each version signed and linked to the one before, each change complete and from root
/// to root. Whether its states are those roots takes the keyring: they are checked whenever they are read.
pub fn check(content: &ArchiveContent, keys: &PublicKeys) -> Result<(), ArchiveCheckError> {
    let mut chain: Option<VerifiedChain> = None;
    for it in &content.entries {
        let exhibit = it.exhibit();
        let spoiled = |ExportError { what, .. }: ExportError| ArchiveCheckError { version: it.version, what };
        match &mut chain {
            None if keys.issuer().is_none() => {
                return Err(ArchiveCheckError { version: it.version, what: "the keys do not say whose they are" });
            }
            None => chain = Some(VerifiedChain::begin(&exhibit, keys).map_err(spoiled)?),
            Some(chain) => chain.follow(&exhibit, keys).map_err(spoiled)?,
        }
    }
    Ok(())
}
