//! Computes the effect of a patch, and the part of it that the caller requested.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::judgement::{RejectCode, Violation};
use super::model::NodePolicy;
use super::patch_footprint::PatchFootprint;
use super::pattern_set::Patterns;
use super::visibility::Visibility;
use crate::json::diff::{LeafChange, diff};
use crate::json::pattern::Pattern;
use crate::json::pointer::Pointer;

const NOT_IN_WRITES: &str = "the node may not write this: its `writes` do not cover it";
const IN_DENY: &str = "the node may not write this: its `deny` covers it";

/// The state after a patch, and its changes.
pub(super) struct PatchEffect {
    pub(super) after: Value,
    pub(super) changes: Vec<LeafChange>,
    meanings: Vec<ChangeAttribution>,
    /// Values on the way of a merge patch that are no objects and that the node cannot read. The patch replaces each
    /// of them as a whole.
    overrun: BTreeSet<Pointer>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ChangeAttribution {
    /// A value was added, was removed or differs.
    Its,
    /// An empty container was replaced by a filled one of another kind. That needs the same permission as for a
    /// container with members, of which only the members are changes.
    OtherKind,
    /// A consequence of a path that is replaced as a whole. The replacement is judged instead.
    OfThePlace,
    /// A side effect. An object that gains its first member or loses its last changes at the member, not at itself.
    /// If the node cannot read a path, an object that had to exist there for a deletion is no change by the caller.
    /// Both would reveal members that the caller may not read.
    ByTheWay,
}

impl PatchEffect {
    pub(super) fn new(before: &Value, after: Value, claims: &PatchFootprint, reads: &Patterns) -> Self {
        let changes = diff(before, &after);
        let stands_there = |place: &&Pointer| place.resolve(before).is_some_and(|it| !it.is_object());
        let passed: BTreeSet<_> = claims.passed_unseen(reads).collect();
        let overrun: BTreeSet<_> = passed.iter().copied().filter(stands_there).cloned().collect();
        let meaning = |change: &LeafChange| {
            // Most patches overrun nothing, so the walk up the path is skipped for them.
            let within = !overrun.is_empty() && change.pointer.at_and_above().any(|it| overrun.contains(it));
            if within { ChangeAttribution::OfThePlace } else { meaning(change, before, &after, &passed) }
        };
        let meanings = changes.iter().map(meaning).collect();
        Self { after, changes, meanings, overrun }
    }

    /// Returns the changes that are no side effects.
    fn telling(&self) -> impl Iterator<Item = &LeafChange> {
        self.changes
            .iter()
            .zip(&self.meanings)
            .filter(|(_, it)| **it == ChangeAttribution::Its)
            .map(|(change, _)| change)
    }

    /// Returns the changes that rules evaluate. Values that the request set outside its node's reads are included
    /// whether or not they differ. Otherwise a rule would confirm a right guess.
    pub(super) fn asked<'o>(
        &'o self,
        before: &Value,
        claims: &PatchFootprint,
        reads: &Patterns,
    ) -> Vec<Cow<'o, LeafChange>> {
        let differs = self.changes.iter().zip(&self.meanings).filter(|(_, it)| **it != ChangeAttribution::ByTheWay);
        let mut asked: Vec<_> = differs.map(|(change, _)| Cow::Borrowed(change)).collect();
        let unseen = claims.leaves_unseen(reads, &self.after);
        // Without such values, the changes are complete and already in order.
        if unseen.is_empty() {
            return asked;
        }
        // A value that differs is in the list already, and a rule must not evaluate it twice.
        let known: BTreeSet<_> = asked.iter().map(|it| it.pointer.clone()).collect();
        asked.extend(unseen.into_iter().filter(|it| !known.contains(it)).map(|pointer| {
            let value = |state: &Value| pointer.resolve(state).cloned();
            let (before, after) = (value(before), value(&self.after));
            Cow::Owned(LeafChange { pointer, before, after })
        }));
        // The order must not depend on which of them differ.
        asked.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        asked
    }

    /// Returns the effects outside the write lists. A difference that the node cannot read is reported at the path
    /// that the request named, and only if the request itself was admissible. It then only reveals that the policy's
    /// object is another value in this state.
    pub(super) fn violations(&self, node: &NodePolicy, asked: &[Violation], sight: &Visibility<'_>) -> Vec<Violation> {
        let refused = |(change, meaning): (&LeafChange, &ChangeAttribution)| {
            let pointer = &change.pointer;
            let written = match meaning {
                // The member that differs, or the path that is replaced as a whole, is reported instead.
                ChangeAttribution::ByTheWay | ChangeAttribution::OfThePlace => return None,
                ChangeAttribution::Its => node.writes.covers(pointer),
                ChangeAttribution::OtherKind => node.writes.covers(pointer) || node.writes.covers_every_member(pointer),
            };
            // `deny` has precedence over `writes`.
            let (code, detail) = match (node.deny.covers(pointer), written) {
                (true, _) => (RejectCode::WriteDenied, IN_DENY),
                (false, false) => (RejectCode::WriteNotAllowed, NOT_IN_WRITES),
                (false, true) => return None,
            };
            // If the request is rejected anyway, a difference that the node cannot read would only give a clue.
            let may_be_told = asked.is_empty() || node.reads.covers(pointer);
            may_be_told.then(|| Violation::new(code, sight.tellable(pointer), detail))
        };
        let overrun = |place: &Pointer| {
            // The value is replaced with everything below it, so a denied path below it counts as well.
            let (code, detail) = match (node.deny.touches(place), node.writes.covers(place)) {
                (true, _) => (RejectCode::WriteDenied, IN_DENY),
                (false, false) => (RejectCode::WriteNotAllowed, NOT_IN_WRITES),
                (false, true) => return None,
            };
            asked.is_empty().then(|| Violation::new(code, place.clone(), detail))
        };
        let effects = self.changes.iter().zip(&self.meanings).filter_map(refused);
        effects.chain(self.overrun.iter().filter_map(overrun)).collect()
    }

    /// Returns the protected patterns that the request touches, each with one path. A value set outside the node's
    /// reads counts as touched. Otherwise a guess that changes nothing would be confirmed.
    pub(super) fn touched<'p>(
        &self,
        protected: &'p Patterns,
        claims: &PatchFootprint,
        reads: &Patterns,
    ) -> Vec<(&'p Pattern, Pointer)> {
        let set: Vec<_> = claims.set_unseen(reads).chain(&self.overrun).collect();
        let passed: Vec<_> = claims.passed_unseen(reads).collect();
        let place = |pattern: &Pattern| {
            let by_effect = self.telling().map(|change| &change.pointer).find(|it| pattern.touches(it));
            let by_setting = || set.iter().copied().find(|it| pattern.touches(it));
            // An object on the way retains its members, so a pattern below it is touched only by the values that are
            // set.
            let by_passing = || passed.iter().copied().find(|it| pattern.covers(it));
            by_effect.or_else(by_setting).or_else(by_passing).cloned()
        };
        protected.iter().filter_map(|pattern| Some((pattern, place(pattern)?))).collect()
    }
}

fn meaning(change: &LeafChange, before: &Value, after: &Value, unseen: &BTreeSet<&Pointer>) -> ChangeAttribution {
    let made = |empty: &Value| *empty == Value::Object(Map::new()) && change.pointer.resolve(before).is_none();
    let stands = |value: Option<&Value>| matches!(value, Some(Value::Object(_) | Value::Array(_)));
    match (&change.before, &change.after) {
        _ if change.is_filling(before, after) => ChangeAttribution::ByTheWay,
        // RFC 7396 creates this object even if the patch only deletes a member below it.
        (None, Some(empty)) if unseen.contains(&change.pointer) && made(empty) => ChangeAttribution::ByTheWay,
        (Some(empty), None) if stands(Some(empty)) && stands(change.pointer.resolve(after)) => {
            ChangeAttribution::OtherKind
        }
        _ => ChangeAttribution::Its,
    }
}
