//! Checks whether a folder is the episode that it claims to be, as a pure function of names and bytes.
//!
//! Each of three questions has a module. Are these the files that the manifest names? Do the events link to one
//! another? Does the state follow from them? An episode of an older or another system may have no evidence for an
//! answer. That is a note, and neither a yes nor a no. The report has the coverage of each part.

mod chain;
mod files;
mod implied;
mod parts;
mod projection;
mod shape;

use serde_json::{Value, json};

use super::Artefact;
use super::event_line;
use super::event_line::EventLine;
use super::finding::{Code, Note, RunFinding, RunNote};
use super::manifest::{self, Manifest};
use crate::json::parse::parse;
use crate::keys::PublicKeys;
use crate::primitives::named_enum::named_enum;
pub use parts::{CheckExtent, CheckExtents, RunSection};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileContent {
    /// A plain file with these bytes.
    Bytes(Vec<u8>),
    /// A plain file that is longer than [`FILE_BYTES_MAX`].
    TooLong,
    /// A link, a folder, a pipe or a device.
    NotAFile,
}

/// Longer files are of no run: a timeline of the longest is some megabytes.
pub const FILE_BYTES_MAX: u64 = event_line::BYTES_MAX as u64;
/// Findings that are listed; a folder with more is wrong as a whole.
pub const FINDINGS_MAX: usize = 200;

/// Content of a folder, by name. A name that is no valid text is converted as well as possible.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Folder {
    /// Names with their content. A name may occur twice, which no real folder has, and is then reported.
    pub entries: Vec<(String, FileContent)>,
}

/// Whether a signature is required.
#[derive(Clone, Copy, Debug)]
pub enum SignatureRequirement<'k> {
    /// The report says whether there is one, and does not check it.
    Unchecked,
    /// It is required, by one of these keys.
    By(&'k PublicKeys),
}

named_enum! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum RunVerification {
        /// The files are those of the episode, and belong together.
        Verified = "verified",
        Refused = "refused",
        /// There is no violation, and no proof that the folder is complete.
        CouldNotTell = "could_not_tell",
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunReport {
    /// Id of the episode, if the folder has it.
    pub episode_id: Option<String>,
    pub findings: Vec<RunFinding>,
    /// Number of further violations.
    pub omitted: usize,
    /// Questions without an answer.
    pub notes: Vec<RunNote>,
    pub parts: CheckExtents,
}

impl RunReport {
    pub fn verdict(&self) -> RunVerification {
        if !self.findings.is_empty() {
            RunVerification::Refused
        } else if self.notes.iter().any(|it| it.code == Note::NotFinished) {
            RunVerification::CouldNotTell
        } else {
            RunVerification::Verified
        }
    }

    /// Returns whether there is no violation, and a manifest proves that no file is missing.
    pub fn is_whole(&self) -> bool {
        self.verdict() == RunVerification::Verified
    }

    pub fn json(&self) -> Value {
        json!({
            "verdict": self.verdict().as_str(), "episode_id": self.episode_id, "omitted": self.omitted,
            "findings": self.findings.iter().map(RunFinding::json).collect::<Vec<_>>(),
            "notes": self.notes.iter().map(RunNote::json).collect::<Vec<_>>(),
            "parts": self.parts.json(),
        })
    }
}

/// Content of a folder, parsed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunFolder {
    pub episode_id: Option<String>,
    /// Manifest, if there is one.
    pub manifest: Option<Manifest>,
    pub lines: Vec<EventLine>,
    /// State, if there is a readable one.
    pub state: Option<Value>,
}

/// Findings collected during the check.
#[derive(Default)]
struct RunFindings {
    wrong: Vec<RunFinding>,
    untold: Vec<RunNote>,
    parts: CheckExtents,
}

impl RunFindings {
    fn add(&mut self, finding: RunFinding) {
        self.wrong.push(finding);
    }

    fn note(&mut self, note: Note, file: &str) {
        self.untold.push(RunNote::of(note, file));
    }

    fn part(&mut self, part: RunSection, extent: CheckExtent) {
        self.parts.set(part, extent);
    }
}

impl Folder {
    /// Returns the bytes of a file, if it is a plain file.
    pub fn bytes(&self, artefact: Artefact) -> Option<&[u8]> {
        self.entries.iter().find_map(|(name, content)| match content {
            FileContent::Bytes(bytes) if name == artefact.file() => Some(bytes.as_slice()),
            _ => None,
        })
    }
}

pub fn verify(folder: &Folder, signature: SignatureRequirement<'_>) -> (RunFolder, RunReport) {
    let mut found = RunFindings::default();
    let manifest = files::check(folder, signature, &mut found);
    let mut run = RunFolder { manifest, ..RunFolder::default() };
    if let Some(bytes) = folder.bytes(Artefact::Events) {
        let (lines, wrong) = event_line::read(bytes, Artefact::Events.file());
        found.wrong.extend(wrong);
        run.lines = lines;
    }
    run.state = folder.bytes(Artefact::State).and_then(|it| state(it, &mut found));
    run.episode_id = episode(&run);
    if run.manifest.is_none() && !found.wrong.iter().any(|it| it.code == Code::ManifestMalformed) {
        match run.state.as_ref().and_then(|it| it["outcomes"]["status"].as_str()) {
            // An unfinished run has no manifest yet, which is no violation.
            Some("pending") => found.note(Note::NotFinished, Artefact::Manifest.file()),
            _ => found.add(RunFinding::of(Code::ManifestMissing, Artefact::Manifest.file())),
        }
    }
    chain::check(&run, &mut found);
    projection::check(folder, &run, &mut found);
    let omitted = found.wrong.len().saturating_sub(FINDINGS_MAX);
    // People read the report, so its length is limited.
    found.wrong.truncate(FINDINGS_MAX);
    let RunFindings { wrong: findings, untold: notes, parts } = found;
    let report = RunReport { episode_id: run.episode_id.clone(), findings, omitted, notes, parts };
    (run, report)
}

/// Returns the id of the episode: the manifest's, else the state's, else the first event's.
fn episode(run: &RunFolder) -> Option<String> {
    let of_state = run.state.as_ref().and_then(|it| it["episode"]["id"].as_str()).map(str::to_owned);
    let of_manifest = run.manifest.as_ref().map(|it| it.episode_id.clone());
    // The manifest may be signed, so it takes precedence.
    of_manifest.or(of_state).or_else(|| run.lines.first().map(|it| it.record.episode_id.clone()))
}

/// Reads a state of the known version, with the members that every state has.
fn state(bytes: &[u8], found: &mut RunFindings) -> Option<Value> {
    let file = Artefact::State.file();
    let Ok(state) = parse(bytes, &event_line::LIMITS) else {
        found.add(RunFinding::of(Code::StateMalformed, file));
        return None;
    };
    let wrong = shape::wrong(&state);
    found.wrong.extend(wrong.iter().map(|it| RunFinding::about(Code::StateMalformed, file, it.as_str())));
    wrong.is_empty().then_some(state)
}

/// Reads a manifest. A separate function, so that the file checks do not depend on it.
fn read_manifest(bytes: &[u8], found: &mut RunFindings) -> Option<Manifest> {
    let read = manifest::read(bytes);
    if read.is_none() {
        found.add(RunFinding::of(Code::ManifestMalformed, Artefact::Manifest.file()));
    }
    read
}

#[cfg(test)]
mod tests;
