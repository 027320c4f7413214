//! Inputs of the tools. The doc comments of the members are shown to models.

use countersign_domain::chain::hash::Digest;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::primitives::id::{NodeId, StepKey, ThreadId};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Input of `read_view`.
#[derive(Debug, Deserialize, JsonSchema)]
// A misspelt member must not be ignored, because the model would believe that it had an effect.
#[serde(deny_unknown_fields)]
#[schemars(rename = "ReadView")]
pub struct ReadViewInput {
    /// The name of the thread.
    #[schemars(with = "String")]
    pub thread: ThreadId,
    /// The node you act as.
    #[schemars(with = "String")]
    pub node: NodeId,
    /// An earlier version. Leave it out for the current one.
    pub version: Option<u64>,
}

/// `propose`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Propose")]
pub struct ProposeInput {
    /// The name of the thread.
    #[schemars(with = "String")]
    pub thread: ThreadId,
    /// The node you act as.
    #[schemars(with = "String")]
    pub node: NodeId,
    /// The `transition` from read_view, on which your change is based.
    #[schemars(with = "String")]
    pub parent: Digest,
    /// The change. Format `merge` (the default): an object with the changed top-level keys and their complete new
    /// values. `merge-patch` (RFC 7396): an object in which null deletes a key. `json-patch` (RFC 6902): a list of
    /// operations.
    #[schemars(with = "PatchInput")]
    pub patch: Value,
    /// The format of the patch.
    #[schemars(with = "Option<PatchFormatInput>")]
    pub format: Option<PatchFormat>,
    /// True requests approval of the current version without a change. Then set `patch` to `{}`.
    #[serde(default)]
    pub reaffirm: bool,
    /// Set it only to propose the same change again after reviewers refused it: 2, then 3.
    #[schemars(range(min = 1))]
    pub attempt: Option<u32>,
    /// The tool call that belongs to the change: `{name, arguments}`.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub tool: Option<Value>,
    /// The usage so far: `{tokens, cost}`, both optional.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub usage: Option<Value>,
    /// The reason, in your words. Reviewers read it next to the change.
    #[schemars(length(min = 1, max = 8000))]
    pub rationale: Option<String>,
    /// Your own id of this step. Repeat the call with the same id if you do not know whether the step was done: it has
    /// one effect.
    #[schemars(with = "Option<String>")]
    pub step: Option<StepKey>,
}

/// The forms of a patch, for the schema that models see.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
#[schemars(rename = "Patch")]
enum PatchInput {
    Object(Map<String, Value>),
    List(Vec<Map<String, Value>>),
}

#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(dead_code, reason = "only its schema is used")]
#[schemars(rename = "Form")]
enum PatchFormatInput {
    Merge,
    MergePatch,
    JsonPatch,
}

/// Input of `look_at_hold`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LookAtHold")]
pub struct LookAtHoldInput {
    /// The `transition` from propose.
    #[schemars(with = "String")]
    pub transition: Digest,
}

/// Input of `wait_for_decision`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WaitForDecision")]
pub struct WaitForDecisionInput {
    /// The `transition` from propose.
    #[schemars(with = "String")]
    pub transition: Digest,
    /// The longest wait in seconds. Default: 30. 0 returns at once.
    pub seconds: Option<u32>,
}

/// Input of `take_back`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TakeBack")]
pub struct TakeBackInput {
    /// The `transition` from propose.
    #[schemars(with = "String")]
    pub transition: Digest,
    /// The reason, in your words.
    pub reason: String,
}
