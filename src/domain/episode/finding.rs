//! Findings and notes of a folder check.

use serde_json::{Value, json};

/// Declares codes, each with its name and its sentence.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident: $($(#[$each:meta])* $code:ident = $word:literal, $says:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum $name {
            $($(#[$each])* $code,)*
        }

        impl $name {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$code,)*];

            /// Returns the code in an answer.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $word,)*
                }
            }

            /// Returns a fixed sentence, which never contains checked data.
            pub const fn detail(self) -> &'static str {
                match self {
                    $(Self::$code => $says,)*
                }
            }
        }
    };
}

codes! {
    /// A violation.
    Code:
    /// A finished episode without its manifest.
    ManifestMissing = "manifest_missing", "a finished run has a manifest, and here is none";
    /// The manifest is malformed.
    ManifestMalformed = "manifest_malformed", "this is not a manifest of version manifest/1.0";
    /// A named file is absent.
    Missing = "missing", "the manifest names a file that is not there, or leaves out one that every run has";
    /// The file has other bytes.
    Hash = "hash", "the file is not the one that the manifest has the SHA-256 of";
    /// The file has another length.
    Size = "size", "the file is not as long as the manifest says";
    /// A file is not named.
    Unexpected = "unexpected", "the manifest does not name this file";
    /// A file has the wrong kind.
    Kind = "kind", "a file of this name is of another kind";
    /// A name could lead out of the folder.
    Name = "name", "a file's name is 1 to 128 of A-Z a-z 0-9 . _ - beginning with a letter or digit, and leads nowhere else";
    /// Two names mean one file.
    NameTwice = "name_twice", "two names that are one where capitals do not count";
    /// A link, a folder or a device.
    NotAFile = "not_a_file", "this is no plain file: a link, a folder or a device can show other bytes to the next reader";
    /// The file is too long to check.
    TooLong = "too_long", "the file is longer than any that is looked at";
    /// The signature is invalid.
    Signature = "signature", "the manifest's signature is not one of its signer over exactly these files";
    /// A required signature is missing.
    Unsigned = "unsigned", "the manifest is not signed, and a signature was asked for";
    /// A line is not an event.
    EventMalformed = "event_malformed", "this line is not an event: strict JSON with agent_id, episode_id, payload, phase and timestamp";
    /// The file was cut off.
    EventsTruncated = "events_truncated", "the last line does not end: the file was cut off";
    /// The timeline has too many events.
    EventsTooMany = "events_too_many", "there are more events than any run has";
    /// The start event is missing.
    EventStart = "event_start", "the first event is not the start of the run";
    /// An id occurs twice.
    EventId = "event_id", "another event before has this id";
    /// The cause is not an earlier event.
    EventCause = "event_cause", "the event was caused by none of those before it";
    /// The line does not link to the line before.
    EventPrevious = "event_previous", "the event does not link to the line before it";
    /// The file or event is of another episode.
    Episode = "episode", "this is of another episode than the rest of the folder";
    /// The state is malformed.
    StateMalformed = "state_malformed", "this is not a state of version 1.0, schema 1.0.0";
    /// The plan differs.
    Plan = "projection_plan", "the plan is not the one that follows from the events";
    /// The status of a step differs.
    StepStatus = "projection_status", "a step's status is not the one that the last event about it gives";
    /// The outcomes differ.
    Outcomes = "projection_outcomes", "the outcomes are not those that the last projection in the events has";
    /// The links differ.
    Links = "projection_links", "the links are not those of the last projection, or not those of a run in this state";
    /// The start differs.
    StartedAt = "projection_started_at", "the episode does not begin when its start event says";
    /// The state differs.
    State = "projection_state", "the state is not the one that follows from the events";
    /// Another projected file differs.
    Derived = "projection_derived", "the file is not the one that follows from the events";
}

codes! {
    /// A question that the folder does not answer.
    Note:
    /// There is no manifest yet.
    NotFinished = "not_finished", "the run is not finished: it has no manifest, so nothing says which bytes are its own";
    /// The events have no links.
    NoEventLinks = "no_event_links", "no evidence: the events are not linked by hashes";
    /// No event gives the step's status.
    NoStepStatus = "no_step_status", "no evidence: no event says the step's status, so the state's own was kept";
    /// The status is outside the vocabulary.
    UnknownStatus = "unknown_status", "a step's status is none of the published words; the published projection takes it for pending";
    /// The events have no projection.
    NoProjection = "no_projection", "no evidence: no event says what the state said when it was written";
    /// The events have no plan.
    NoPlan = "no_plan", "no evidence: no event says a plan";
    /// A link names no file.
    LinkUnkept = "link_unkept", "the state links to a file that the manifest does not name";
    /// There is no signature.
    NotSigned = "not_signed", "the manifest is not signed: whoever can replace all files can replace it, too";
    /// No keys were given.
    SignatureUnchecked = "signature_unchecked", "the manifest is signed, and no keys were given to check it with";
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
