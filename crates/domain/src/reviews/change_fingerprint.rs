//! The fingerprint of a requested effect, by which repeated attempts are counted, whatever head they build on.
//!
//! The effect contains only paths that the node reads or names itself. Two states that look the same to a node give the
//! same effect. So the count of attempts reveals nothing about the rest of the state.
//!
//! A value that the node sets without reading it, and the arguments of a tool call, are shown only to the owner of the
//! token that sent them. Such an effect contains the owner, so the count does not confirm another owner's guess.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::HoldReason;
use crate::chain::hash::{Digest, Tag};
use crate::chain::statement::TransitionType;
use crate::json::canonical::canonical;
use crate::json::diff::{LeafChange, diff, leaves};
use crate::json::pattern::Pattern;
use crate::json::pointer::Pointer;
use crate::keys::ThreadSecret;
use crate::policy::{Policy, ReasonCode};
use crate::primitives::id::NodeId;
use crate::threads::tool_call::Tool;

pub struct RequestedEffect<'a> {
    /// The policy that evaluates the request.
    pub policy: &'a Policy,
    /// The node that asks for it.
    pub node: &'a NodeId,
    /// The owner of the token that asks for it. `None` gives the digest of earlier versions, which had no owner.
    pub owner: Option<&'a str>,
    pub kind: TransitionType,
    /// The tool that the request calls.
    pub tool: Option<&'a Tool>,
    pub before: &'a Value,
    pub after: &'a Value,
    /// Leaves that the request sets whether or not they differ.
    pub named: &'a BTreeSet<Pointer>,
    pub reasons: &'a [HoldReason],
}

/// The changed paths with their new leaf, or `None` if the change removes it.
type Leaves = BTreeMap<Pointer, Option<Value>>;

/// The basis on which a change is counted.
struct CountingBasis {
    parts: Value,
    /// Whether another token of the node may read all of it.
    is_readable: bool,
}

impl CountingBasis {
    const fn readable(parts: Value) -> Self {
        Self { parts, is_readable: true }
    }
}

impl RequestedEffect<'_> {
    /// Returns the digest of the effect in one thread. It is keyed, so a guess of a value cannot be confirmed without
    /// the thread's secret.
    pub fn digest(&self, secret: &ThreadSecret) -> Digest {
        let basis = self.basis();
        // The node is included, so nodes do not share a limit of attempts.
        let identity = match self.owner {
            Some(owner) if !basis.is_readable => json!([self.node, basis.parts, owner]),
            _ => json!([self.node, basis.parts]),
        };
        Digest::keyed(secret, Tag::Effect, canonical(&identity).as_bytes())
    }

    /// Returns the basis on which the change is counted. Only the first basis that applies is used, so additional parts
    /// of the request do not make it a different change.
    fn basis(&self) -> CountingBasis {
        let keys = self.protected_keys();
        if !keys.is_empty() {
            let names: Vec<&str> = keys.iter().map(|it| it.as_str()).collect();
            // A path above a key has no protected value of its own.
            let leaves = self.leaves(|at| keys.iter().any(|key| key.covers(at)));
            return self.of_leaves(json!(["protected", names, listed(&leaves)]), &leaves);
        }
        if self.kind == TransitionType::Rollback {
            return CountingBasis::readable(json!(["rollback"]));
        }
        let paths = self.rule_paths();
        if !paths.is_empty() {
            let leaves = self.leaves(|at| paths.contains(at.as_str()));
            return self.of_leaves(json!(["rules", paths, listed(&leaves)]), &leaves);
        }
        if let Some(tool) = self.tool {
            return CountingBasis { parts: json!(["tool", tool.identity()]), is_readable: false };
        }
        let changed = self.leaves(|_| true);
        if changed.is_empty() {
            return CountingBasis::readable(json!(["confirmed", listed(&self.confirmed())]));
        }
        self.of_leaves(json!(["change", listed(&changed)]), &changed)
    }

    /// Returns the basis of these leaves. Whether it is readable depends only on the paths that the request names, so
    /// it reveals no value.
    fn of_leaves(&self, parts: Value, leaves: &Leaves) -> CountingBasis {
        CountingBasis { parts, is_readable: !self.own_names().any(|it| leaves.contains_key(it)) }
    }

    /// Returns the leaves that the request itself names. A rollback or a join names leaves that others have set. Their
    /// values would confirm a guess of an earlier request.
    fn own_names(&self) -> impl Iterator<Item = &Pointer> {
        let is_own = !matches!(self.kind, TransitionType::Rollback | TransitionType::Join);
        self.named.iter().filter(move |_| is_own)
    }

    /// Returns the reasons with a code that the node may see.
    fn told(&self, code: ReasonCode) -> impl Iterator<Item = &HoldReason> {
        self.reasons.iter().filter(move |it| !it.for_reviewers_only && it.code == code.as_str())
    }

    /// Returns the touched protected keys that the node may see.
    fn protected_keys(&self) -> Vec<&Pattern> {
        let is_told =
            |key: &&Pattern| self.told(ReasonCode::Protected).any(|it| it.pointer.as_deref() == Some(key.as_str()));
        self.policy.protected().iter().filter(is_told).collect()
    }

    /// Returns the paths of the rules that require approval, for rules about one path.
    fn rule_paths(&self) -> BTreeSet<&str> {
        self.told(ReasonCode::Rule).flat_map(|it| self.policy.held_paths(&it.text)).collect()
    }

    /// Returns the leaves that differ within the node's reads, and those that the request names outside them.
    fn leaves(&self, is_asked: impl Fn(&Pointer) -> bool) -> Leaves {
        let differing = diff(self.before, self.after).into_iter();
        let differing = differing.filter(|it| self.is_read(&it.pointer) && !self.became_container(it));
        let differing = differing.map(|it| (it.pointer, it.after));
        let named = self.own_names().map(|at| (at.clone(), at.resolve(self.after).map(as_set)));
        differing.chain(named).filter(|(at, _)| is_asked(at)).collect()
    }

    /// Checks that a container replaced the leaf, or that a container only became full or empty. The changes inside the
    /// container are listed separately.
    fn became_container(&self, change: &LeafChange) -> bool {
        let is_replaced = change.after.is_none() && change.pointer.resolve(self.after).is_some();
        // The contents are leaves of their own and are counted there.
        is_replaced || change.is_filling(self.before, self.after)
    }

    /// Returns the protected leaves that a request without a change confirms.
    fn confirmed(&self) -> Leaves {
        let leaves = leaves(self.after).into_iter();
        let leaves = leaves.filter(|(at, _)| self.is_read(at) && self.policy.protected().covers(at));
        leaves.map(|(at, value)| (at, Some(value.clone()))).collect()
    }

    fn is_read(&self, at: &Pointer) -> bool {
        self.policy.node(self.node).is_some_and(|it| it.reads().covers(at))
    }
}

/// Returns the value that the request set outside the node's reads. An object there is reduced to an empty one, because
/// it may keep members that the node does not know.
fn as_set(value: &Value) -> Value {
    if value.is_object() { json!({}) } else { value.clone() }
}

/// Returns the leaves as JSON. A removed leaf has no value, to distinguish it from null.
fn listed(leaves: &Leaves) -> Vec<Value> {
    let leaf = |(at, value): (&Pointer, &Option<Value>)| match value {
        Some(value) => json!([at, value]),
        None => json!([at]),
    };
    leaves.iter().map(leaf).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;
    use crate::policy::PolicySource;
    use crate::primitives::time::Timestamp;

    const POLICY: &str = r#"
        flow = "f"
        protected = ["payment", "limit", "order.price"]
        nodes.planner.reads = ["payment.amount", "payment.to", "draft", "order"]
        nodes.planner.writes = ["$"]
        nodes.other.reads = ["$"]
        nodes.other.writes = ["$"]
        approval.stages = [{ groups = ["finance"] }]

        [[rules]]
        when = "change.path == '/draft' && change.after == 'long'"
        then = "hold"
        reason = "long drafts are asked about"
    "#;

    fn touches(key: &str) -> HoldReason {
        let (code, pointer) = ("protected".to_owned(), Some(key.to_owned()));
        HoldReason { code, pointer, text: String::new(), for_reviewers_only: false }
    }

    fn only_for_reviewers(key: &str) -> HoldReason {
        HoldReason { for_reviewers_only: true, ..touches(key) }
    }

    fn effect(node: &str, states: (Value, Value), named: &[&str], reasons: &[HoldReason]) -> Digest {
        asked((TransitionType::Propose, node, None), states, named, reasons)
    }

    fn asked(
        (kind, node, tool): (TransitionType, &str, Option<&Tool>),
        (before, after): (Value, Value),
        named: &[&str],
        reasons: &[HoldReason],
    ) -> Digest {
        owned(Some("platform"), (kind, node, tool), (before, after), (named, reasons))
    }

    fn owned(
        owner: Option<&str>,
        (kind, node, tool): (TransitionType, &str, Option<&Tool>),
        (before, after): (Value, Value),
        (named, reasons): (&[&str], &[HoldReason]),
    ) -> Digest {
        let policy = Policy::compile(&PolicySource { text: POLICY.to_owned(), ..PolicySource::default() }).unwrap();
        let named = named.iter().map(|it| Pointer::try_from(*it).unwrap()).collect();
        let node = NodeId::try_from(node).unwrap();
        let (policy, node, named) = (&policy, &node, &named);
        let effect =
            RequestedEffect { policy, node, owner, kind, tool, before: &before, after: &after, named, reasons };
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

    /// A join names the leaves that a branch set, so it must count like the change that was denied on the thread.
    #[test]
    fn a_join_of_a_readable_change_is_the_same_effect() {
        let states = || (json!({"payment": {"amount": 1}}), json!({"payment": {"amount": 5}}));
        let of = |kind, named: &[&str]| asked((kind, "planner", None), states(), named, &[touches("payment")]);
        assert_eq!(of(TransitionType::Propose, &[]), of(TransitionType::Join, &["/payment/amount"]));
    }

    #[test]
    fn states_that_look_alike_to_the_node_give_the_same_effect() {
        let alone = sets(5, json!({"payment": {"amount": 1}}));
        assert_eq!(alone, sets(5, json!({"payment": {"amount": 1, "card": "4111"}, "limit": 9})));
        // A rollback restores values that the node does not read.
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

    #[test]
    fn only_protected_leaves_count_where_their_container_is_filled_or_replaced() {
        let priced = |before: Value, order: Value| {
            effect("planner", (json!({"order": before}), json!({"order": order})), &[], &[touches("order.price")])
        };
        let five = priced(json!({"price": 1}), json!({"price": 5}));
        for before in [json!({}), json!(null), json!([]), json!({"memo": "x"})] {
            for memo in ["a", "b"] {
                assert_eq!(priced(before.clone(), json!({"price": 5, "memo": memo})), five, "{before}");
            }
        }
        let gone = priced(json!({"price": 1, "memo": "x"}), json!({"memo": "x"}));
        for order in [json!({}), json!(null), json!("a"), json!("b")] {
            assert_eq!(priced(json!({"price": 1}), order.clone()), gone, "{order}");
        }
        assert_ne!(gone, five);
    }

    #[test]
    fn object_that_a_node_names_unread_gives_nothing_away() {
        let named = |members: Value| {
            let states = (json!({}), json!({"limit": members}));
            effect("planner", states, &["/limit"], &[touches("limit")])
        };
        assert_eq!(named(json!({})), named(json!({"secret": 1})));
        assert_ne!(named(json!({})), named(json!(1)));
    }

    #[test]
    fn owner_is_part_of_what_other_tokens_of_the_node_may_not_read() {
        let tool = Tool::read(&json!({"name": "refund", "arguments": {"amount": 1}})).unwrap();
        let differ = |tool, named: &[&str], reasons: &[HoldReason]| {
            let of = |owner| {
                let states = (json!({}), json!({"payment": {"amount": 5}, "limit": 9}));
                owned(owner, (TransitionType::Propose, "planner", tool), states, (named, reasons))
            };
            of(Some("ada")) != of(Some("platform")) && of(Some("ada")) != of(None)
        };
        assert!(differ(None, &["/limit"], &[touches("limit")]));
        assert!(differ(None, &["/limit"], &[touches("payment"), touches("limit")]));
        assert!(differ(None, &["/limit"], &[]));
        assert!(differ(Some(&tool), &[], &[]));
        // These digests are the same as those of earlier versions.
        assert!(!differ(None, &["/limit"], &[touches("payment")]), "the unread leaf is not counted");
        assert!(!differ(Some(&tool), &[], &[touches("payment")]));
        assert!(!differ(None, &[], &[]));
    }

    #[test]
    fn rollback_without_protected_change_is_counted_by_its_node() {
        let rolled = |node: &str, reasons: &[HoldReason], draft: &str| {
            let states = (json!({"draft": draft, "order": {"price": 2}}), json!({"order": {"price": 1}}));
            asked((TransitionType::Rollback, node, None), states, &[], reasons)
        };
        let one = rolled("planner", &[], "a");
        assert_eq!(one, rolled("planner", &[only_for_reviewers("limit")], "b"));
        assert_ne!(one, rolled("other", &[], "a"));
        let price = rolled("planner", &[touches("order.price")], "a");
        assert_ne!(one, price);
        assert_eq!(price, rolled("planner", &[touches("order.price")], "b"));
    }

    #[test]
    fn call_is_counted_by_itself_unless_it_touches_a_protected_key() {
        let calls = |amount: u64, draft: &str, reasons: &[HoldReason]| {
            let tool = Tool::read(&json!({"name": "refund", "arguments": {"amount": amount}})).unwrap();
            let states = (json!({"payment": {"amount": 1}}), json!({"payment": {"amount": 5}, "draft": draft}));
            asked((TransitionType::Propose, "planner", Some(&tool)), states, &[], reasons)
        };
        assert_eq!(calls(5, "a", &[]), calls(5, "b", &[]));
        assert_ne!(calls(5, "a", &[]), calls(6, "a", &[]));
        let key = [touches("payment")];
        assert_eq!(calls(5, "a", &key), calls(6, "b", &key), "a call is harmless company of a protected change");
    }

    #[test]
    fn rule_about_one_path_counts_the_value_there() {
        let rule = [HoldReason { code: "rule".to_owned(), pointer: None, ..touches("") }];
        let rule = rule.map(|it| HoldReason { text: "long drafts are asked about".to_owned(), ..it });
        let drafts = |draft: &str, memo: &str| {
            effect("planner", (json!({}), json!({"draft": draft, "order": {"memo": memo}})), &[], &rule)
        };
        assert_eq!(drafts("long", "a"), drafts("long", "b"));
        assert_ne!(drafts("long", "a"), drafts("longer", "a"));
    }
}
