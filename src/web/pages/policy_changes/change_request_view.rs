//! A policy that waits for people: what would differ, who is asked, and the decision.

use askama::Template;

use crate::web::pages::shared::confirm::PasskeySigningView;
use crate::web::pages::shared::decision_form::{DecideFormView, StageProgressView};
use crate::web::pages::shared::layout::{DigestText, PageLayout, TimestampView, Tone};
use crate::web::pages::shared::safe_text::{SafeLine, SafeText};
use crate::web::pages::shared::widgets::{TimelineItem, VerdictView};

/// `GET /amendments/{amendment}`.
#[derive(Template, Clone, Debug)]
#[template(path = "amendment.html")]
pub struct PolicyChangePage {
    pub shell: PageLayout,
    pub flow: SafeLine,
    pub words: &'static str,
    pub tone: Tone,
    pub standing: String,
    pub proposer: SafeLine,
    pub deadline: TimestampView,
    pub digest: DigestText,
    /// The policy that would judge.
    pub policy: DigestText,
    /// The one that it takes the place of.
    pub over: DigestText,
    /// Older policies whose heads could still be written.
    pub accepts: Vec<DigestText>,
    /// What differs, file by file.
    pub files: Vec<FileDiff>,
    /// The whole text that would judge.
    pub text: Vec<SafeLine>,
    /// Whose approval is needed.
    pub stages: Vec<StageProgressView>,
    pub timeline: Vec<TimelineItem>,
    /// What the visitor can do about it.
    pub deciding: DecideFormView,
}

/// The second look before a vote on a policy that a passkey signs.
#[derive(Template, Clone, Debug)]
#[template(path = "sign_policy.html")]
pub struct SignPolicyPage {
    pub shell: PageLayout,
    /// The amendment's page, to go back to.
    pub amendment_url: String,
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    /// Which stage it is voted in.
    pub stage: u32,
    pub digest: DigestText,
    pub nonce: String,
    pub verdict: VerdictView,
    pub flow: SafeLine,
    /// The policy that would judge.
    pub policy: DigestText,
    pub deadline: TimestampView,
    /// The comment as typed, sent again unchanged.
    pub comment: SafeText,
    /// What a passkey must sign.
    pub signing: PasskeySigningView,
}

/// What differs in one file.
#[derive(Clone, Debug)]
pub struct FileDiff {
    /// The file's name; the policy itself is called so.
    pub name: SafeLine,
    /// Runs of lines, each with a few around.
    pub hunks: Vec<Vec<DiffLine>>,
}

/// One line of a difference.
#[derive(Clone, Debug)]
pub struct DiffLine {
    pub fate: DiffLineKind,
    pub text: SafeLine,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiffLineKind {
    Kept,
    Added,
    Removed,
}

impl DiffLine {
    /// What a reader should be told about a line that comes or goes: letters that look alike are not the same.
    pub fn flags(&self) -> Vec<String> {
        if self.fate == DiffLineKind::Kept {
            return Vec::new();
        }
        let mut flags: Vec<String> = self.text.warnings().into_iter().map(|it| it.words()).collect();
        if flags.is_empty() && !self.text.is_ascii() {
            flags.push("contains characters other than ASCII".to_owned());
        }
        flags
    }
}

impl DiffLineKind {
    /// The class of the style sheet.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }

    /// The sign before the line, as differences of texts are written.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Kept => " ",
            Self::Added => "+",
            Self::Removed => "-",
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::Kept => "",
            Self::Added => "added: ",
            Self::Removed => "removed: ",
        }
    }
}
