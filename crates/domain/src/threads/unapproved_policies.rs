//! Lineage: the policies that committed versions after the last approval or confirmed write.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::chain::entry::{CommitGate, Entry};
use crate::chain::hash::Digest;

/// The limit of policies below one head. Beyond it, the next transition requires approval.
const POLICIES_MAX: usize = 64;

/// The policies of the versions below a head since the last approval or confirmed write, without the head's own policy.
/// The set is empty if the head requires its own approval, because that approval covers all versions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnapprovedPolicies(BTreeSet<Digest>);

impl UnapprovedPolicies {
    /// Returns the lineage of `entry`, which follows `before`.
    #[must_use]
    pub fn followed(mut self, before: &Entry, entry: &Entry) -> Self {
        // An approval covers everything below the new head.
        if is_settled(entry) {
            return Self::default();
        }
        // A settled head needs no policy for the versions up to it.
        if !is_settled(before) {
            self.0.insert(before.policy);
        }
        // The set never contains the policy of the head, which is checked on its own.
        self.0.remove(&entry.policy);
        self
    }

    /// Checks that no policy other than the head's committed unwritten versions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that all versions below the head may still be written.
    pub fn is_accepted(&self, accepted: &BTreeSet<Digest>) -> bool {
        // The limit applies here, because the set itself may grow beyond it.
        self.0.is_subset(accepted) && self.0.len() < POLICIES_MAX
    }
}

fn is_settled(entry: &Entry) -> bool {
    entry.owes || matches!(entry.gate, CommitGate::Approved { .. } | CommitGate::Written { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::hash::Tag;
    use crate::primitives::time::Timestamp;

    fn policy(name: &str) -> Digest {
        Digest::of(Tag::Policy, &[name.as_bytes()])
    }

    fn entry(under: &str, gate: CommitGate) -> Entry {
        Entry {
            iss: "urn:test".to_owned(),
            thread: "t".try_into().unwrap(),
            version: 1,
            transition: policy("any"),
            parent: None,
            gate,
            owes: false,
            policy: policy(under),
            committed_at: Timestamp::from_millis(0),
        }
    }

    fn auto(under: &str) -> Entry {
        entry(under, CommitGate::Auto {})
    }

    fn along(chain: &[Entry]) -> UnapprovedPolicies {
        chain.windows(2).fold(UnapprovedPolicies::default(), |lineage, pair| lineage.followed(&pair[0], &pair[1]))
    }

    fn of(names: &[&str]) -> UnapprovedPolicies {
        UnapprovedPolicies(names.iter().map(|it| policy(it)).collect())
    }

    #[test]
    fn lineage_has_every_policy_below_the_head_until_an_approval() {
        assert_eq!(along(&[auto("a"), auto("a")]), of(&[]));
        assert_eq!(along(&[auto("a"), auto("b")]), of(&["a"]));
        assert_eq!(along(&[auto("a"), auto("b"), auto("b"), auto("c")]), of(&["a", "b"]));
        assert_eq!(along(&[auto("a"), auto("b"), auto("a")]), of(&["b"]), "the head's own is said by the head");
        let written = entry("b", CommitGate::Written { write_id: "w".try_into().unwrap(), receipt: None });
        assert_eq!(along(&[auto("a"), written.clone()]), of(&[]));
        assert_eq!(along(&[auto("a"), written, auto("c")]), of(&[]), "what is written is not to be written");
        let owing = Entry { owes: true, ..auto("b") };
        assert_eq!(along(&[auto("a"), owing]), of(&[]), "people are asked about all of it");
    }

    #[test]
    fn lineage_is_accepted_while_every_policy_is_and_the_limit_holds() {
        let accepted = |names: &[&str]| names.iter().map(|it| policy(it)).collect::<BTreeSet<_>>();
        assert!(of(&[]).is_accepted(&accepted(&[])));
        assert!(of(&["a", "b"]).is_accepted(&accepted(&["a", "b", "c"])));
        assert!(!of(&["a", "b"]).is_accepted(&accepted(&["b", "c"])));
        let many: Vec<String> = (0..POLICIES_MAX).map(|it| it.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(!of(&many).is_accepted(&accepted(&many)));
        assert!(of(&many[1..]).is_accepted(&accepted(&many)));
    }
}
