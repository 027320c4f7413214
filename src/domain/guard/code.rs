//! What can be wrong, and what AgentStateGuard calls it.

use super::FaultKind;
use crate::domain::json::parse::JsonCode;
use crate::domain::json::pointer::Pointer;
use crate::domain::transition_rules::Broken;

/// Takes what is wrong, and makes the pointer if it is told.
pub(super) type Report<'r> = dyn FnMut(FaultKind, &dyn Fn() -> Pointer) + 'r;

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// The text is not one strict JSON value.
    Json(JsonCode),
    /// The schema refuses it.
    Schema(FaultKind),
    /// There are no rules to judge a transition by.
    NoRules,
    /// A transition rule is broken.
    Rule(Broken),
    /// No folder was named in which files may be written.
    NoRoots,
    /// The target is not an absolute path to a file.
    TargetNotAbsolute,
    /// The folder of the target is not there.
    FolderMissing,
    /// The target is a link that leads nowhere.
    LinkBroken,
    /// The file's name does not end with `.json`.
    TargetNotJson,
    /// The target lies in none of the named folders.
    OutsideRoots,
    /// Something lies there that is no file.
    TargetNotAFile,
    /// There is no file, and one was expected.
    ContentAbsent,
    /// There is a file, and none was expected.
    ContentPresent,
    /// The file does not hold the current state.
    ContentDiffers,
    /// Another commit in the folder took too long.
    FolderBusy,
    /// The operating system refused.
    WriteFailed,
    /// The file was replaced, and whether a crash would undo it is not known.
    Unsynced,
}

impl Code {
    /// The code, as answers carry it.
    pub const fn as_str(self) -> &'static str {
        self.texts().0
    }

    /// One fixed sentence. No value gets into it.
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

/// The codes of AgentStateGuard, so that who used it can move over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alias {
    /// There is no text.
    Input,
    /// It is not JSON.
    Json,
    /// It does not fit the schema.
    Schema,
    /// There are no rules.
    NoRules,
    /// The current state is not sound itself.
    Current,
    /// A rule is broken.
    Rule,
    /// The file may not be written.
    Target,
    /// The file could not be written.
    Write,
}

impl Alias {
    /// The code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "QWED-AGENT-STATE-101",
            Self::Json => "QWED-AGENT-STATE-102",
            Self::Schema => "QWED-AGENT-STATE-103",
            Self::NoRules => "QWED-AGENT-STATE-104",
            Self::Current => "QWED-AGENT-STATE-105",
            Self::Rule => "QWED-AGENT-STATE-106",
            Self::Target => "QWED-AGENT-STATE-107",
            Self::Write => "QWED-AGENT-STATE-108",
        }
    }
}
