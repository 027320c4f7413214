//! Masks reasons that belong to a flow or to the gateway instead of a thread. There is no state to compare
//! them with, so only detectors are applied, before the reason is stored.

use std::collections::BTreeSet;

use countersign_domain::chain::hash::Digest;
use countersign_domain::keys::Keys;
use countersign_domain::policy::Redactor;
use countersign_domain::primitives::id::FlowId;

use crate::error::Result;
use crate::platform::reason::WITHHELD;
use crate::policies::Policies;

impl Policies {
    /// Returns a reason with detected secrets masked. If a policy cannot be read, the reason is withheld,
    /// because a halt must not fail for that.
    pub(crate) async fn mask_reason(&self, keys: &Keys, flow: Option<&FlowId>, words: &str) -> String {
        if words.is_empty() {
            return String::new();
        }
        self.masked_by_detectors(keys, flow, words).await.unwrap_or_else(|_| WITHHELD.to_owned())
    }

    async fn masked_by_detectors(&self, keys: &Keys, flow: Option<&FlowId>, words: &str) -> Result<String> {
        let active: BTreeSet<Digest> = match flow {
            Some(flow) => BTreeSet::from([self.core.flow(keys, flow).await?.record.policy]),
            // A halt of all flows is shown in every flow, so the detectors of all policies apply.
            None => self.active_policy_by_flow(keys).await?.into_values().map(|it| it.policy).collect(),
        };
        let mut words = words.to_owned();
        for digest in active {
            let policy = self.policy(keys, digest).await?;
            words = Redactor::of(&policy, [], None).masked(&words).into_owned();
        }
        Ok(words)
    }
}
