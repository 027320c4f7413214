//! Small views that several pages share.

use super::layout::{TimestampView, Tone};
use super::safe_text::{SafeLine, SafePath, SafeText};
use super::tool_call::ToolRiskView;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HoldOutcomeView {
    Approved,
    Denied,
    Expired,
    /// Cancelled by its proposer.
    Cancelled,
    /// Replaced by another transition.
    Superseded,
}

impl HoldOutcomeView {
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

#[derive(Clone, Debug)]
pub struct HoldReasonView {
    pub path: Option<SafePath>,
    /// The reason without its path: "payment.amount above 1000 requires approval".
    pub words: SafeLine,
}

/// One event of a review.
#[derive(Clone, Debug)]
pub struct TimelineItem {
    pub tone: Tone,
    /// The acting person or node. Empty for the gateway.
    pub who: Option<SafeLine>,
    /// The event: "approved as finance", "commented".
    pub words: String,
    pub comment: Option<SafeText>,
    /// Report of the voter's browser: "Not recomputed in their browser."
    pub claim: Option<String>,
    pub at: TimestampView,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommentRequirement {
    Optional,
    Required,
}

/// Whether the outcome of an earlier write of the thread is unknown.
#[derive(Clone, Debug)]
pub enum WriteUncertainty {
    None,
    /// A lease expired and no administrator has resolved the write yet.
    Unknown(SafeLine),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VerdictView {
    Approve,
    Deny,
}

impl VerdictView {
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
    pub const fn is_soon(self) -> bool {
        matches!(self, Self::Soon)
    }
}

/// The gate by which an entry was committed.
#[derive(Clone, Debug)]
pub enum GateView {
    Auto,
    /// Committed in observe mode.
    Observed,
    Approved {
        review_url: String,
        by: Vec<SafeLine>,
    },
    /// A confirmed write.
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
    Token { name: SafeLine, owner: SafeLine },
    Person(SafeLine),
}

#[derive(Clone, Debug)]
pub enum ReviewBadge {
    Yours,
    Voted,
    /// The reason why the reader cannot decide: "proposed by your agent".
    CannotDecide(String),
    /// The groups that can also vote since the escalation.
    Escalated(String),
    Reminded,
    WriteOutcomeUnknown,
    ToolRisk(ToolRiskView),
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
            Self::ToolRisk(risk) => risk.words().to_owned(),
        }
    }

    pub const fn tone(&self) -> Tone {
        match self {
            Self::Yours => Tone::Good,
            Self::Voted | Self::CannotDecide(_) => Tone::Plain,
            Self::Escalated(_) | Self::Reminded => Tone::Care,
            Self::WriteOutcomeUnknown => Tone::Care,
            Self::ToolRisk(risk) => risk.tone(),
        }
    }
}
