//! Whether a folder is the run that it says it is: a pure function over names and bytes.
//!
//! Three questions, one module each: are these the files that the manifest names, do the events hang together, and does
//! the state follow from them. A run by an older or another system may have no evidence for an answer; that is noted,
//! and is neither a yes nor a no. The report says of each part how far it was checked.

mod chain;
mod files;
mod implied;
mod parts;
mod projection;
mod shape;

use serde_json::{Value, json};

use super::Artefact;
use super::event_line;
use super::event_line::Line;
use super::finding::{Code, Finding, Note, Noted};
use super::manifest::{self, Manifest};
use crate::domain::json::parse::parse;
use crate::domain::keys::PublicKeys;
pub use parts::{Extent, Part, Parts};

/// What stands under a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// A plain file with these bytes.
    Bytes(Vec<u8>),
    /// A plain file that is longer than [`FILE_BYTES_MAX`].
    TooLong,
    /// A link, a folder, a pipe, a device.
    NotAFile,
}

/// Longer files are of no run: a timeline of the longest is some megabytes.
pub const FILE_BYTES_MAX: u64 = event_line::BYTES_MAX as u64;
/// Findings that are listed; a folder with more is wrong as a whole.
pub const FINDINGS_MAX: usize = 200;

/// What is in a folder, by name. What is a name in it and no text is given as well as it can be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Folder {
    /// Names with what stands there. A name may stand there twice, as no folder has it: then it is found.
    pub entries: Vec<(String, Content)>,
}

/// Whether a signature must be there.
#[derive(Clone, Copy, Debug)]
pub enum Signature<'k> {
    /// It is told whether there is one, and not checked.
    Unchecked,
    /// It must be there, by one of these keys.
    By(&'k PublicKeys),
}

/// What is said of a folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Its files are those of the run, and belong together.
    Verified,
    /// Something is wrong.
    Refused,
    /// Nothing is wrong, and nothing says that it is whole.
    CouldNotTell,
}

impl Verdict {
    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Refused => "refused",
            Self::CouldNotTell => "could_not_tell",
        }
    }
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Of which run, if the folder says it.
    pub episode_id: Option<String>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// How much more is wrong.
    pub omitted: usize,
    /// What could not be told.
    pub notes: Vec<Noted>,
    /// How far each part was checked.
    pub parts: Parts,
}

impl Report {
    /// In one word.
    pub fn verdict(&self) -> Verdict {
        if !self.findings.is_empty() {
            Verdict::Refused
        } else if self.notes.iter().any(|it| it.code == Note::NotFinished) {
            Verdict::CouldNotTell
        } else {
            Verdict::Verified
        }
    }

    /// Whether nothing is wrong, and a manifest says that nothing is left out.
    pub fn is_whole(&self) -> bool {
        self.verdict() == Verdict::Verified
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "verdict": self.verdict().as_str(), "episode_id": self.episode_id, "omitted": self.omitted,
            "findings": self.findings.iter().map(Finding::json).collect::<Vec<_>>(),
            "notes": self.notes.iter().map(Noted::json).collect::<Vec<_>>(),
            "parts": self.parts.json(),
        })
    }
}

/// What a folder holds, read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Run {
    /// Of which run.
    pub episode_id: Option<String>,
    /// Its manifest, if it has one.
    pub manifest: Option<Manifest>,
    /// Its events, those that can be read.
    pub lines: Vec<Line>,
    /// Its state, if it has one that can be read.
    pub state: Option<Value>,
}

/// What is gathered on the way.
#[derive(Default)]
struct Findings {
    wrong: Vec<Finding>,
    untold: Vec<Noted>,
    parts: Parts,
}

impl Findings {
    fn add(&mut self, finding: Finding) {
        self.wrong.push(finding);
    }

    fn note(&mut self, note: Note, file: &str) {
        self.untold.push(Noted::of(note, file));
    }

    fn part(&mut self, part: Part, extent: Extent) {
        self.parts.set(part, extent);
    }
}

impl Folder {
    /// The bytes of an artefact, if it is there as a plain file.
    pub fn bytes(&self, artefact: Artefact) -> Option<&[u8]> {
        self.entries.iter().find_map(|(name, content)| match content {
            Content::Bytes(bytes) if name == artefact.file() => Some(bytes.as_slice()),
            _ => None,
        })
    }
}

/// Checks a folder.
pub fn verify(folder: &Folder, signature: Signature<'_>) -> (Run, Report) {
    let mut found = Findings::default();
    let manifest = files::check(folder, signature, &mut found);
    let mut run = Run { manifest, ..Run::default() };
    if let Some(bytes) = folder.bytes(Artefact::Events) {
        let (lines, wrong) = event_line::read(bytes, Artefact::Events.file());
        found.wrong.extend(wrong);
        run.lines = lines;
    }
    run.state = folder.bytes(Artefact::State).and_then(|it| state(it, &mut found));
    run.episode_id = episode(&run);
    if run.manifest.is_none() && !found.wrong.iter().any(|it| it.code == Code::ManifestMalformed) {
        match run.state.as_ref().and_then(|it| it["outcomes"]["status"].as_str()) {
            Some("pending") => found.note(Note::NotFinished, Artefact::Manifest.file()),
            _ => found.add(Finding::of(Code::ManifestMissing, Artefact::Manifest.file())),
        }
    }
    chain::check(&run, &mut found);
    projection::check(folder, &run, &mut found);
    let omitted = found.wrong.len().saturating_sub(FINDINGS_MAX);
    found.wrong.truncate(FINDINGS_MAX);
    let Findings { wrong: findings, untold: notes, parts } = found;
    let report = Report { episode_id: run.episode_id.clone(), findings, omitted, notes, parts };
    (run, report)
}

/// The run's name: the manifest's, else the state's, else the first event's.
fn episode(run: &Run) -> Option<String> {
    let of_state = run.state.as_ref().and_then(|it| it["episode"]["id"].as_str()).map(str::to_owned);
    let of_manifest = run.manifest.as_ref().map(|it| it.episode_id.clone());
    of_manifest.or(of_state).or_else(|| run.lines.first().map(|it| it.record.episode_id.clone()))
}

/// A state of the version that is known, with the members that every state has.
fn state(bytes: &[u8], found: &mut Findings) -> Option<Value> {
    let file = Artefact::State.file();
    let Ok(state) = parse(bytes, &event_line::LIMITS) else {
        found.add(Finding::of(Code::StateMalformed, file));
        return None;
    };
    let wrong = shape::wrong(&state);
    found.wrong.extend(wrong.iter().map(|it| Finding::about(Code::StateMalformed, file, it.as_str())));
    wrong.is_empty().then_some(state)
}

/// Reads a manifest's bytes; apart so that the checks of files stand by themselves.
fn read_manifest(bytes: &[u8], found: &mut Findings) -> Option<Manifest> {
    let read = manifest::read(bytes);
    if read.is_none() {
        found.add(Finding::of(Code::ManifestMalformed, Artefact::Manifest.file()));
    }
    read
}

#[cfg(test)]
mod tests;
