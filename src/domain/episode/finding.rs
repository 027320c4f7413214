//! What is wrong with a folder, and what could not be told.

use serde_json::{Value, json};

/// Declares codes, each with its word and its sentence.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident: $($(#[$each:meta])* $code:ident = $word:literal, $says:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum $name {
            $($(#[$each])* $code,)*
        }

        impl $name {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$code,)*];

            /// The code, as answers carry it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $word,)*
                }
            }

            /// One sentence; never a part of what was found.
            pub const fn detail(self) -> &'static str {
                match self {
                    $(Self::$code => $says,)*
                }
            }
        }
    };
}

codes! {
    /// What is wrong.
    Code:
    /// A finished run without its manifest.
    ManifestMissing = "manifest_missing", "a finished run has a manifest, and here is none";
    /// Not what a manifest is.
    ManifestMalformed = "manifest_malformed", "this is not a manifest of version manifest/1.0";
    /// Named, and not there.
    Missing = "missing", "the manifest names a file that is not there, or leaves out one that every run has";
    /// Other bytes.
    Hash = "hash", "the file is not the one that the manifest has the SHA-256 of";
    /// Another length.
    Size = "size", "the file is not as long as the manifest says";
    /// There, and not named.
    Unexpected = "unexpected", "the manifest does not name this file";
    /// Named for what it is not.
    Kind = "kind", "a file of this name is of another kind";
    /// A name that could lead elsewhere.
    Name = "name", "a file's name is 1 to 128 of A-Z a-z 0-9 . _ - beginning with a letter or digit, and leads nowhere else";
    /// Two names for one file.
    NameTwice = "name_twice", "two names that are one where capitals do not count";
    /// A link, a folder, a device.
    NotAFile = "not_a_file", "this is no plain file: a link, a folder or a device can show other bytes to the next reader";
    /// Too long to be looked at.
    TooLong = "too_long", "the file is longer than any that is looked at";
    /// A signature that is none.
    Signature = "signature", "the manifest's signature is not one of its signer over exactly these files";
    /// No signature where one is asked for.
    Unsigned = "unsigned", "the manifest is not signed, and a signature was asked for";
    /// Not what a timeline is.
    EventMalformed = "event_malformed", "this line is not an event: strict JSON with agent_id, episode_id, payload, phase and timestamp";
    /// Cut off.
    EventsTruncated = "events_truncated", "the last line does not end: the file was cut off";
    /// More than a run has.
    EventsTooMany = "events_too_many", "there are more events than any run has";
    /// No beginning.
    EventStart = "event_start", "the first event is not the start of the run";
    /// A name twice.
    EventId = "event_id", "another event before has this id";
    /// A cause that is none.
    EventCause = "event_cause", "the event was caused by none of those before it";
    /// Not after the line before.
    EventPrevious = "event_previous", "the event does not link to the line before it";
    /// Of another run.
    Episode = "episode", "this is of another episode than the rest of the folder";
    /// Not what a state is.
    StateMalformed = "state_malformed", "this is not a state of version 1.0, schema 1.0.0";
    /// The plan is another.
    Plan = "projection_plan", "the plan is not the one that follows from the events";
    /// A step's status is another.
    StepStatus = "projection_status", "a step's status is not the one that the last event about it gives";
    /// The outcomes are others.
    Outcomes = "projection_outcomes", "the outcomes are not those that the last projection in the events has";
    /// The links are others.
    Links = "projection_links", "the links are not those of the last projection, or not those of a run in this state";
    /// The beginning is another.
    StartedAt = "projection_started_at", "the episode does not begin when its start event says";
    /// The state is another.
    State = "projection_state", "the state is not the one that follows from the events";
    /// Another artefact that follows from the events is another.
    Derived = "projection_derived", "the file is not the one that follows from the events";
}

codes! {
    /// What could not be told.
    Note:
    /// No manifest yet.
    NotFinished = "not_finished", "the run is not finished: it has no manifest, so nothing says which bytes are its own";
    /// No links.
    NoEventLinks = "no_event_links", "no evidence: the events are not linked by hashes";
    /// No status.
    NoStepStatus = "no_step_status", "no evidence: no event says the step's status, so the state's own was kept";
    /// A word of another vocabulary.
    UnknownStatus = "unknown_status", "a step's status is none of the published words; the published projection takes it for pending";
    /// No projection.
    NoProjection = "no_projection", "no evidence: no event says what the state said when it was written";
    /// No plan.
    NoPlan = "no_plan", "no evidence: no event says a plan";
    /// A link to nothing.
    LinkUnkept = "link_unkept", "the state links to a file that the manifest does not name";
    /// No signature.
    NotSigned = "not_signed", "the manifest is not signed: whoever can replace all files can replace it, too";
    /// No keys.
    SignatureUnchecked = "signature_unchecked", "the manifest is signed, and no keys were given to check it with";
}

/// One thing, where it stands.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Found<C> {
    /// What.
    pub code: C,
    /// In which file; empty for the folder.
    pub file: String,
    /// In which line, from 1.
    pub line: Option<usize>,
    /// About what in it: a step's id.
    pub about: Option<String>,
}

/// Something wrong.
pub type Finding = Found<Code>;
/// Something that could not be told.
pub type Noted = Found<Note>;

impl<C> Found<C> {
    /// About a file as a whole.
    pub fn of(code: C, file: &str) -> Self {
        Self { code, file: file.to_owned(), line: None, about: None }
    }

    /// About one of its lines.
    pub fn at(code: C, file: &str, line: usize) -> Self {
        Self { line: Some(line), ..Self::of(code, file) }
    }

    /// About something in it.
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

impl Finding {
    /// As JSON.
    pub fn json(&self) -> Value {
        self.told(self.code.as_str(), self.code.detail())
    }
}

impl Noted {
    /// As JSON.
    pub fn json(&self) -> Value {
        self.told(self.code.as_str(), self.code.detail())
    }
}
