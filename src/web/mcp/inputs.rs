//! What the tools take. The words beside the members are what a model reads.

use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::domain::chain::hash::Digest;
use crate::domain::json::patch::PatchFormat;
use crate::domain::primitives::id::{NodeId, StepKey, ThreadId};

/// `read_view`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ReadView")]
pub struct ReadViewInput {
    /// The thread's name.
    #[schemars(with = "String")]
    pub thread: ThreadId,
    /// The node you act as.
    #[schemars(with = "String")]
    pub node: NodeId,
    /// An earlier version; leave it out for the newest.
    pub version: Option<u64>,
}

/// `propose`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Propose")]
pub struct ProposeInput {
    /// The thread's name.
    #[schemars(with = "String")]
    pub thread: ThreadId,
    /// The node you act as.
    #[schemars(with = "String")]
    pub node: NodeId,
    /// The `transition` that read_view gave you: what your change builds on.
    #[schemars(with = "String")]
    pub parent: Digest,
    /// The change. As `merge` (unless said otherwise): an object with the top-level keys that change and their whole new
    /// values. As `merge-patch` (RFC 7396): an object in which null deletes. As `json-patch` (RFC 6902): a list.
    #[schemars(with = "PatchInput")]
    pub patch: Value,
    /// In which form the change is.
    #[schemars(with = "Option<PatchFormatInput>")]
    pub format: Option<PatchFormat>,
    /// True asks people to confirm the newest version as it stands; `patch` is `{}` then.
    #[serde(default)]
    pub reaffirm: bool,
    /// Only to ask anew for the very same change after people refused it: 2, then 3.
    #[schemars(range(min = 1))]
    pub attempt: Option<u32>,
    /// The tool that is called along with it: `{name, arguments}`.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub tool: Option<Value>,
    /// What it took so far: `{tokens, cost}`, both optional.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub usage: Option<Value>,
    /// Why, in your words. People read it next to the change.
    #[schemars(length(min = 1, max = 8000))]
    pub rationale: Option<String>,
    /// A name of your own for this step of your work. Repeat it when you are not sure that the step was done: of one name
    /// there is one effect.
    #[schemars(with = "Option<String>")]
    pub step: Option<StepKey>,
}

/// The forms of a patch, for a model that is shown the schema.
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

/// `look_at_hold`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LookAtHold")]
pub struct LookAtHoldInput {
    /// The `transition` that propose gave you.
    #[schemars(with = "String")]
    pub transition: Digest,
}

/// `wait_for_decision`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WaitForDecision")]
pub struct WaitForDecisionInput {
    /// The `transition` that propose gave you.
    #[schemars(with = "String")]
    pub transition: Digest,
    /// For how long at most, 30 unless said; 0 only looks.
    pub seconds: Option<u32>,
}

/// `take_back`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TakeBack")]
pub struct TakeBackInput {
    /// The `transition` that propose gave you.
    #[schemars(with = "String")]
    pub transition: Digest,
    /// Why, in your words.
    pub reason: String,
}
