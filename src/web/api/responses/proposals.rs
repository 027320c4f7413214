//! Proposals and writes, as they are told.

use serde_json::Value;
use utoipa::ToSchema;

use super::reviews::ReviewTold;
use crate::domain::chain::hash::Digest;
use crate::domain::chain::opening::Opening;
use crate::domain::chain::statement::Statement;
use crate::domain::json::pointer::Pointer;
use crate::domain::policy::RedactedChange;
use crate::domain::primitives::id::{ThreadId, WriteId};
use crate::domain::reviews::HoldReason;
use crate::domain::writes::write::ResultError;

/// It is in the chain.
#[derive(Debug, ToSchema)]
pub struct Committed {
    /// `committed`.
    #[schema(pattern = "^committed$")]
    pub outcome: String,
    /// As which version.
    pub version: u64,
    /// Its digest, which is the head now.
    pub transition: Digest,
    /// The signed entry, a JWS.
    pub entry: String,
    /// What it changed, as far as its node may know.
    pub changed: Vec<Pointer>,
    /// Why people would have been asked, had the flow enforced its policy.
    #[schema(nullable = false)]
    pub would_hold: Option<Vec<HoldReason>>,
    /// What rules warn of.
    #[schema(nullable = false)]
    pub warnings: Option<Vec<WarningTold>>,
}

/// People are asked.
#[derive(Debug, ToSchema)]
pub struct Held {
    /// `held`.
    #[schema(pattern = "^held$")]
    pub outcome: String,
    /// The digest that they are asked about: wait for the decision on it.
    pub transition: Digest,
    /// The review.
    pub review: ReviewTold,
    /// Why, as far as its node may know.
    pub reasons: Vec<HoldReason>,
    /// What rules warn of.
    #[schema(nullable = false)]
    pub warnings: Option<Vec<WarningTold>>,
    /// What it would change, as far as its node may know.
    pub diff: Vec<ChangeTold>,
    /// What in `diff` looks like something else.
    #[schema(nullable = false)]
    pub marks: Option<Vec<Mark>>,
}

/// Something in a shown text that a reader would take for something else. At most 100 in an answer.
#[derive(Debug, ToSchema)]
pub struct Mark {
    /// At which line.
    pub pointer: Pointer,
    /// Of its `name` (the pointer) or its `value` (what would stand there).
    #[schema(pattern = "^(name|value)$")]
    pub of: String,
    /// `invisible`, `right_to_left`, `mixed_scripts`, `looks_like_ascii`, `looks_like_known` (it looks like the value
    /// before and is another), or `new_script` (it has letters of a script that the value before has none of).
    #[schema(pattern = "^(invisible|right_to_left|mixed_scripts|looks_like_ascii|looks_like_known|new_script)$")]
    pub code: String,
    /// The same in words.
    pub detail: String,
}

/// What a rule warns of.
#[derive(Debug, ToSchema)]
pub struct WarningTold {
    /// Which rule.
    pub rule: String,
    /// Where; cut at hidden prefixes.
    pub pointer: Pointer,
    /// The reason of the rule's author.
    pub detail: String,
}

/// A leaf that changes. An absent side is left out; null is a value.
#[derive(Debug, ToSchema)]
pub struct ChangeTold {
    /// Where.
    pub pointer: Pointer,
    /// The value before.
    pub before: Option<Value>,
    /// The value after.
    pub after: Option<Value>,
}

/// A transition with what the asker may see of its effect.
#[derive(Debug, ToSchema)]
pub struct TransitionTold {
    /// Its digest.
    pub transition: Digest,
    /// The thread.
    pub thread: ThreadId,
    /// `committed`, `observed`, `held`, `approved`, `denied`, `expired`, `cancelled` or `superseded`.
    #[schema(pattern = "^(committed|observed|held|approved|denied|expired|cancelled|superseded)$")]
    pub status: String,
    /// What was stated.
    pub statement: Statement,
    /// The signed entry, if it is in the chain.
    #[schema(required)]
    pub entry: Option<String>,
    /// Why nothing may be done by it any more, though it is in the chain: `halted`, `closed`, `policy_mismatch`,
    /// `revoked`, `expired`, or another of verify's codes. Left out while something may.
    #[schema(nullable = false)]
    pub stopped: Option<String>,
    /// The arguments of its tool, nothing hidden in them; of others' proposals not told to agents.
    #[schema(nullable = false)]
    pub arguments: Option<Vec<LeafTold>>,
    /// What rules warn of.
    #[schema(nullable = false)]
    pub warnings: Option<Vec<Value>>,
    /// What it changes: to agents as far as their nodes may read, to others nothing that the policy hides.
    pub diff: Vec<RedactedChange>,
    /// What in `diff` and `arguments` looks like something else.
    #[schema(nullable = false)]
    pub marks: Option<Vec<Mark>>,
    /// Of each hidden line of the diff, for each side that is there, type, length class and commitment; to auditors.
    #[schema(nullable = false)]
    pub hidden: Option<Vec<HiddenTold>>,
    /// Both trees, opened; to auditors.
    #[schema(nullable = false)]
    pub opening: Option<Opening>,
    /// The review, if it was held.
    #[schema(nullable = false)]
    pub review: Option<ReviewTold>,
}

/// A leaf of a tool's arguments.
#[derive(Debug, ToSchema)]
pub struct LeafTold {
    /// Where.
    pub pointer: Pointer,
    /// The value.
    pub value: Option<Value>,
    /// True where it is hidden.
    #[schema(nullable = false)]
    pub hidden: Option<bool>,
}

/// Something hidden, without its value.
#[derive(Debug, ToSchema)]
pub struct HiddenTold {
    /// Where.
    pub pointer: Pointer,
    /// What stood there.
    #[schema(nullable = false)]
    pub before: Option<HiddenSide>,
    /// What would stand there.
    #[schema(nullable = false)]
    pub after: Option<HiddenSide>,
}

/// One side of something hidden.
#[derive(Debug, ToSchema)]
pub struct HiddenSide {
    /// `text`, `number`, `scalar`, `list` or `object`.
    #[schema(rename = "type")]
    pub kind: String,
    /// About how long.
    pub length: Option<Value>,
    /// Its commitment in the tree.
    pub commitment: Option<Digest>,
}

/// It is not decided yet: ask again.
#[derive(Debug, ToSchema)]
pub struct StillHeld {
    /// `held`.
    #[schema(pattern = "^held$")]
    pub status: String,
}

/// It was taken back.
#[derive(Debug, ToSchema)]
pub struct Cancelled {
    /// Its digest.
    pub transition: Digest,
    /// `cancelled`.
    #[schema(pattern = "^cancelled$")]
    pub status: String,
}

/// How a write ended.
#[derive(Debug, ToSchema)]
pub struct WriteEnded {
    /// What the writer called it.
    pub write_id: WriteId,
    /// `confirmed`, `aborted`, or `late` where others had moved on.
    #[schema(pattern = "^(confirmed|aborted|late)$")]
    pub outcome: String,
    /// The head's version after it.
    pub version: u64,
    /// The head after it.
    pub transition: Digest,
    /// True if the result was not admitted, and an empty one was committed in its place.
    #[schema(nullable = false)]
    pub result_refused: Option<bool>,
    /// Why it was not.
    #[schema(nullable = false)]
    pub errors: Option<Vec<ResultError>>,
}
