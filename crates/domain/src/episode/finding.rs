//! Findings and notes of a folder check.

use serde_json::{Value, json};

use crate::primitives::named_enum::described_enum;

described_enum! { named_enum:
    /// A violation.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Code {
        /// A finished episode without its manifest.
        ManifestMissing = "manifest_missing": "the manifest is missing; a finished run has one",
        /// The manifest is malformed.
        ManifestMalformed = "manifest_malformed": "this is not a manifest of version manifest/1.0",
        /// A named file is absent.
        Missing = "missing": "the manifest names a file that does not exist, or omits a file that every run has",
        /// The file has other bytes.
        Hash = "hash": "the SHA-256 of the file differs from the manifest",
        /// The file has another length.
        Size = "size": "the length of the file differs from the manifest",
        /// A file is not named.
        Unexpected = "unexpected": "the manifest does not name this file",
        /// A file has the wrong kind.
        Kind = "kind": "the file has the wrong kind for its name",
        /// A name could lead out of the folder.
        Name = "name": "a file's name must have 1 to 128 characters from A-Z a-z 0-9 . _ - and start with a letter or digit",
        /// Two names mean one file.
        NameTwice = "name_twice": "two names differ only in upper and lower case, so they are one file on some systems",
        /// A link, a folder or a device.
        NotAFile = "not_a_file": "this is not a plain file: a link, a folder or a device can return other bytes to the next reader",
        /// The file is too long to check.
        TooLong = "too_long": "the file is longer than the limit of the check",
        /// The signature is invalid.
        Signature = "signature": "the manifest's signature does not match its signer and these files",
        /// A required signature is missing.
        Unsigned = "unsigned": "the manifest is not signed, but a signature is required",
        /// A line is not an event.
        EventMalformed = "event_malformed": "this line is not an event: strict JSON with agent_id, episode_id, payload, phase and timestamp",
        /// The file was cut off.
        EventsTruncated = "events_truncated": "the last line does not end: the file was cut off",
        /// The timeline has too many events.
        EventsTooMany = "events_too_many": "there are more events than the limit of a run",
        /// The start event is missing.
        EventStart = "event_start": "the first event is not the start of the run",
        /// An id occurs twice.
        EventId = "event_id": "an earlier event has the same id",
        /// The cause is not an earlier event.
        EventCause = "event_cause": "the event's cause is not an earlier event",
        /// The line does not link to the line before.
        EventPrevious = "event_previous": "the event does not link to the line before it",
        /// The file or event is of another episode.
        Episode = "episode": "this belongs to another episode than the rest of the folder",
        /// The state is malformed.
        StateMalformed = "state_malformed": "this is not a state of version 1.0, schema 1.0.0",
        /// The plan differs.
        Plan = "projection_plan": "the plan differs from the plan that follows from the events",
        /// The status of a step differs.
        StepStatus = "projection_status": "a step's status differs from its last event",
        /// The outcomes differ.
        Outcomes = "projection_outcomes": "the outcomes differ from the last projection in the events",
        /// The links differ.
        Links = "projection_links": "the links differ from the last projection, or from those of a run in this state",
        /// The start differs.
        StartedAt = "projection_started_at": "the start time of the episode differs from its start event",
        /// The state differs.
        State = "projection_state": "the state differs from the state that follows from the events",
        /// Another projected file differs.
        Derived = "projection_derived": "the file differs from the file that follows from the events",
    }
}

described_enum! { named_enum:
    /// A question that the folder does not answer.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Note {
        /// There is no manifest yet.
        NotFinished = "not_finished": "the run is not finished: it has no manifest, so its bytes cannot be checked",
        /// The events have no links.
        NoEventLinks = "no_event_links": "no evidence: the events are not linked by hashes",
        /// No event gives the step's status.
        NoStepStatus = "no_step_status": "no evidence: no event contains the step's status, so the status of the state is used",
        /// The status is outside the vocabulary.
        UnknownStatus = "unknown_status": "a step's status is not in the published list; the published projection treats it as pending",
        /// The events have no projection.
        NoProjection = "no_projection": "no evidence: no event contains the state at the time of its writing",
        /// The events have no plan.
        NoPlan = "no_plan": "no evidence: no event contains a plan",
        /// A link names no file.
        LinkUnkept = "link_unkept": "the state links to a file that the manifest does not name",
        /// There is no signature.
        NotSigned = "not_signed": "the manifest is not signed: an attacker who can replace all files can replace it too",
        /// No keys were given.
        SignatureUnchecked = "signature_unchecked": "the manifest is signed, but no keys were given for the check",
    }
}

/// A finding or note with its location.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LocatedFinding<C> {
    pub code: C,
    /// File. Empty for the folder.
    pub file: String,
    /// Line, from 1.
    pub line: Option<usize>,
    /// Subject inside the file, such as a step's id.
    pub about: Option<String>,
}

/// A violation with its location.
pub type RunFinding = LocatedFinding<Code>;
/// A note with its location.
pub type RunNote = LocatedFinding<Note>;

impl<C> LocatedFinding<C> {
    pub fn of(code: C, file: &str) -> Self {
        Self { code, file: file.to_owned(), line: None, about: None }
    }

    pub fn at(code: C, file: &str, line: usize) -> Self {
        Self { line: Some(line), ..Self::of(code, file) }
    }

    /// Reports on a subject inside the file.
    pub fn about(code: C, file: &str, about: &str) -> Self {
        Self { about: Some(about.to_owned()), ..Self::of(code, file) }
    }

    fn told(&self, code: &str, detail: &str) -> Value {
        let mut told = json!({"code": code, "file": self.file, "detail": detail});
        if let Some(line) = self.line {
            told["line"] = line.into();
        }
        if let Some(about) = &self.about {
            told["about"] = about.as_str().into();
        }
        told
    }
}

impl RunFinding {
    pub fn json(&self) -> Value {
        self.told(self.code.as_str(), self.code.detail())
    }
}

impl RunNote {
    pub fn json(&self) -> Value {
        self.told(self.code.as_str(), self.code.detail())
    }
}
