use super::*;
use crate::chain::hash::Digest;
use crate::chain::jws::{self, TokenType};
use crate::episode::artefacts::{PAUSES_TOLD_MAX, Timeline};
use crate::episode::event_line::{EVENTS_MAX, EventRecord};
use crate::episode::samples::{event, folder, happened, paused};
use crate::json::canonical::canonical;
use crate::keys::{KeyUse, Keys};
use crate::primitives::id::ThreadId;
use crate::primitives::time::Timestamp;

mod events;
mod files;
mod foreign;
mod signed;

fn codes(folder: &Folder) -> Vec<&'static str> {
    let (_, report) = verify(folder, SignatureRequirement::Unchecked);
    report.findings.iter().map(|it| it.code.as_str()).collect()
}

fn bytes<'f>(folder: &'f mut Folder, file: &str) -> &'f mut Vec<u8> {
    let (_, content) = folder.entries.iter_mut().find(|it| it.0 == file).unwrap();
    let FileContent::Bytes(bytes) = content else { panic!("it is no file") };
    bytes
}

/// Changes a manifest or a state as JSON.
fn edit(folder: &mut Folder, file: &str, change: impl FnOnce(&mut Value)) {
    let bytes = bytes(folder, file);
    let mut value: Value = serde_json::from_slice(bytes).unwrap();
    change(&mut value);
    *bytes = (canonical(&value) + "\n").into_bytes();
}

/// Makes the manifest match the files, like an attacker who edits both.
fn covered_up(folder: &mut Folder) {
    let now: Vec<(String, Vec<u8>)> = folder
        .entries
        .iter()
        .filter_map(|(name, content)| match content {
            FileContent::Bytes(bytes) => Some((name.clone(), bytes.clone())),
            _ => None,
        })
        .collect();
    edit(folder, "manifest.json", |manifest| {
        for entry in manifest["files"].as_array_mut().unwrap() {
            let (_, bytes) = now.iter().find(|it| entry["name"] == it.0.as_str()).unwrap();
            entry["sha256"] = Digest::of_file(bytes).to_string().into();
            entry["size_bytes"] = bytes.len().into();
        }
    });
}

/// Returns the files of a folder with their bytes.
fn files(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let bytes = |(name, content): &(String, FileContent)| match content {
        FileContent::Bytes(bytes) => (name.clone(), bytes.clone()),
        _ => panic!("ours are files"),
    };
    folder.entries.iter().map(bytes).collect()
}

/// Returns copies with one flipped bit, another bit in each byte.
fn flipped(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len()).map(|place| {
        let mut flipped = bytes.to_vec();
        flipped[place] ^= 1 << (place % 8);
        flipped
    })
}

#[test]
fn written_run_verifies() {
    for status in ["ok", "error", "vetoed", "aborted", "partial"] {
        let (_, report) = verify(&folder(happened(status)), SignatureRequirement::Unchecked);
        assert_eq!(report.verdict(), RunVerification::Verified, "{report:?}");
        assert_eq!(report.notes.iter().map(|it| it.code).collect::<Vec<_>>(), [Note::NotSigned]);
    }
}

#[test]
fn pending_run_without_manifest_could_not_tell() {
    let (_, report) = verify(&folder(paused()), SignatureRequirement::Unchecked);
    assert!(report.findings.is_empty(), "{report:?}");
    assert_eq!(report.verdict(), RunVerification::CouldNotTell);
}

#[test]
fn report_has_a_bounded_number_of_findings() {
    let mut folder = folder(happened("ok"));
    for at in 0..2 * FINDINGS_MAX {
        folder.entries.push((format!("more-{at}"), FileContent::NotAFile));
    }
    let (_, report) = verify(&folder, SignatureRequirement::Unchecked);
    assert_eq!(report.findings.len(), FINDINGS_MAX);
    assert!(report.omitted > 0);
}

#[test]
fn codes_are_unique() {
    let all = || Code::ALL.iter().map(|it| it.as_str()).chain(Note::ALL.iter().map(|it| it.as_str()));
    let apart: std::collections::BTreeSet<_> = all().collect();
    assert_eq!(apart.len(), all().count());
}
