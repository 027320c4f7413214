//! A look at whoever waits for a decision, before it is told: what was seen, if that was reason enough to send nothing.

use serde::{Deserialize, Serialize};

/// Of a run's or a task's state so much is read. It may have all that an agent was told in it.
pub const LOOK_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The result of the status request. The status itself is not stored, because it may contain values that are redacted
/// here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreflightResult {
    /// Nothing waits there for this any more: it went on before, or was stopped.
    NotWaiting,
    /// Something else waits under the very name.
    Another,
    /// A run is under way. It may be the one that this would begin.
    Busy,
    /// What waits does not say on what digest, so nobody can tell whether it is this.
    NoDigest,
    /// Not what such a server says of a state.
    Unclear,
    /// Another status than 2xx.
    Refused,
    /// It speaks as such a server does. Only trying it out asks for no more.
    There,
    /// It has no assistant of that name.
    NoAssistant,
}

impl PreflightResult {
    /// The word that stands in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotWaiting => "not_waiting",
            Self::Another => "another",
            Self::Busy => "busy",
            Self::NoDigest => "no_digest",
            Self::Unclear => "unclear",
            Self::Refused => "refused",
            Self::There => "there",
            Self::NoAssistant => "no_assistant",
        }
    }

    /// What it means, for people.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::NotWaiting => "Nothing was sent: nothing waits there for this decision any more.",
            Self::Another => "Nothing was sent: what waits there under that name waits for another decision.",
            Self::Busy => "Nothing was sent: a run is under way there. It is looked at again later.",
            Self::NoDigest => {
                "Nothing was sent: what waits there does not say a transition_digest, so nobody can tell what it waits for."
            }
            Self::Unclear => "Nothing was sent: what the look was answered says of no state what waits in it.",
            Self::Refused => "Nothing was sent: the look at what waits there was not answered with 2xx.",
            Self::There => "It was looked at, and nothing was resumed.",
            Self::NoAssistant => "It has no graph or assistant of the name that was set here.",
        }
    }

    /// Whether there is nothing left to do.
    pub const fn settles(self) -> bool {
        match self {
            Self::NotWaiting | Self::Another | Self::There => true,
            Self::Busy | Self::NoDigest | Self::Unclear | Self::Refused | Self::NoAssistant => false,
        }
    }
}
