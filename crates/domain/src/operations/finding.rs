//! A problem of the configuration that an operator should correct, with its remedy.

use serde::{Deserialize, Serialize};

use crate::primitives::named_enum::named_json_enum;

/// A problem with its effect and its remedy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetupFinding {
    /// The kind of the problem.
    pub code: FindingCode,
    /// How much it matters.
    pub severity: FindingSeverity,
    /// The problem and its effect.
    pub detail: String,
    /// The correction, with the command if there is one.
    pub remedy: String,
}

named_json_enum! {
    /// Kind of a problem, for programs.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum FindingCode {
        /// The clock is behind the newest event.
        ClockBehind = "clock_behind",
        /// The gateway cannot commit.
        NotReady = "not_ready",
        /// The newest entry of a chain does not verify.
        EntryDoesNotVerify = "entry_does_not_verify",
        /// The disk is nearly full.
        LowDisk = "low_disk",
        /// The mail server cannot be used.
        MailUnusable = "mail_unusable",
        /// An active policy has a mistake that is refused today.
        PolicyMistake = "policy_mistake",
        /// A stage has fewer reviewers than it needs.
        StageCannotBeMet = "stage_cannot_be_met",
        /// The owner of a token excludes every reviewer who could approve its proposals.
        OwnerExcludesEveryone = "owner_excludes_everyone",
        /// A policy names a group without a reviewer.
        EmptyGroup = "empty_group",
        /// A token names a node that the policy does not have.
        UnknownNode = "unknown_node",
        /// A token that uses approvals names a node that is no writer.
        NoWriterNode = "no_writer_node",
        /// No token acts as a node of the policy.
        NodeWithoutToken = "node_without_token",
        /// A token names a flow without a policy.
        FlowWithoutPolicy = "flow_without_policy",
        /// The receiver of an endpoint cannot be reached, or its endpoint was disabled.
        EndpointUnreachable = "endpoint_unreachable",
        /// The gateway cannot be reached at its public URL.
        PublicUrlUnreachable = "public_url_unreachable",
        /// A proxy is in front of the gateway, and its header is not trusted.
        ProxyNotTrusted = "proxy_not_trusted",
        /// The audit log has no copy.
        NoCopy = "no_copy",
        /// No gateway responds at the configured address.
        NotServing = "not_serving",
    }
}

named_json_enum! {
    /// How much a problem matters. The worst is first.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum FindingSeverity {
        /// Requests fail because of it.
        Problem = "problem",
        /// It may be intended.
        Warning = "warning",
    }
}

impl SetupFinding {
    /// Returns a finding because of which requests fail.
    pub fn problem(code: FindingCode, detail: String, remedy: String) -> Self {
        Self { code, severity: FindingSeverity::Problem, detail, remedy }
    }

    /// Returns a finding that may be intended.
    pub fn warning(code: FindingCode, detail: String, remedy: String) -> Self {
        Self { code, severity: FindingSeverity::Warning, detail, remedy }
    }
}
