//! The pages of a policy change request: the differences, the stage and the decision.

use askama::Template;

use crate::pages::shared::decision_form::{DecideFormView, StageProgressView};
use crate::pages::shared::layout::{DigestText, PageLayout, TimestampView, Tone};
use crate::pages::shared::passkey_signing::PasskeySigningView;
use crate::pages::shared::safe_text::{SafeLine, SafeText};
use crate::pages::shared::widgets::{TimelineItem, VerdictView};

/// `GET /amendments/{amendment}`.
#[derive(Template, Clone, Debug)]
#[template(path = "amendment.html")]
pub struct PolicyChangePage {
    pub shell: PageLayout,
    pub flow: SafeLine,
    pub words: &'static str,
    pub tone: Tone,
    pub is_open: bool,
    pub standing: String,
    pub proposer: SafeLine,
    pub deadline: TimestampView,
    pub digest: DigestText,
    /// The new policy.
    pub policy: DigestText,
    /// The policy that would be replaced.
    pub over: DigestText,
    /// Older policies whose heads can still be written after the change.
    pub accepts: Vec<DigestText>,
    pub files: Vec<FileDiff>,
    /// Full text of the new policy.
    pub text: Vec<SafeLine>,
    pub stages: Vec<StageProgressView>,
    pub timeline: Vec<TimelineItem>,
    pub deciding: DecideFormView,
}

/// The page on which a passkey signs the vote.
#[derive(Template, Clone, Debug)]
#[template(path = "sign_policy.html")]
pub struct SignPolicyPage {
    pub shell: PageLayout,
    pub amendment_url: String,
    pub action: String,
    pub csrf: String,
    pub stage: u32,
    pub digest: DigestText,
    pub nonce: String,
    pub verdict: VerdictView,
    pub flow: SafeLine,
    /// The new policy.
    pub policy: DigestText,
    pub deadline: TimestampView,
    pub comment: SafeText,
    pub signing: PasskeySigningView,
}

#[derive(Clone, Debug)]
pub struct FileDiff {
    /// "policy" or the name of a schema.
    pub name: SafeLine,
    /// Changed lines with a few context lines.
    pub hunks: Vec<Vec<DiffLine>>,
}

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
    /// Returns warnings for an added or removed line, because different characters can look alike.
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
    /// Returns the CSS class.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }

    /// Returns the sign before the line, as in a unified diff.
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
