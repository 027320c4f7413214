//! Claims about judging and showing; each names what would be lost without it.

mod alike;
mod effects;
mod forms;
mod guide;
mod kinds;
mod limits;
mod oracles;
pub(super) mod properties;
mod retain;
mod rules;
mod schemas;
mod submission;
mod tools;
mod transitions;
mod tutorial;
mod views;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Judgement, Policy, PolicyRequest, PolicySource, RejectCode, RequestKind, StateLimits, judge};
use crate::json::patch::{Patch, PatchFormat};
use crate::json::pointer::Pointer;
use crate::primitives::id::NodeId;

/// One stage, so that anything can be held.
const STAGE: &str = "[[approval.stages]]\ngroups = [\"finance\"]\n";

/// A rollback over versions that set no leaf to the same value.
pub(super) fn rollback(to: &Value) -> RequestKind<'_> {
    static NO_LEAF: BTreeSet<Pointer> = BTreeSet::new();
    RequestKind::Rollback { to, reset: &NO_LEAF }
}

pub(super) fn policy(text: &str) -> Policy {
    let source = PolicySource { text: format!("flow = \"f\"\n{text}\n{STAGE}"), ..PolicySource::default() };
    Policy::compile(&source).unwrap_or_else(|error| panic!("{error}\n{}", source.text))
}

/// A policy with one node `n`: reads, writes, deny; protected.
pub(super) fn one_node(reads: &str, writes: &str, deny: &str, protected: &str) -> Policy {
    one_node_with([reads, writes, deny, protected], "")
}

/// The same with more tables.
pub(super) fn one_node_with([reads, writes, deny, protected]: [&str; 4], more: &str) -> Policy {
    let list = |patterns: &str| {
        let quoted: Vec<_> = patterns.split_whitespace().map(|it| format!("{it:?}")).collect();
        format!("[{}]", quoted.join(", "))
    };
    policy(&format!(
        "protected = {}\n[nodes.n]\nrollback = true\nreads = {}\nwrites = {}\ndeny = {}\n{more}",
        list(protected),
        list(reads),
        list(writes),
        list(deny)
    ))
}

pub(super) fn node() -> NodeId {
    NodeId::try_from("n").unwrap()
}

pub(super) fn patch(format: PatchFormat, request: Value) -> Patch {
    Patch::read(format, request).unwrap()
}

/// Judges a proposal of node `n`.
pub(super) fn propose(policy: &Policy, before: &Value, format: PatchFormat, request: Value) -> Judgement {
    let patch = patch(format, request);
    let request = PolicyRequest { node: &node(), kind: RequestKind::Propose { patch: &patch } };
    judge(policy, before, &request, &StateLimits::default())
}

/// The codes and pointers of a rejection; empty if it was none.
pub(super) fn refused(judgement: &Judgement) -> Vec<(RejectCode, String)> {
    match judgement {
        Judgement::Reject { violations } => violations.iter().map(|it| (it.code, it.pointer.to_string())).collect(),
        Judgement::Commit { .. } | Judgement::Hold { .. } => Vec::new(),
    }
}

pub(super) fn is_held(judgement: &Judgement) -> bool {
    matches!(judgement, Judgement::Hold { .. })
}

pub(super) fn is_committed(judgement: &Judgement) -> bool {
    matches!(judgement, Judgement::Commit { .. })
}
