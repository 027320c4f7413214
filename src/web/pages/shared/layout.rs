//! What every page carries around its content.

use super::nav::Navigation;
use super::safe_text::SafeLine;
use crate::service::inbox::WaitingCount;

#[derive(Clone, Debug, Default)]
pub struct PageLayout {
    /// Who is signed in, if anybody.
    pub account: Option<SignedInView>,
    /// Shown once above the content, after a redirect: "Approved. The receipt is valid for 10 minutes."
    pub notice: Option<FlashNotice>,
}

#[derive(Clone, Debug)]
pub struct SignedInView {
    pub name: SafeLine,
    /// The groups the person is in.
    pub groups: Vec<SafeLine>,
    /// How many reviews wait for this person.
    pub waiting: WaitingCount,
    /// Where this person can go.
    pub navigation: Navigation,
    /// How far the log reached before the page was read; what happens after it is told to the page.
    pub reach: u64,
    /// The session's CSRF token, for signing out.
    pub csrf: String,
}

/// What became of the last submit.
#[derive(Clone, Debug)]
pub struct FlashNotice {
    pub tone: Tone,
    pub words: String,
}

/// How something is meant. Never said by colour alone: the words beside it say it too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    Good,
    Care,
    /// It went wrong or was refused.
    Bad,
    Plain,
}

impl Tone {
    /// The class of the style sheet.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Care => "care",
            Self::Bad => "bad",
            Self::Plain => "plain",
        }
    }
}

/// An instant, in the three forms a page shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimestampView {
    /// RFC 3339, for machines: `2026-11-03T14:32:00.000Z`.
    pub iso: String,
    /// For people: `3 Nov 2026, 14:32 UTC`.
    pub words: String,
    /// Seen from now: `in 12 min`, `2 h ago`.
    pub distance: String,
}

/// A digest, whole and as its beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DigestText(String);

/// Digits of a digest that name it among the few on one page.
const HASH_DIGITS_SHOWN: usize = 10;

impl DigestText {
    /// A digest in its text form, `sha256:…`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn whole(&self) -> &str {
        &self.0
    }

    /// The first digits, for lists, where the whole is one click away.
    pub fn short(&self) -> &str {
        let digits = self.0.strip_prefix("sha256:").unwrap_or(&self.0);
        digits.get(..HASH_DIGITS_SHOWN).unwrap_or(digits)
    }
}

impl PageLayout {
    /// A page that nobody is signed in to.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// How many reviews wait, as the tab's title shows it.
    pub fn count_prefix(&self) -> String {
        match &self.account {
            Some(SignedInView { waiting, .. }) if waiting.counted() > 0 => format!("({waiting}) "),
            _ => String::new(),
        }
    }
}
