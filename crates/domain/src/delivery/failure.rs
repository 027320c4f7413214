//! Reasons why a request got no response: a code for rows and a sentence for people. Messages of libraries are not
//! stored, because they may quote secret addresses.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::primitives::named_enum::named_json_enum;

named_json_enum! {
    /// The reason why there is no response.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum FailureCode {
        /// The address is not allowed. This protects against SSRF.
        Refused = "refused",
        /// The request cannot be sent by HTTP.
        Unsendable = "unsendable",
        /// The name does not resolve.
        NotFound = "not_found",
        /// No connection was accepted.
        Unreachable = "unreachable",
        /// The server has no valid certificate, or does not support TLS.
        Tls = "tls",
        /// The request timed out.
        TimedOut = "timed_out",
        /// The connection closed before the response was complete, or the response is not HTTP.
        Broken = "broken",
    }
}

impl FailureCode {
    /// Returns whether the request may have reached the receiver.
    pub const fn may_have_arrived(self) -> bool {
        matches!(self, Self::TimedOut | Self::Broken)
    }

    /// Returns the sentence that people read.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Refused => "Nothing was sent: the address is in a network that the gateway may not send to.",
            Self::Unsendable => "Nothing was sent: the content cannot be read, or is invalid in a request.",
            Self::NotFound => "Nothing was sent: the host name does not resolve.",
            Self::Unreachable => "Nothing was sent: the connection was refused or not answered.",
            Self::Tls => "Nothing was sent: the server's certificate is not signed by a trusted CA.",
            Self::TimedOut => "The response did not arrive in time.",
            Self::Broken => "The connection closed before a response arrived, or the response is not HTTP.",
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
