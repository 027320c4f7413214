//! What several pages say alike.

use super::layout::{TimestampView, Tone};
use super::safe_text::{SafeJson, SafeLine, SafePath, SafeText};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HoldOutcomeView {
    Approved,
    Denied,
    Expired,
    /// Its proposer took it back.
    Cancelled,
    /// Another transition took its place.
    Superseded,
}

impl HoldOutcomeView {
    /// The outcome in a word.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Approved => "Approved",
            Self::Denied => "Denied",
            Self::Expired => "Expired",
            Self::Cancelled => "Cancelled",
            Self::Superseded => "Superseded",
        }
    }

    pub const fn tone(self) -> Tone {
        match self {
            Self::Approved => Tone::Good,
            Self::Denied => Tone::Bad,
            Self::Expired | Self::Cancelled | Self::Superseded => Tone::Plain,
        }
    }
}

/// Why a transition was held.
#[derive(Clone, Debug)]
pub struct HoldReasonView {
    /// The place that the reason is about.
    pub path: Option<SafePath>,
    /// What is the matter with it: "is protected", "payment.amount above 1000 requires approval".
    pub words: SafeLine,
}

#[derive(Clone, Debug)]
pub struct ToolCallView {
    pub name: SafeLine,
    pub arguments: ToolArgumentsView,
}

/// What a tool is called with.
#[derive(Clone, Debug)]
pub enum ToolArgumentsView {
    Whole {
        value: SafeJson,
        /// What they were committed to with, base64url.
        salt: String,
    },
    /// Leaf by leaf, without what is hidden.
    Parts(Vec<ToolArgumentRow>),
}

#[derive(Clone, Debug)]
pub struct ToolArgumentRow {
    pub path: SafePath,
    /// Its value, if it is shown.
    pub value: Option<SafeJson>,
}

/// Something that happened to the review.
#[derive(Clone, Debug)]
pub struct TimelineItem {
    pub tone: Tone,
    /// Who did it; nobody for what the gateway does by itself.
    pub who: Option<SafeLine>,
    /// What: "approved as finance", "held the proposal".
    pub words: String,
    pub comment: Option<SafeText>,
    /// What the voter's browser reported: "Their browser reported a match."
    pub claim: Option<String>,
    pub at: TimestampView,
}

/// Whether a comment must be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommentRequirement {
    Optional,
    Required,
}

/// Whether an earlier write of the thread may or may not have happened.
#[derive(Clone, Debug)]
pub enum WriteUncertainty {
    None,
    /// One lapsed and nobody has resolved it: "database_writer reserved version 3 at 14:02 and never said …".
    Unknown(SafeLine),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VerdictView {
    Approve,
    Deny,
}

impl VerdictView {
    /// The value that forms send.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::Approve => "Approve",
            Self::Deny => "Deny",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urgency {
    Calm,
    Soon,
}

impl Urgency {
    /// Whether the page says so.
    pub const fn is_soon(self) -> bool {
        matches!(self, Self::Soon)
    }
}

/// How an entry got into the chain.
#[derive(Clone, Debug)]
pub enum GateView {
    Auto,
    /// By the policy alone, while it only observed.
    Observed,
    Approved {
        review_url: String,
        by: Vec<SafeLine>,
    },
    /// It is a writer's record of what it wrote.
    Written,
}

impl GateView {
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Auto => "committed by policy",
            Self::Observed => "observed only",
            Self::Approved { .. } => "approved",
            Self::Written => "written",
        }
    }

    pub const fn tone(&self) -> Tone {
        match self {
            Self::Auto => Tone::Plain,
            Self::Observed => Tone::Care,
            Self::Approved { .. } | Self::Written => Tone::Good,
        }
    }
}

#[derive(Clone, Debug)]
pub enum RequesterView {
    /// A token, and who answers for it.
    Token {
        name: SafeLine,
        owner: SafeLine,
    },
    Person(SafeLine),
}

#[derive(Clone, Debug)]
pub enum ReviewBadge {
    /// Waits for the reader's vote.
    Yours,
    /// The reader has voted; others have not.
    Voted,
    /// The reader may not decide, and why: "proposed by your agent".
    CannotDecide(String),
    /// Nobody decided, so that others are asked as well: who.
    Escalated(String),
    /// Those who are asked were reminded.
    Reminded,
    /// An earlier write of this thread may or may not have happened.
    WriteOutcomeUnknown,
}

impl ReviewBadge {
    pub fn words(&self) -> String {
        match self {
            Self::Yours => "You can decide".to_owned(),
            Self::Voted => "You voted".to_owned(),
            Self::CannotDecide(why) => format!("You cannot decide: {why}"),
            Self::Escalated(to) => format!("Escalated to {to}"),
            Self::Reminded => "Reminder sent".to_owned(),
            Self::WriteOutcomeUnknown => "Earlier write unknown".to_owned(),
        }
    }

    pub const fn tone(&self) -> Tone {
        match self {
            Self::Yours => Tone::Good,
            Self::Voted | Self::CannotDecide(_) => Tone::Plain,
            Self::Escalated(_) | Self::Reminded => Tone::Care,
            Self::WriteOutcomeUnknown => Tone::Care,
        }
    }
}
