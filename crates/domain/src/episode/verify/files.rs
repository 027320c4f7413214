//! Checks that the files are those of the manifest, to the byte.

use std::collections::BTreeSet;

use super::parts::{CheckExtent, RunSection};
use super::{FileContent, Folder, RunFindings, SignatureRequirement, read_manifest};
use crate::chain::hash::Digest;
use crate::episode::Artefact;
use crate::episode::finding::{Code, Note, RunFinding};
use crate::episode::manifest::{FileEntry, Manifest};

/// Maximum length of a name. Some systems refuse longer ones.
const NAME_CHARS_MAX: usize = 128;

/// Files of every finished episode.
const ALWAYS: [Artefact; 2] = [Artefact::Events, Artefact::State];

pub(super) fn check(folder: &Folder, signature: SignatureRequirement<'_>, found: &mut RunFindings) -> Option<Manifest> {
    let mut seen = BTreeSet::new();
    for (name, content) in &folder.entries {
        checked_name(name, &mut seen, found);
        match content {
            FileContent::NotAFile => found.add(RunFinding::of(Code::NotAFile, name)),
            FileContent::TooLong => found.add(RunFinding::of(Code::TooLong, name)),
            FileContent::Bytes(_) => {}
        }
    }
    found.part(RunSection::Files, CheckExtent::Unchecked);
    found.part(RunSection::Signature, CheckExtent::Unchecked);
    let manifest = folder.bytes(Artefact::Manifest).and_then(|it| read_manifest(it, found))?;
    found.part(RunSection::Files, CheckExtent::Checked);
    let mut named = BTreeSet::new();
    for entry in &manifest.files {
        // The manifest comes from outside, so its names are checked before any is used.
        checked_name(&entry.name, &mut named, found);
        checked_kind(entry, found);
        checked_bytes(folder, entry, found);
    }
    for artefact in ALWAYS.into_iter().filter(|it| !manifest.files.iter().any(|entry| entry.name == it.file())) {
        found.add(RunFinding::of(Code::Missing, artefact.file()));
    }
    let listed = |name: &str| manifest.files.iter().any(|it| it.name == name);
    // An extra file could be taken for a part of the run.
    for (name, _) in folder.entries.iter().filter(|it| it.0 != Artefact::Manifest.file() && !listed(&it.0)) {
        found.add(RunFinding::of(Code::Unexpected, name));
    }
    checked_signature(&manifest, signature, found);
    Some(manifest)
}

/// Returns whether a name can only mean one file of this folder, on every system that it may be copied to.
pub(super) fn is_plain_name(name: &str) -> bool {
    let plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'_' | b'-');
    let begins = name.bytes().next().is_some_and(|it| it.is_ascii_alphanumeric());
    // A trailing dot is dropped by Windows, so it would mean another file there.
    begins && name.bytes().all(plain) && name.len() <= NAME_CHARS_MAX && !name.ends_with('.')
}

fn checked_name(name: &str, seen: &mut BTreeSet<String>, found: &mut RunFindings) {
    if !is_plain_name(name) {
        found.add(RunFinding::of(Code::Name, name));
    }
    let lower = name.to_lowercase();
    // On a file system that ignores case, `Manifest.json` is the manifest.
    let disguised = Artefact::of_file(&lower).is_some() && lower != name;
    if !seen.insert(lower) || disguised {
        found.add(RunFinding::of(Code::NameTwice, name));
    }
}

fn checked_kind(entry: &FileEntry, found: &mut RunFindings) {
    let by_name = Artefact::of_file(&entry.name).map(Artefact::kind);
    let by_kind = Artefact::ALL.into_iter().find(|it| it.kind() == entry.kind).map(Artefact::file);
    let fits = by_name.is_none_or(|kind| kind == entry.kind) && by_kind.is_none_or(|file| file == entry.name);
    // A manifest cannot contain its own hash.
    if !fits || entry.name == Artefact::Manifest.file() {
        found.add(RunFinding::of(Code::Kind, &entry.name));
    }
}

fn checked_bytes(folder: &Folder, entry: &FileEntry, found: &mut RunFindings) {
    match folder.entries.iter().find(|it| it.0 == entry.name).map(|it| &it.1) {
        None => found.add(RunFinding::of(Code::Missing, &entry.name)),
        Some(FileContent::Bytes(bytes)) => {
            if bytes.len() as u64 != entry.size_bytes {
                found.add(RunFinding::of(Code::Size, &entry.name));
            }
            if Digest::of_file(bytes) != entry.sha256 {
                found.add(RunFinding::of(Code::Hash, &entry.name));
            }
        }
        // Reported before.
        Some(FileContent::NotAFile | FileContent::TooLong) => {}
    }
}

fn checked_signature(manifest: &Manifest, signature: SignatureRequirement<'_>, found: &mut RunFindings) {
    let file = Artefact::Manifest.file();
    match (signature, &manifest.signer) {
        // Without a required signature its absence is worth a note, but no violation.
        (SignatureRequirement::Unchecked, None) => found.note(Note::NotSigned, file),
        (SignatureRequirement::Unchecked, Some(_)) => found.note(Note::SignatureUnchecked, file),
        (SignatureRequirement::By(_), None) => found.add(RunFinding::of(Code::Unsigned, file)),
        (SignatureRequirement::By(keys), Some(_)) if !manifest.is_signed_by(keys) => {
            found.add(RunFinding::of(Code::Signature, file));
        }
        (SignatureRequirement::By(_), Some(_)) => found.part(RunSection::Signature, CheckExtent::Checked),
    }
}
