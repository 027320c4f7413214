//! Translates a StatePolicy expression into a policy of Countersign, and judges one write under it.

use std::collections::BTreeSet;

use countersign_domain::json::parse::{ParseLimits, parse};
use countersign_domain::json::patch::{Patch, PatchFormat};
use countersign_domain::policy::{
    Judgement, Policy, PolicyError, PolicyRequest, PolicySource, RejectCode, RequestKind, StateLimits, judge,
};
use countersign_domain::primitives::id::NodeId;
use serde_json::{Value, json};

/// The predicates of the cases, and the same as conditions of a rule that denies.
const PREDICATES: [(&str, &str, &str); 4] = [
    (
        "when(!(key==payment.amount && value is Number && value>1000), 'payment.amount above 1000 requires approval')",
        "change.path == '/payment/amount' && type(change.after) in [int, double] && change.after > 1000",
        "payment.amount above 1000 requires approval",
    ),
    (
        "when(!(value is String && lower(value) contains 'password'), 'draft must not contain a password')",
        "type(change.after) == string && change.after.lowerAscii().contains('password')",
        "draft must not contain a password",
    ),
    ("when(throws IllegalStateException('boom'))", "change.after == oldObject.boom", "boom"),
    ("custom returning null Decision", "null", "no decision"),
];

/// Policy of StatePolicy, translated into our keys.
#[derive(Default)]
pub struct TranslatedPolicy {
    /// `None` is everything.
    writes: Option<Vec<String>>,
    deny: Vec<String>,
    rules: String,
}

impl TranslatedPolicy {
    pub fn read(expression: &str) -> Self {
        match expression {
            "ALLOW_ALL" | "(default)" => return Self::default(),
            "DENY_ALL" => return Self { writes: Some(Vec::new()), ..Self::default() },
            // A denial without a reason: the reason is a key that is left out.
            "custom new Decision(false,null)" => {
                return Self { rules: "[[rules]]\nwhen = \"true\"\nthen = \"deny\"\n".to_owned(), ..Self::default() };
            }
            _ => {}
        }
        if let Some((_, when, reason)) = PREDICATES.iter().find(|it| it.0 == expression) {
            let rules = format!("[[rules]]\nwhen = {when:?}\nthen = \"deny\"\nreason = {reason:?}\n");
            return Self { rules, ..Self::default() };
        }
        // (a).and(b), of which b has no `and` of its own.
        if let Some((left, right)) = expression.strip_suffix(')').and_then(|it| it.rsplit_once(").and(")) {
            return Self::read(left.strip_prefix('(').unwrap()).and(Self::read(right));
        }
        let (kind, keys) = expression.strip_suffix(')').and_then(|it| it.split_once('(')).unwrap();
        let keys = keys.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect();
        match kind {
            "allowWriteKeys" => Self { writes: Some(keys), ..Self::default() },
            "denyWriteKeys" => Self { deny: keys, ..Self::default() },
            other => panic!("no such policy: {other}"),
        }
    }

    fn and(self, other: Self) -> Self {
        let writes = match (self.writes, other.writes) {
            (Some(one), Some(both)) => Some(one.into_iter().filter(|it| both.contains(it)).collect()),
            (one, other) => one.or(other),
        };
        Self { writes, deny: [self.deny, other.deny].concat(), rules: self.rules + &other.rules }
    }

    pub fn node(&self, name: &str) -> String {
        let everything = ["$".to_owned()];
        let writes = self.writes.as_deref().unwrap_or(&everything);
        // DENY_ALL is the guide's: a node without `writes`.
        let writes = if writes.is_empty() { String::new() } else { format!("writes = {writes:?}\n") };
        format!("[nodes.{name}]\nreads = [\"$\"]\n{writes}deny = {:?}\n", self.deny)
    }

    pub fn rules(&self) -> &str {
        &self.rules
    }

    /// All of a policy with one node.
    pub fn policy(&self, node: &str) -> String {
        format!("flow = \"f\"\n{}{}", self.node(node), self.rules)
    }
}

pub fn compile(text: &str) -> Result<Policy, PolicyError> {
    Policy::compile(&PolicySource { text: text.to_owned(), ..PolicySource::default() })
}

pub fn compiled(text: &str) -> Policy {
    compile(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Writes as one node. Returns the state after it, `None` if the write requires approval, or the first error.
pub fn write(policy: &Policy, node: &str, state: &Value, text: &str) -> Result<Option<Value>, String> {
    let request = parse(text.as_bytes(), &ParseLimits::default()).map_err(|error| error.code.as_str().to_owned())?;
    let patch = Patch::read(PatchFormat::MergePatch, request.clone()).unwrap();
    // A null there is a value; in a merge-patch it would delete.
    let patch = if text.contains("null") { Patch::read(PatchFormat::Merge, request).unwrap() } else { patch };
    let node = NodeId::try_from(node).unwrap();
    let request = PolicyRequest { node: &node, kind: RequestKind::Propose { patch: &patch } };
    match judge(policy, state, &request, &StateLimits::default()) {
        Judgement::Commit { after, .. } => Ok(Some(after)),
        Judgement::Hold { .. } => Ok(None),
        Judgement::Reject { violations } => {
            let first = &violations[0];
            Err(if first.code == RejectCode::RuleDenied { first.detail.to_string() } else { first.code.to_string() })
        }
    }
}

/// A key there is a path here.
pub fn nested(key: &str, value: &Value) -> Value {
    key.rsplit('.').fold(value.clone(), |below, name| json!({ name: below }))
}

/// A reason of theirs in our words: a list's is its code, a predicate's its author's.
pub fn reason(theirs: &str) -> String {
    if theirs.contains("allow-list") || theirs == "DENY_ALL policy" {
        "write_not_allowed".to_owned()
    } else if theirs.starts_with("write to '") {
        "write_denied".to_owned()
    } else {
        theirs.to_owned()
    }
}

/// The leaves of a graph's end.
pub fn first_of(end: &str) -> BTreeSet<&str> {
    end.split(';').next().unwrap().split(", ").filter(|it| !it.is_empty()).collect()
}
