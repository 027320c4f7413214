//! Rejected requests, stored so that a replay can evaluate them with another policy.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::branch::JoinStatement;
use super::join_carryover::JoinCarryover;
use super::tool_call::Tool;
use super::transition::{ProposalIdentity, patch_digest};
use crate::chain::hash::Digest;
use crate::chain::statement::TransitionType;
use crate::json::canonical::canonical;
use crate::json::parse::{DEPTH_CEILING, ParseLimits, parse};
use crate::json::patch::PatchFormat;
use crate::keys::ThreadSecret;
use crate::primitives::id::{NodeId, PrincipalId, StepKey, ThreadId};

/// The size limit of a stored rejected request. A rejected request costs its sender nothing, so the limit protects the
/// database.
pub const KEPT_BYTES_MAX: usize = 32 * 1024;

/// A rejected request in its original form. It is never shown, because another policy may redact its values.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectedRequest {
    pub kind: TransitionType,
    pub format: PatchFormat,
    /// The content that the proposal's identity hashes.
    pub content: Value,
    pub attempt: u32,
    /// The tool call of the request.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool: Option<Tool>,
    /// The usage that the agent reported.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Value>,
    /// The agent's name for the step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step: Option<StepKey>,
    /// The branches of a join at that time. They are not part of the request's identity, because a branch may advance.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub join: Option<Box<RejectedJoin>>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectedJoin {
    /// The branches with their heads at that time.
    pub joining: JoinStatement,
    pub carried: JoinCarryover,
}

impl RejectedRequest {
    /// Returns the JSON text, or `None` if it is too long. It is stored as text because the parser of rows has a lower
    /// depth limit than the parser of requests.
    pub fn text(&self) -> Option<String> {
        // The canonical form makes equal requests equal texts.
        let text = canonical(&serde_json::to_value(self).ok()?);
        (text.len() <= KEPT_BYTES_MAX).then_some(text)
    }

    /// Parses the result of [`Self::text`].
    pub fn read(text: &str) -> Option<Self> {
        let limits = ParseLimits { bytes_max: KEPT_BYTES_MAX, depth_max: DEPTH_CEILING };
        serde_json::from_value(parse(text.as_bytes(), &limits).ok()?).ok()
    }

    /// Returns the identity of the request on one head. Equal requests have equal identities.
    pub fn identity(
        &self,
        secret: &ThreadSecret,
        thread: &ThreadId,
        parent: Digest,
        node: &NodeId,
        principal: &PrincipalId,
    ) -> Digest {
        let identity = ProposalIdentity {
            thread,
            parent: Some(parent),
            node: Some(node),
            principal,
            kind: self.kind,
            format: self.format,
            patch: patch_digest(secret, &self.content),
            attempt: self.attempt,
            tool: self.tool.as_ref(),
            step: self.step.as_ref(),
        };
        identity.digest(secret)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kept(content: Value) -> RejectedRequest {
        RejectedRequest {
            kind: TransitionType::Propose,
            format: PatchFormat::Merge,
            content,
            attempt: 1,
            tool: None,
            usage: None,
            step: None,
            join: None,
        }
    }

    #[test]
    fn stored_request_is_read_unchanged_at_any_depth() {
        let mut deep = json!(1);
        for _ in 0..200 {
            deep = json!([deep]);
        }
        let tool = Tool { name: "crm.find".try_into().unwrap(), arguments: serde_json::Map::new() };
        let whole = RejectedRequest { tool: Some(tool), usage: Some(json!({"cost": 0.5})), ..kept(deep) };
        assert_eq!(RejectedRequest::read(&whole.text().unwrap()), Some(whole));
    }

    #[test]
    fn long_request_is_not_stored() {
        let around = kept(json!({"a": ""})).text().unwrap().len();
        let long = |bytes: usize| kept(json!({"a": "x".repeat(bytes - around)})).text();
        assert_eq!(long(KEPT_BYTES_MAX).map(|it| it.len()), Some(KEPT_BYTES_MAX));
        assert_eq!(long(KEPT_BYTES_MAX + 1), None);
    }
}
