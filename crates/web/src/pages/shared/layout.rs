//! The frame of every page: header, navigation and notices.

use countersign_service::inbox::list::WaitingCount;

use super::nav::Navigation;
use super::safe_text::SafeLine;

#[derive(Clone, Debug, Default)]
pub struct PageLayout {
    pub account: Option<SignedInView>,
    /// Shown once above the content: "Your approval is counted. The review waits for more votes."
    pub notice: Option<FlashNotice>,
}

#[derive(Clone, Debug)]
pub struct SignedInView {
    pub name: SafeLine,
    pub groups: Vec<SafeLine>,
    /// Number of reviews that the account can decide.
    pub waiting: WaitingCount,
    pub navigation: Navigation,
    /// Log position before the page was read. The live stream starts there.
    pub reach: u64,
    /// For the sign-out form.
    pub csrf: String,
}

/// The result of the last form.
#[derive(Clone, Debug)]
pub struct FlashNotice {
    pub tone: Tone,
    pub words: String,
}

/// The meaning of a color. A text always repeats it, because some readers do not see colors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    Good,
    Care,
    /// Failed or rejected.
    Bad,
    Plain,
}

impl Tone {
    /// Returns the CSS class.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Care => "care",
            Self::Bad => "bad",
            Self::Plain => "plain",
        }
    }
}

/// A time in the three forms that a page shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimestampView {
    /// RFC 3339: `2026-11-03T14:32:00.000Z`.
    pub iso: String,
    /// Readable form: `3 Nov 2026, 14:32 UTC`.
    pub words: String,
    /// Relative form: `in 12 min`, `2 h ago`.
    pub distance: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DigestText(String);

/// Digits that identify a digest among the few on one page.
const HASH_DIGITS_SHOWN: usize = 10;

impl DigestText {
    /// Takes the text form `sha256:…`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn whole(&self) -> &str {
        &self.0
    }

    /// Returns the first digits, for lists.
    pub fn short(&self) -> &str {
        let digits = self.0.strip_prefix("sha256:").unwrap_or(&self.0);
        digits.get(..HASH_DIGITS_SHOWN).unwrap_or(digits)
    }
}

impl PageLayout {
    /// Builds the frame of a page without a session.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// Returns the number of waiting reviews for the title of the browser tab.
    pub fn count_prefix(&self) -> String {
        match &self.account {
            Some(SignedInView { waiting, .. }) if waiting.counted() > 0 => format!("({waiting}) "),
            _ => String::new(),
        }
    }
}
