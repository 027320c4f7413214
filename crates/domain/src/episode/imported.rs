//! An episode imported from a folder, stored byte for byte with the result of its signature check.
//!
//! It has a thread's name, so that users find it among episodes. It is no thread otherwise: it has no flow, policy,
//! state or chain. So nothing about it can be proposed, held, joined, written or verified.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::event_line::phase;
use super::state::RunStatus;
use super::verify::{FileContent, Folder, RunFolder, RunReport, SignatureRequirement, verify};
use crate::chain::hash::{Digest, Tag};
use crate::json::canonical::canonical;
use crate::keys::{KeyState, KeyUse, PublicKeys};
use crate::primitives::id::{PrincipalId, ThreadId};
use crate::primitives::time::Timestamp;

/// Maximum size of a stored folder, because its page reads all of it. The longest normal episode has a tenth.
pub const FOLDER_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Size of one row, far below the limit of either database.
pub const PIECE_BYTES_MAX: usize = 256 * 1024;
/// Prefix of its thread name, before digits of its digest.
const NAME_BEGINS: &str = "imported-";
/// Digits of the digest in the name. Half a digest still makes collisions infeasible.
const NAMED_BY: usize = 32;
/// Maximum length of a task in lists. The files have the whole text.
const TASK_CHARS_MAX: usize = 2_000;
/// Maximum length of a name from a foreign system.
const WORD_CHARS_MAX: usize = 200;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum RunSigner {
    /// No signer: the manifest is not signed.
    Nobody {},
    /// The manifest is signed, and no key was given to check it.
    Unchecked {
        kid: String,
    },
    Gateway {
        kid: String,
    },
    /// The holder of a given key.
    Other {
        /// Issuer that the signature names.
        issuer: String,
        kid: String,
        keys: Value,
    },
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedFile {
    pub name: String,
    /// Plain SHA-256 of its bytes.
    pub sha256: Digest,
    /// Size in bytes.
    pub size_bytes: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunImport {
    /// Thread name under which it is shown.
    pub id: ThreadId,
    /// Digest over names, hashes and sizes of its files.
    pub digest: Digest,
    pub episode_id: String,
    pub task: String,
    pub status: RunStatus,
    pub files: Vec<ImportedFile>,
    pub voucher: RunSigner,
    pub by: PrincipalId,
    pub at: Timestamp,
}

/// A part of an imported folder's bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportChunk {
    /// Import that it belongs to.
    pub import: ThreadId,
    /// Number of the piece, from 0.
    pub number: u64,
    /// Bytes in base64.
    pub bytes: String,
}

/// Result of checking a folder before it is stored.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckedImport {
    pub run: RunFolder,
    pub report: RunReport,
    pub voucher: RunSigner,
}

/// A valid folder is not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImportRejected {
    /// It has more than [`FOLDER_BYTES_MAX`].
    #[error("the folder is larger than 16 MiB and cannot be imported")]
    TooLarge,
    /// It contains something that is no file.
    #[error("the folder contains a link, a folder or a device; only plain files can be imported")]
    NoFiles,
}

/// Returns whether a name is reserved for imported episodes.
pub fn is_name(thread: &ThreadId) -> bool {
    let digits = thread.as_str().strip_prefix(NAME_BEGINS);
    digits.is_some_and(|it| it.len() == NAMED_BY && it.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f')))
}

/// Checks a folder as `episode verify` does, and who signed it. If `given` has keys, one of them must have signed it.
/// Otherwise this gateway must have, if the manifest names one of its keys.
pub fn check(folder: &Folder, own: &PublicKeys, given: Option<&PublicKeys>) -> CheckedImport {
    let (run, unchecked) = verify(folder, SignatureRequirement::Unchecked);
    let named = run.manifest.as_ref().and_then(|it| it.signer.as_ref()).map(|it| it.kid.clone());
    let ours = named.as_ref().is_some_and(|kid| own.public(KeyUse::Chain, kid).is_some());
    let by = given.or(ours.then_some(own));
    let Some(keys) = by else {
        let voucher = named.map_or(RunSigner::Nobody {}, |kid| RunSigner::Unchecked { kid: cut(&kid, WORD_CHARS_MAX) });
        return CheckedImport { run, report: unchecked, voucher };
    };
    let (run, report) = verify(folder, SignatureRequirement::By(keys));
    let signed = |keys| run.manifest.as_ref().and_then(|it| Some((it.signer.as_ref()?, it.signed_by(keys)?)));
    let voucher = match (signed(own), signed(keys)) {
        // The gateway's own signature is stronger evidence than given keys.
        (Some((signer, _)), _) => RunSigner::Gateway { kid: signer.kid.clone() },
        (None, Some((signer, issuer))) => {
            let kid = signer.kid.clone();
            let jwks: Vec<Value> = keys.iter().filter(|it| it.kid() == kid).map(|it| it.jwk()).collect();
            RunSigner::Other { keys: json!({"issuer": issuer, "keys": jwks}), issuer, kid }
        }
        // The report contains the finding in this case.
        (None, None) => RunSigner::Nobody {},
    };
    CheckedImport { run, report, voucher }
}

impl RunImport {
    /// Builds the stored form of a checked folder.
    pub fn of(
        folder: &Folder,
        run: &RunFolder,
        voucher: RunSigner,
        by: PrincipalId,
        at: Timestamp,
    ) -> Result<(Self, Vec<ImportChunk>), ImportRejected> {
        let mut bytes: Vec<(&str, &[u8])> = Vec::with_capacity(folder.entries.len());
        for (name, content) in &folder.entries {
            let FileContent::Bytes(content) = content else { return Err(ImportRejected::NoFiles) };
            bytes.push((name, content));
        }
        // The digest must not depend on the order in which the files were uploaded.
        bytes.sort_unstable();
        if bytes.iter().map(|it| it.1.len() as u64).sum::<u64>() > FOLDER_BYTES_MAX {
            return Err(ImportRejected::TooLarge);
        }
        let file = |(name, bytes): &(&str, &[u8])| ImportedFile {
            name: (*name).to_owned(),
            sha256: Digest::of_file(bytes),
            size_bytes: bytes.len() as u64,
        };
        let files: Vec<ImportedFile> = bytes.iter().map(file).collect();
        let digest = Digest::of(Tag::Imported, &[canonical(&json!(files)).as_bytes()]);
        let id = named(digest);
        let all: Vec<u8> = bytes.iter().flat_map(|it| it.1).copied().collect();
        let pieces = all.chunks(PIECE_BYTES_MAX).zip(0..);
        let piece = |(bytes, number)| ImportChunk { import: id.clone(), number, bytes: STANDARD_NO_PAD.encode(bytes) };
        let pieces = pieces.map(piece).collect();
        let (episode_id, task) = (run.episode_id.as_deref().unwrap_or_default(), task_of(run));
        let status = run.state.as_ref().and_then(|it| it["outcomes"]["status"].as_str()).and_then(RunStatus::named);
        let imported = Self {
            digest,
            episode_id: cut(episode_id, WORD_CHARS_MAX),
            task: cut(task, TASK_CHARS_MAX),
            status: status.unwrap_or(RunStatus::Pending),
            files,
            voucher,
            by,
            at,
            id,
        };
        Ok((imported, pieces))
    }

    /// Returns the number of pieces of its files.
    pub fn pieces(&self) -> u64 {
        self.size_bytes().div_ceil(PIECE_BYTES_MAX as u64)
    }

    /// Returns the total size of its files.
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().map(|it| it.size_bytes).fold(0, u64::saturating_add)
    }

    /// Rebuilds the folder, if these are its pieces in order.
    pub fn folder(&self, pieces: &[ImportChunk]) -> Option<Folder> {
        // Missing or moved pieces would shift the content of files.
        let whole = pieces.len() as u64 == self.pieces()
            && self.size_bytes() <= FOLDER_BYTES_MAX
            && pieces.iter().zip(0..).all(|(it, number)| it.import == self.id && it.number == number);
        let mut all = Vec::new();
        for piece in pieces.iter().filter(|_| whole) {
            all.extend(STANDARD_NO_PAD.decode(&piece.bytes).ok()?);
        }
        let mut folder = Folder::default();
        let mut rest = all.as_slice();
        for file in &self.files {
            let (bytes, after) = rest.split_at_checked(usize::try_from(file.size_bytes).ok()?)?;
            // The pieces come from the database, so each file is compared with its digest.
            if Digest::of_file(bytes) != file.sha256 {
                return None;
            }
            rest = after;
            folder.entries.push((file.name.clone(), FileContent::Bytes(bytes.to_vec())));
        }
        let same = Digest::of(Tag::Imported, &[canonical(&json!(self.files)).as_bytes()]) == self.digest;
        (whole && rest.is_empty() && same && named(self.digest) == self.id).then_some(folder)
    }

    /// Returns the event data for the audit log, without any content of the files.
    pub fn told(&self) -> Value {
        json!({
            "thread": self.id, "digest": self.digest, "files": self.files.len(), "bytes": self.size_bytes(), "by": self.by,
            "voucher": Digest::of(Tag::Imported, &[canonical(&json!(self.voucher)).as_bytes()]),
        })
    }
}

impl RunSigner {
    /// Checks whether the recorded signer signed exactly this episode. If the gateway's own key was revoked since the
    /// import, the result is [`Standing::Revoked`].
    pub fn stands(&self, run: &RunFolder, own: &PublicKeys) -> RunSignerStatus {
        let signer = run.manifest.as_ref().and_then(|it| it.signer.as_ref());
        let by = |keys: &PublicKeys| run.manifest.as_ref().and_then(|it| it.signed_by(keys));
        let holds = match self {
            Self::Nobody {} => signer.is_none(),
            Self::Unchecked { kid } => signer.is_some_and(|it| cut(&it.kid, WORD_CHARS_MAX) == *kid),
            Self::Gateway { kid } => match own.public(KeyUse::Chain, kid).map(|it| it.state()) {
                // A key that was revoked after the import no longer proves anything.
                Some(KeyState::Revoked) => return RunSignerStatus::Revoked,
                Some(_) => by(own).is_some() && signer.is_some_and(|it| it.kid == *kid),
                None => false,
            },
            Self::Other { issuer, kid, keys } => {
                // The row contains the keys that were given, so the signature can be checked again.
                let keys = PublicKeys::from_jwks(keys).ok();
                keys.and_then(|it| by(&it)).as_ref() == Some(issuer) && signer.is_some_and(|it| it.kid == *kid)
            }
        };
        if holds { RunSignerStatus::Holds } else { RunSignerStatus::Broken }
    }
}

/// Current validity of the recorded signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunSignerStatus {
    /// As valid as at the import.
    Holds,
    /// Not trusted: the key was revoked since.
    Revoked,
    /// The files do not match it.
    Broken,
}

fn named(digest: Digest) -> ThreadId {
    let hex: String = digest.bytes().iter().map(|it| format!("{it:02x}")).collect();
    let name = format!("{NAME_BEGINS}{}", &hex[..NAMED_BY]);
    ThreadId::try_from(name).expect("letters, digits and a hyphen are a name")
}

fn task_of(run: &RunFolder) -> &str {
    let of_state = run.state.as_ref().and_then(|it| it["goal"]["task"].as_str());
    let start = run.lines.iter().map(|it| &it.record).find(|it| it.is(phase::START));
    of_state.or_else(|| start?.text("task")).unwrap_or_default()
}

/// Returns the part of a text that is shown.
pub fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
