//! Archives: ranges of versions that were moved from the database to files.

use serde::{Deserialize, Serialize};

use crate::chain::hash::Digest;
use crate::chain::verify_export::{ExportError, VerifiedChain};
use crate::keys::PublicKeys;
use crate::primitives::id::ThreadId;
use crate::primitives::time::Timestamp;

mod content;

pub use content::{ArchiveContent, ArchivedVersion};

/// An archive ends with the first full state after this number of versions. The ranges follow from the rows alone, so a
/// run that restarts after an interruption writes the same file.
pub const VERSIONS_MIN: u64 = 16;

/// The size limit of an uncompressed archive file. A larger range stays in the database.
pub const PLAIN_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The retention settings of a policy. Without them nothing leaves the database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetentionPolicy {
    /// The number of latest versions that stay in the database.
    pub versions: Option<u64>,
    /// Versions that were the head within this number of days stay in the database.
    pub days: Option<u64>,
    /// Archived values are erased this number of days after their version stopped being the head.
    pub erase_after_days: Option<u64>,
}

impl RetentionPolicy {
    /// Checks that a version may be archived. `left` is the time at which the next version replaced it as the head.
    /// Both limits, `versions` and `days`, must allow it.
    pub fn lets_go(&self, version: u64, left: Timestamp, head: u64, now: Timestamp) -> bool {
        self.can_ever_archive(version, head) && self.days.is_none_or(|it| are_over(it, left, now))
    }

    /// Checks that the `versions` limit allows archiving, whatever the age of the version.
    pub fn can_ever_archive(&self, version: u64, head: u64) -> bool {
        self.versions.is_none_or(|it| head.saturating_sub(version) >= it)
    }

    /// Checks that the values of an archived version may be erased.
    pub fn may_erase(&self, left: Timestamp, now: Timestamp) -> bool {
        self.erase_after_days.is_some_and(|it| are_over(it, left, now))
    }
}

fn are_over(days: u64, since: Timestamp, now: Timestamp) -> bool {
    // Saturation makes an absurdly large number of days mean "never" and not "at once".
    let millis = i64::try_from(days).unwrap_or(i64::MAX).saturating_mul(DAY_MILLIS);
    now.millis().saturating_sub(since.millis()) >= millis
}

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;

/// A range of versions of one thread that is stored in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    pub thread: ThreadId,
    /// The first version. Its state is stored in full.
    pub from: u64,
    pub to: u64,
    /// The time since which no version of the range was the head: the latest commit time of any of them and of the next
    /// version. The latest time is used because a clock may have been set back. Older archives have the commit time of
    /// the next version.
    pub left: Timestamp,
    /// The SHA-256 of the current file.
    pub file: Digest,
    pub bytes: u64,
    /// The length of the uncompressed text. Reading stops there, so a manipulated file cannot exhaust memory.
    pub plain_bytes: u64,
    /// The policy whose retention settings allowed the archive.
    pub policy: Digest,
    pub at: Timestamp,
    pub kept: ArchiveContentState,
}

/// The data that an archive's file still has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "as", rename_all = "snake_case", deny_unknown_fields)]
pub enum ArchiveContentState {
    /// All data, with values.
    Whole {},
    /// All data without values. The file with the values is being deleted.
    Erasing { at: Timestamp, policy: Digest },
    /// All data without values. The file with the values is deleted.
    Erased { at: Timestamp, policy: Digest },
}

/// The stored code of [`ArchiveContentState::Erasing`].
pub const ERASING: &str = "erasing";

impl ArchiveContentState {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Whole {} => "whole",
            Self::Erasing { .. } => ERASING,
            Self::Erased { .. } => "erased",
        }
    }

    pub const fn has_values(&self) -> bool {
        matches!(self, Self::Whole {})
    }
}

/// The location of an archived transition. The database keeps it so that the transition can be found by its digest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchivedLocation {
    pub transition: Digest,
    pub thread: ThreadId,
    pub version: u64,
}

/// The number of versions, counted from version 0, that are archived and erased.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchivalProgress {
    pub archived: u64,
    pub erased: u64,
}

impl ArchivalProgress {
    /// Returns the first version whose change can still be shown. The change of a version needs the state before it.
    pub const fn first_explained_version(&self) -> u64 {
        // The first version after an erased range has no previous state, so its change is unknown.
        if self.erased == 0 { 0 } else { self.erased + 1 }
    }

    /// Checks that nothing is archived. The member is then omitted, so older rows keep their bytes and their seal.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// An archive file that fails the offline check.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("version {version}: {what}")]
pub struct ArchiveCheckError {
    pub version: u64,
    pub what: &'static str,
}

/// Checks a file with published keys: signatures, chain links, and complete changes between state roots. The roots are
/// not compared with the states here, because that requires the keyring. Each read of a state compares them.
pub fn check(content: &ArchiveContent, keys: &PublicKeys) -> Result<(), ArchiveCheckError> {
    let mut chain: Option<VerifiedChain> = None;
    for it in &content.entries {
        let exhibit = it.exhibit();
        let spoiled = |ExportError { what, .. }: ExportError| ArchiveCheckError { version: it.version, what };
        match &mut chain {
            // Without an issuer a file that another gateway signed could not be detected.
            None if keys.issuer().is_none() => {
                return Err(ArchiveCheckError { version: it.version, what: "the published keys name no issuer" });
            }
            None => chain = Some(VerifiedChain::begin(&exhibit, keys).map_err(spoiled)?),
            Some(chain) => chain.follow(&exhibit, keys).map_err(spoiled)?,
        }
    }
    Ok(())
}
