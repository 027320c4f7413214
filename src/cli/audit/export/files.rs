//! Reads the files of an export: published keys, pages of chains, archives and receipts.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use countersign_adapters::archives::{read_bounded, unpacked};
use countersign_domain::chain::verify_export::ExportedEntry;
use countersign_domain::json::parse::{DEPTH_CEILING, ParseLimits, parse};
use countersign_domain::keys::{KeyState, PublicKeys};
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::threads::archive::PLAIN_BYTES_MAX;
use serde_json::Value;

use super::{AuditedExport, ExportError, chain};
use crate::cli::CliError;

/// The limit on nested folders.
const FOLDERS_MAX: usize = 8;

/// The limit on all files together, unpacked. Parsing needs several times as much memory.
const ALL_BYTES_MAX: u64 = 2 * PLAIN_BYTES_MAX;

/// The limit on a set of published keys.
const KEYS_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The name of the published keys in an export.
const KEYS: &str = "jwks.json";

/// The trusted keys and their source.
pub struct TrustedKeys {
    pub place: String,
    pub believed: PublicKeys,
    /// The export's own keys, if the user named other keys.
    own: Option<PublicKeys>,
}

#[derive(Default)]
pub struct ExportFiles {
    pub pieces: BTreeMap<ThreadId, Vec<ChainSegment>>,
    pub receipts: Vec<(String, String)>,
    bytes: u64,
}

/// A part of a chain from one file: consecutive versions.
pub struct ChainSegment {
    pub file: String,
    pub items: Vec<ExportedEntry>,
    pub is_archive: bool,
    /// Whether more pages follow.
    pub more: bool,
}

impl ChainSegment {
    /// Returns the first and the last version.
    pub fn ends(&self) -> (u64, u64) {
        let version = |it: Option<&ExportedEntry>| it.map_or(0, |it| it.exhibit().version);
        (version(self.items.first()), version(self.items.last()))
    }
}

impl TrustedKeys {
    /// Reads the keys that the user named, or those of the export.
    pub fn read(folder: &Path, named: Option<&Path>) -> Result<Self, CliError> {
        let own = folder.join(KEYS);
        let Some(path) = named else {
            let bytes = read_bounded(&own, KEYS_BYTES_MAX).map_err(|_| {
                CliError::Given(format!(
                    "there is no readable {}: save the response of `GET /.well-known/jwks.json` there, or pass a \
                     set that you trust with --jwks FILE",
                    own.display()
                ))
            })?;
            return Ok(Self { place: own.display().to_string(), believed: key_set(&own, &bytes)?, own: None });
        };
        let unread = |source| CliError::Read { what: path.display().to_string(), source };
        let mut bytes = Vec::new();
        // The user names this file explicitly, so a symbolic link is followed. In the export none is.
        File::open(path).and_then(|it| it.take(KEYS_BYTES_MAX).read_to_end(&mut bytes)).map_err(unread)?;
        let believed = key_set(path, &bytes)?;
        // An invalid key set in the export is no error, because it is not trusted anyway.
        let own = read_bounded(&own, KEYS_BYTES_MAX).ok().and_then(|it| key_set(&own, &it).ok());
        Ok(Self { place: path.display().to_string(), believed, own })
    }

    /// Returns a doubt if the export lists a trusted key as revoked. An older key set does not contain the revocation.
    pub fn doubt(&self) -> Option<String> {
        let revoked = self.own.iter().flat_map(PublicKeys::iter).find(|it| {
            let believed = self.believed.public(it.key_use(), it.kid());
            it.state() == KeyState::Revoked && believed.is_some_and(|it| it.state() != KeyState::Revoked)
        })?;
        Some(format!(
            "according to the export's own {KEYS} the key {} was revoked, but {} does not list that",
            revoked.kid(),
            self.place
        ))
    }
}

fn key_set(path: &Path, bytes: &[u8]) -> Result<PublicKeys, CliError> {
    let named = path.display();
    let keys = parse(bytes, &ParseLimits { bytes_max: bytes.len(), ..ParseLimits::default() });
    let keys = keys.map_err(|error| CliError::Given(format!("{named} is not strict JSON: {}", error.code.as_str())))?;
    PublicKeys::from_jwks(&keys).map_err(|error| CliError::Given(format!("{named} is not a valid key set: {error}")))
}

/// Returns all files of the folder and its subfolders, sorted by name. Symbolic links are not followed.
fn found(folder: &Path, deep: usize) -> Result<Vec<PathBuf>, CliError> {
    let failed = |source| CliError::Read { what: folder.display().to_string(), source };
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // `file_type` does not follow links, so a link to a folder cannot lead out of the export.
        if deep > 0 && entry.file_type().map_err(failed)?.is_dir() {
            all.extend(found(&entry.path(), deep - 1)?);
        } else {
            all.push(entry.path());
        }
    }
    // The order makes the output the same on every system.
    all.sort();
    Ok(all)
}

impl ExportFiles {
    /// Reads all files, and records those that do not belong to an export.
    pub fn read(folder: &Path, keys: &TrustedKeys, audited: &mut AuditedExport) -> Result<Self, CliError> {
        let mut files = Self::default();
        for path in found(folder, FOLDERS_MAX)? {
            let file = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            if file == KEYS && keys.own.is_none() {
                continue;
            }
            match files.read_one(&path, &file) {
                Ok(Some(())) => {}
                Ok(None) => audited.passed_over.push(file),
                Err(UnreadableFile::Broken(version, broken)) => audited.find(file, version, broken),
                // The file could contain a finding, so the audit has no result without it.
                Err(UnreadableFile::Failed(error)) => {
                    audited.doubts.push(format!("{file}: it cannot be read: {error}"))
                }
            }
            // The sum is checked after each file, so that memory stays bounded with many files.
            if files.bytes > ALL_BYTES_MAX {
                return Err(CliError::Given(format!(
                    "{} is too large to audit at once: move threads into separate folders and audit each folder",
                    folder.display()
                )));
            }
        }
        Ok(files)
    }

    fn read_one(&mut self, path: &Path, file: &str) -> Result<Option<()>, UnreadableFile> {
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        let is_archive = name.ends_with(".json.gz");
        if name == KEYS || !(is_archive || name.ends_with(".json") || name.ends_with(".jwt")) {
            return Ok(None);
        }
        let mut bytes = read_bounded(path, PLAIN_BYTES_MAX).map_err(UnreadableFile::Failed)?;
        if is_archive {
            let whole = unpacked(&bytes, PLAIN_BYTES_MAX);
            bytes = whole.ok_or(of_all(chain("the file is not an archive, or it is incomplete")))?.into_bytes();
        }
        // The unpacked size counts, because that is the size in memory.
        self.bytes += bytes.len() as u64;
        if name.ends_with(".jwt") {
            // A replaced byte makes the token invalid, so the file becomes a finding.
            let text = String::from_utf8_lossy(&bytes);
            // Only one line break is removed, because other white space makes a token invalid everywhere else too.
            let bare = text.strip_suffix('\n').map_or(text.as_ref(), |it| it.strip_suffix('\r').unwrap_or(it));
            self.receipts.push((file.to_owned(), bare.to_owned()));
            return Ok(Some(()));
        }
        let (thread, piece) = piece(&bytes, file, is_archive)?;
        self.pieces.entry(thread).or_default().push(piece);
        Ok(Some(()))
    }
}

enum UnreadableFile {
    Broken(Option<u64>, ExportError),
    Failed(io::Error),
}

const fn of_all(broken: ExportError) -> UnreadableFile {
    UnreadableFile::Broken(None, broken)
}

/// Reads a page of a chain or an archive. Both contain versions in the same format.
fn piece(bytes: &[u8], file: &str, is_archive: bool) -> Result<(ThreadId, ChainSegment), UnreadableFile> {
    // A gateway may be configured for deeper states than the default, so the highest limit applies.
    let limits = ParseLimits { bytes_max: bytes.len(), depth_max: DEPTH_CEILING };
    let document = parse(bytes, &limits)
        .map_err(|error| of_all(ExportError { code: error.code.as_str(), what: "it is not strict JSON" }))?;
    let entries = document.get("entries").and_then(Value::as_array);
    let entries = entries.ok_or(of_all(chain("it is not a page of a chain: it has no `entries`")))?;
    let mut items: Vec<ExportedEntry> = Vec::with_capacity(entries.len());
    for entry in entries {
        let next = items.last().map(|it| it.exhibit().version + 1);
        let item = ExportedEntry::read(entry).map_err(|broken| UnreadableFile::Broken(next, broken))?;
        if next.is_some_and(|it| it != item.exhibit().version) {
            return Err(UnreadableFile::Broken(next, chain("a version is missing, duplicated or out of order")));
        }
        items.push(item);
    }
    let thread = items.first().map(|it| it.exhibit().statement.thread.clone());
    let thread = thread.ok_or(of_all(chain("it has no versions")))?;
    let more = document.get("next_page_token").is_some_and(|it| !it.is_null());
    let piece = ChainSegment { file: file.to_owned(), items, is_archive, more };
    if is_archive {
        let said = |name: &str| document.get(name);
        let (from, to) = piece.ends();
        // No signature covers these members, so they must agree with the signed statements.
        let named = said("countersign").and_then(Value::as_str) == Some("archive")
            && said("thread").and_then(Value::as_str) == Some(thread.as_str())
            && (said("from").and_then(Value::as_u64), said("to").and_then(Value::as_u64)) == (Some(from), Some(to));
        if !named {
            return Err(of_all(chain("it does not contain the versions that it names")));
        }
    }
    Ok((thread, piece))
}
