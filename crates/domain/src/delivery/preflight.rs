//! Preflight requests: checking the waiting run before a decision is sent, and the reasons to send nothing.

use serde::{Deserialize, Serialize};

use crate::primitives::named_enum::named_json_enum;

/// The limit of the response. A run's state may contain everything that an agent received.
pub const LOOK_BYTES_MAX: usize = 4 * 1024 * 1024;

named_json_enum! {
    /// The result of the status request. The status itself is not stored, because it may contain values that are redacted
    /// here.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum PreflightResult {
        /// No run waits for this decision any more: it was resumed or cancelled.
        NotWaiting = "not_waiting",
        /// Another decision is awaited under the same name.
        Another = "another",
        /// A run is active. It may be the run that this request would start.
        Busy = "busy",
        /// The interrupt has no digest, so the gateway cannot identify it.
        NoDigest = "no_digest",
        /// The response has no known form.
        Unclear = "unclear",
        /// The status is not 2xx.
        Refused = "refused",
        /// The server is of the right kind. Only a test asks for this.
        There = "there",
        /// The server has no assistant of this name.
        NoAssistant = "no_assistant",
    }
}

impl PreflightResult {
    /// Returns the sentence that people read.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::NotWaiting => "Nothing was sent: no run waits for this decision any more.",
            Self::Another => "Nothing was sent: the interrupt of this name waits for another decision.",
            Self::Busy => "Nothing was sent: a run is active. The gateway checks again later.",
            Self::NoDigest => {
                "Nothing was sent: the interrupt has no `transition_digest`, so the gateway cannot identify the decision that it waits for. Add the digest to the interrupt's value."
            }
            Self::Unclear => {
                "Nothing was sent: the response to the status request does not show the waiting interrupts."
            }
            Self::Refused => "Nothing was sent: the response to the status request was not 2xx.",
            Self::There => "The server answered the status request. Nothing was resumed.",
            Self::NoAssistant => "The server has no graph or assistant of the configured name.",
        }
    }

    /// Checks that no further attempt is needed.
    pub const fn settles(self) -> bool {
        match self {
            // A later attempt cannot bring the waiting run back.
            Self::NotWaiting | Self::Another | Self::There => true,
            // These can change: the active run ends, or an administrator corrects the setup.
            Self::Busy | Self::NoDigest | Self::Unclear | Self::Refused | Self::NoAssistant => false,
        }
    }
}
