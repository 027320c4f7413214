//! Client of Countersign, the approval gateway for AI agents.
//!
//! A writer calls [`Client::verify`] before each write, and [`Client::confirm`] after it. A program that runs tools asks
//! for the approval of a call with [`Client::ask`], uses it once with [`Client::consume`], and reports the outcome. Every
//! answer is compared with its request. With the published keys, the permission or the use must be signed too.

mod approvals;
mod client;
mod error;
mod exchange;
mod mismatch;
#[cfg(test)]
mod signed;
mod writes;

pub use approvals::{
    AllowedToolNames, CallToApprove, ConsumedApproval, Consumption, Decision, RequestSharing, ToolApproval,
    ToolApprovalStatus, ToolState,
};
pub use client::Client;
pub use countersign_domain as domain;
pub use countersign_domain::keys::PublicKeys;
pub use countersign_domain::primitives::secret::Secret;
pub use countersign_domain::threads::approval_request::CallStatus;
pub use error::ClientError;
pub use mismatch::AnswerMismatch;
pub use url::Url;
pub use writes::{OutcomeName, WriteOutcome, WritePermission, WriteRequest};

/// The snippets of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
