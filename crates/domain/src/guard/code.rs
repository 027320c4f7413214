//! Violations, with the codes of AgentStateGuard.

use super::SchemaViolationKind;
use crate::json::parse::JsonCode;
use crate::json::pointer::Pointer;
use crate::primitives::named_enum::named_enum;
use crate::transition_rules::TransitionViolation;

/// Receives a violation, and computes the pointer only if it is reported.
pub(super) type GuardReporter<'r> = dyn FnMut(SchemaViolationKind, &dyn Fn() -> Pointer) + 'r;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuardCode {
    /// The text is not one strict JSON value.
    Json(JsonCode),
    Schema(SchemaViolationKind),
    /// There are no rules for a transition.
    NoRules,
    /// A transition rule is broken.
    Rule(TransitionViolation),
    /// No writable directory was named.
    NoRoots,
    /// The target is not an absolute path to a file.
    TargetNotAbsolute,
    /// The target's directory does not exist.
    FolderMissing,
    /// The target is a broken link.
    LinkBroken,
    /// The file's name does not end with `.json`.
    TargetNotJson,
    /// The target is in none of the named directories.
    OutsideRoots,
    /// The target exists and is not a file.
    TargetNotAFile,
    /// There is no file, and one was expected.
    ContentAbsent,
    /// There is a file, and none was expected.
    ContentPresent,
    /// The file does not contain the current state.
    ContentDiffers,
    /// Another commit in the directory took too long.
    FolderBusy,
    /// The operating system refused.
    WriteFailed,
    /// The file was replaced, and a crash may undo that.
    Unsynced,
}

impl GuardCode {
    /// Returns the code in an answer.
    pub const fn as_str(self) -> &'static str {
        self.texts().0
    }

    /// Returns a fixed sentence, which contains no value.
    pub const fn detail(self) -> &'static str {
        self.texts().1
    }

    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Json(code) => (code.as_str(), code.detail()),
            Self::Schema(kind) => (kind.as_str(), kind.detail()),
            Self::NoRules => ("no_rules", "a transition is judged by rules, and there are none"),
            Self::Rule(broken) => (broken.as_str(), broken.detail()),
            Self::NoRoots => ("no_roots", "no folder was named in which files may be written"),
            Self::TargetNotAbsolute => ("target_not_absolute", "the target is an absolute path to a file"),
            Self::FolderMissing => ("folder_missing", "the folder of the target must be there already"),
            Self::LinkBroken => ("link_broken", "the target is a link that leads nowhere"),
            Self::TargetNotJson => ("target_not_json", "the file's name must end with .json"),
            Self::OutsideRoots => ("outside_roots", "the target lies in none of the named folders"),
            Self::TargetNotAFile => ("target_not_a_file", "something lies at the target that is no file"),
            Self::ContentAbsent => ("content_absent", "there is no file, and the current state was expected in it"),
            Self::ContentPresent => ("content_present", "there is a file, and none was expected"),
            Self::ContentDiffers => ("content_differs", "the file does not hold the current state"),
            Self::FolderBusy => ("folder_busy", "another commit in this folder took too long"),
            Self::WriteFailed => ("write_failed", "the operating system refused, and nothing was changed"),
            Self::Unsynced => ("unsynced", "the file was replaced, but a crash may still bring the old one back"),
        }
    }
}

named_enum! {
    /// Codes of AgentStateGuard, for users who migrate.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum AgentStateGuardCode {
        Input = "QWED-AGENT-STATE-101",
        Json = "QWED-AGENT-STATE-102",
        /// It does not fit the schema.
        Schema = "QWED-AGENT-STATE-103",
        NoRules = "QWED-AGENT-STATE-104",
        /// The current state is invalid.
        Current = "QWED-AGENT-STATE-105",
        Rule = "QWED-AGENT-STATE-106",
        /// The target is not allowed.
        Target = "QWED-AGENT-STATE-107",
        /// The file could not be written.
        Write = "QWED-AGENT-STATE-108",
    }
}
