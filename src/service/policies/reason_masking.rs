//! What people say of a flow, or of all of them, and of no thread: there is no state whose values could be looked for in
//! it, so what detectors find is masked, and before it is kept.

use std::collections::BTreeSet;

use crate::domain::chain::hash::Digest;
use crate::domain::keys::Keys;
use crate::domain::policy::Redactor;
use crate::domain::primitives::id::FlowId;
use crate::service::Service;
use crate::service::error::Result;
use crate::service::log::browse::WITHHELD;

impl Service {
    /// A reason as everybody may read it. Nobody is kept from stopping a flow by a policy that cannot be read: what they
    /// said is withheld then.
    pub(in crate::service) async fn mask_reason(&self, keys: &Keys, flow: Option<&FlowId>, words: &str) -> String {
        if words.is_empty() {
            return String::new();
        }
        self.masked_by_detectors(keys, flow, words).await.unwrap_or_else(|_| WITHHELD.to_owned())
    }

    async fn masked_by_detectors(&self, keys: &Keys, flow: Option<&FlowId>, words: &str) -> Result<String> {
        let active: BTreeSet<Digest> = match flow {
            Some(flow) => BTreeSet::from([self.flow(keys, flow).await?.record.policy]),
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
