//! What a patch would do, and what of that is the asker's doing.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::judgement::{RejectCode, Violation};
use super::model::NodePolicy;
use super::patch_footprint::PatchFootprint;
use super::pattern_set::Patterns;
use super::visibility::Visibility;
use crate::domain::json::diff::{LeafChange, diff};
use crate::domain::json::pattern::Pattern;
use crate::domain::json::pointer::Pointer;

const NOT_IN_WRITES: &str = "the node may not write this: its `writes` do not cover it";
const IN_DENY: &str = "the node is denied to write this";

/// The state after, and the way there.
pub(super) struct PatchEffect {
    pub(super) after: Value,
    pub(super) changes: Vec<LeafChange>,
    meanings: Vec<ChangeAttribution>,
    /// Where a merge patch goes through something that is no object, and that the node cannot see: it is replaced as
    /// a whole, whatever it is.
    overrun: BTreeSet<Pointer>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ChangeAttribution {
    /// A value came, went or differs.
    Its,
    /// An empty container gave way to a filled one of another kind. That takes the same leave as for a container
    /// with members, of which only the members are changes.
    OtherKind,
    /// It follows from a place that is replaced as a whole, and is judged there.
    OfThePlace,
    /// Nothing of its own. An object that gains its first member or loses its last is changed at the member, not at
    /// itself; and where the node cannot look, an object that had to be there for a member to be deleted from it is
    /// no change of the asker's. Both would tell of members that the asker may not read.
    ByTheWay,
}

impl PatchEffect {
    pub(super) fn new(before: &Value, after: Value, claims: &PatchFootprint, reads: &Patterns) -> Self {
        let changes = diff(before, &after);
        let stands_there = |place: &&Pointer| place.resolve(before).is_some_and(|it| !it.is_object());
        let passed: BTreeSet<_> = claims.passed_unseen(reads).collect();
        let overrun: BTreeSet<_> = passed.iter().copied().filter(stands_there).cloned().collect();
        let meaning = |change: &LeafChange| {
            let within = !overrun.is_empty() && change.pointer.at_and_above().any(|it| overrun.contains(it));
            if within { ChangeAttribution::OfThePlace } else { meaning(change, before, &after, &passed) }
        };
        let meanings = changes.iter().map(meaning).collect();
        Self { after, changes, meanings, overrun }
    }

    /// The changes that say something of their own.
    fn telling(&self) -> impl Iterator<Item = &LeafChange> {
        self.changes
            .iter()
            .zip(&self.meanings)
            .filter(|(_, it)| **it == ChangeAttribution::Its)
            .map(|(change, _)| change)
    }

    /// The changes that rules are asked about. What the request set where its node cannot look is among them whether
    /// or not it differs, or a rule would tell a right guess from a wrong one.
    pub(super) fn asked<'o>(
        &'o self,
        before: &Value,
        claims: &PatchFootprint,
        reads: &Patterns,
    ) -> Vec<Cow<'o, LeafChange>> {
        let differs = self.changes.iter().zip(&self.meanings).filter(|(_, it)| **it != ChangeAttribution::ByTheWay);
        let mut asked: Vec<_> = differs.map(|(change, _)| Cow::Borrowed(change)).collect();
        let unseen = claims.leaves_unseen(reads, &self.after);
        if unseen.is_empty() {
            return asked;
        }
        let known: BTreeSet<_> = asked.iter().map(|it| it.pointer.clone()).collect();
        asked.extend(unseen.into_iter().filter(|it| !known.contains(it)).map(|pointer| {
            let value = |state: &Value| pointer.resolve(state).cloned();
            let (before, after) = (value(before), value(&self.after));
            Cow::Owned(LeafChange { pointer, before, after })
        }));
        // In one order, whichever of them differ.
        asked.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        asked
    }

    /// Effects outside the write lists. What differs where the node cannot look is told at the place that the
    /// request named, and only if the request as such was admissible: then it can only mean that something stands
    /// where the policy has an object.
    pub(super) fn violations(&self, node: &NodePolicy, asked: &[Violation], sight: &Visibility<'_>) -> Vec<Violation> {
        let refused = |(change, meaning): (&LeafChange, &ChangeAttribution)| {
            let pointer = &change.pointer;
            let written = match meaning {
                ChangeAttribution::ByTheWay | ChangeAttribution::OfThePlace => return None,
                ChangeAttribution::Its => node.writes.covers(pointer),
                ChangeAttribution::OtherKind => node.writes.covers(pointer) || node.writes.covers_every_member(pointer),
            };
            let (code, detail) = match (node.deny.covers(pointer), written) {
                (true, _) => (RejectCode::WriteDenied, IN_DENY),
                (false, false) => (RejectCode::WriteNotAllowed, NOT_IN_WRITES),
                (false, true) => return None,
            };
            let may_be_told = asked.is_empty() || node.reads.covers(pointer);
            may_be_told.then(|| Violation::new(code, sight.tellable(pointer), detail))
        };
        let overrun = |place: &Pointer| {
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

    /// The protected patterns that the request touches, each with one place where it does. What a request sets where
    /// its node cannot look counts as touched, or a guess that changes nothing would tell that it was right.
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
        (None, Some(empty)) if unseen.contains(&change.pointer) && made(empty) => ChangeAttribution::ByTheWay,
        (Some(empty), None) if stands(Some(empty)) && stands(change.pointer.resolve(after)) => {
            ChangeAttribution::OtherKind
        }
        _ => ChangeAttribution::Its,
    }
}
