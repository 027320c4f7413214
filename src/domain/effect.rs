//! What a held change asks for, whatever head it is made on: the same question is counted as the same.
//!
//! The effect is built only from places that the node reads or names itself. Two states that look alike to a node
//! therefore give the same effect, and whether an attempt is counted tells the node nothing about the rest.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::chain::hash::{Digest, Tag};
use super::id::NodeId;
use super::json::canonical::canonical;
use super::json::diff::{diff, leaves};
use super::json::pattern::Pattern;
use super::json::pointer::Pointer;
use super::keys::ThreadSecret;
use super::policy::{Policy, ReasonCode};
use super::review::HoldReason;

/// A change as it was held.
pub struct Effect<'a> {
    /// The policy that holds it.
    pub policy: &'a Policy,
    /// The node that asks for it.
    pub node: &'a NodeId,
    /// The state before it.
    pub before: &'a Value,
    /// The state after it.
    pub after: &'a Value,
    /// Places that the request sets outside the node's reads.
    pub named: &'a BTreeSet<Pointer>,
    /// Why it is held.
    pub reasons: &'a [HoldReason],
}

/// Places of a change, each with its value after the change, or none if the change removes it.
type Leaves<'a> = BTreeMap<Pointer, Option<&'a Value>>;

impl<'a> Effect<'a> {
    /// Returns the digest of the effect in one thread. Without the thread's secret it confirms no guess of a value.
    pub fn digest(&self, secret: &ThreadSecret) -> Digest {
        let keys = self.protected_keys();
        let names: Vec<&str> = keys.iter().map(|it| it.as_str()).collect();
        let leaves = self.leaves(&keys);
        let leaf = |(pointer, value): (&Pointer, &Option<&Value>)| match value {
            Some(value) => json!([pointer, value]),
            None => json!([pointer]),
        };
        let leaves: Vec<Value> = leaves.iter().map(leaf).collect();
        Digest::keyed(secret, Tag::Effect, canonical(&json!([self.node, names, leaves])).as_bytes())
    }

    /// The protected keys that the node may be told it touches.
    fn protected_keys(&self) -> Vec<&'a Pattern> {
        let told = |key: &Pattern, it: &HoldReason| {
            !it.for_reviewers_only
                && it.code == ReasonCode::Protected.as_str()
                && it.pointer.as_deref() == Some(key.as_str())
        };
        self.policy.protected().iter().filter(|key| self.reasons.iter().any(|it| told(key, it))).collect()
    }

    /// What changes at the protected keys. A change that touches none is counted by everything that the node sees of
    /// it, and a request that changes nothing by the protected values that it asks to confirm.
    fn leaves(&self, keys: &[&Pattern]) -> Leaves<'a> {
        let node = self.policy.node(self.node);
        let is_read = |at: &Pointer| node.is_some_and(|it| it.reads().covers(at));
        let is_asked = |at: &Pointer| keys.is_empty() || keys.iter().any(|key| key.touches(at));
        let differing = diff(self.before, self.after).into_iter().map(|it| it.pointer).filter(is_read);
        let places = differing.chain(self.named.iter().cloned()).filter(is_asked);
        let changed: Leaves<'a> = places.map(|at| (at.clone(), at.resolve(self.after))).collect();
        if !changed.is_empty() || !keys.is_empty() {
            return changed;
        }
        let confirmed =
            leaves(self.after).into_iter().filter(|(at, _)| is_read(at) && self.policy.protected().touches(at));
        confirmed.map(|(at, value)| (at, Some(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::keys::Keys;
    use crate::domain::policy::PolicySource;
    use crate::domain::time::Timestamp;

    const POLICY: &str = r#"
        flow = "f"
        protected = ["payment", "limit"]
        nodes.planner.reads = ["payment.amount", "payment.to", "draft"]
        nodes.planner.writes = ["$"]
        nodes.other.reads = ["$"]
        nodes.other.writes = ["$"]
        approval.stages = [{ groups = ["finance"] }]
    "#;

    fn touches(key: &str) -> HoldReason {
        let (code, pointer) = ("protected".to_owned(), Some(key.to_owned()));
        HoldReason { code, pointer, text: String::new(), for_reviewers_only: false }
    }

    fn only_for_reviewers(key: &str) -> HoldReason {
        HoldReason { for_reviewers_only: true, ..touches(key) }
    }

    fn effect(node: &str, (before, after): (Value, Value), named: &[&str], reasons: &[HoldReason]) -> Digest {
        let policy = Policy::compile(&PolicySource { text: POLICY.to_owned(), ..PolicySource::default() }).unwrap();
        let named = named.iter().map(|it| Pointer::try_from(*it).unwrap()).collect();
        let node = NodeId::try_from(node).unwrap();
        let effect = Effect { policy: &policy, node: &node, before: &before, after: &after, named: &named, reasons };
        let mut drawn = 0;
        let mut draw = |bytes: &mut [u8]| {
            drawn += 1;
            bytes.fill(drawn);
        };
        let keys = Keys::generate("urn:test", Timestamp::from_millis(0), &mut draw).unwrap();
        effect.digest(&keys.salt().thread_secret("t"))
    }

    /// The planner sets an amount, in a state with more in it.
    fn sets(amount: u64, before: Value) -> Digest {
        let mut after = before.clone();
        after["payment"]["amount"] = json!(amount);
        after["draft"] = json!(format!("for {amount}"));
        effect("planner", (before, after), &[], &[touches("payment")])
    }

    #[test]
    fn effect_is_what_the_node_asks_for_at_protected_keys() {
        let one = sets(5, json!({"payment": {"amount": 1}}));
        assert_eq!(one, sets(5, json!({"payment": {"amount": 2}, "draft": "x", "raw": 1})), "on another head");
        assert_ne!(one, sets(6, json!({"payment": {"amount": 1}})), "another value");
        let states = (json!({"payment": {"amount": 1}}), json!({"payment": {"amount": 5}, "draft": "for 5"}));
        assert_ne!(one, effect("other", states.clone(), &[], &[touches("payment")]), "another node");
        let both = [touches("payment"), touches("limit")];
        assert_ne!(one, effect("planner", states, &["/limit"], &both), "another key beside it");
    }

    #[test]
    fn states_that_look_alike_to_the_node_give_the_same_effect() {
        let alone = sets(5, json!({"payment": {"amount": 1}}));
        assert_eq!(alone, sets(5, json!({"payment": {"amount": 1, "card": "4111"}, "limit": 9})));
        // A rollback brings back what the node does not read.
        let rolled = |limit: u64| {
            let states = (json!({"draft": "b", "limit": limit}), json!({"draft": "a", "limit": 1}));
            effect("planner", states, &[], &[only_for_reviewers("limit")])
        };
        let no_touch = effect("planner", (json!({"draft": "b"}), json!({"draft": "a"})), &[], &[]);
        assert_eq!([rolled(1), rolled(2)], [no_touch; 2]);
    }

    #[test]
    fn removed_value_is_not_null() {
        let state = json!({"payment": {"amount": 1}});
        let null = (state.clone(), json!({"payment": {"amount": null}}));
        let gone = (state, json!({"payment": {"to": "x"}}));
        let [null, gone] = [null, gone].map(|it| effect("planner", it, &[], &[touches("payment")]));
        assert_ne!(null, gone);
    }

    #[test]
    fn request_without_change_is_known_by_the_protected_values_it_confirms() {
        let confirms = |state: Value| effect("planner", (state.clone(), state), &[], &[]);
        let five = confirms(json!({"payment": {"amount": 5}, "draft": "a"}));
        assert_eq!(five, confirms(json!({"payment": {"amount": 5, "card": "4111"}, "draft": "b"})));
        assert_ne!(five, confirms(json!({"payment": {"amount": 6}, "draft": "a"})));
    }
}
