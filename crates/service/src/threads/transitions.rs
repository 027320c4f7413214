//! Reads transitions with their states and policies, from the database or an archive.

use std::collections::HashMap;
use std::sync::Arc;

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::Statement;
use countersign_domain::json::diff::{LeafChange, diff};
use countersign_domain::keys::Keys;
use countersign_domain::policy::Policy;
use countersign_domain::primitives::id::FlowId;
use countersign_domain::reviews::Hold;
use countersign_domain::threads::archive::ArchivedLocation;
use countersign_domain::threads::transition::{Transition, ValueLocation};
use countersign_store::LIST_ROWS_MAX;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::threads::Threads;
use crate::threads::archive_lookup::ArchiveFiles;

impl Threads {
    /// Returns the transitions with these digests in one query, with their values unless they are erased.
    pub(crate) async fn transitions_of(
        &self,
        keys: &Keys,
        files: &mut ArchiveFiles,
        digests: &[Digest],
    ) -> Result<HashMap<Digest, Transition>> {
        let mut found = self.transitions_at_hand(keys, digests).await?;
        self.add_archived(keys, &mut *files, digests, &mut found).await?;
        self.fill_in(keys, files, &mut found).await?;
        Ok(found)
    }

    /// Returns the transitions that are in the database. Lists read no archives: an unavailable archive directory would
    /// make the whole list fail.
    pub(crate) async fn transitions_at_hand(
        &self,
        keys: &Keys,
        digests: &[Digest],
    ) -> Result<HashMap<Digest, Transition>> {
        let mut found = HashMap::with_capacity(digests.len());
        for chunk in digests.chunks(LIST_ROWS_MAX as usize) {
            let ids: Vec<String> = chunk.iter().map(ToString::to_string).collect();
            for stored in self.core.reader(keys).get_many::<Transition>(&ids).await? {
                let transition = stored.record;
                if transition.statement.digest() != transition.digest {
                    // A row with a wrong digest must never be shown to a reviewer.
                    return Err(Error::Broken("a statement"));
                }
                found.insert(transition.digest, transition);
            }
        }
        Ok(found)
    }

    /// Returns the flow of a transition from the database alone. No archive is read before the caller's
    /// access is checked.
    pub async fn flow_of_transition(&self, digest: Digest) -> Result<FlowId> {
        let keys = self.core.keys()?;
        if let Some(stored) = self.core.fetch::<Transition>(&keys, &digest.to_string()).await? {
            return Ok(stored.record.statement.flow);
        }
        let place = self.core.need::<ArchivedLocation>(&keys, &digest.to_string(), "transition").await?;
        Ok(self.core.thread(&keys, &place.record.thread).await?.record.flow)
    }

    /// Returns the policies that restricted the readers of an effect when it was stated: its own, and for a
    /// rollback that of the restored version.
    pub(crate) async fn policies_of(&self, keys: &Keys, statement: &Statement) -> Result<Vec<Arc<Policy>>> {
        let mut policies = vec![self.policies.policy(keys, statement.policy).await?];
        if let Some(restored) = statement.restores {
            let then = self.stated(keys, restored).await?.statement.policy;
            policies.push(self.policies.policy(keys, then).await?);
        }
        Ok(policies)
    }

    /// Returns the review of a transition, if it was held for approval.
    pub(crate) async fn hold_of(&self, keys: &Keys, transition: Digest) -> Result<Option<Stored<Hold>>> {
        Ok(self.core.reader(keys).get_by_alias::<Hold>(&transition.to_string()).await?)
    }

    /// Returns all changes of a transition, computed from verified states.
    pub(crate) async fn changes_of(&self, keys: &Keys, transition: &Transition) -> Result<Vec<LeafChange>> {
        let (before, after) = self.states_of(keys, transition).await?;
        Ok(diff(&before, &after))
    }

    /// Returns the states before and after a transition.
    pub(crate) async fn states_of(&self, keys: &Keys, transition: &Transition) -> Result<(Value, Value)> {
        let statement = &transition.statement;
        let before = match statement.version.checked_sub(1) {
            Some(version) => self.version(keys, &statement.thread, version).await?.state,
            None => json!({}),
        };
        let after = transition.delta.apply(&before).map_err(|_| Error::Broken("a transition's effect"))?;
        Ok((before, after))
    }

    /// Returns the transition with this digest, with its values.
    pub(crate) async fn transition(&self, keys: &Keys, digest: Digest) -> Result<Transition> {
        self.whole(keys, self.stated(keys, digest).await?).await
    }

    /// Returns the statement and outcome of a transition from the database or an archive. Its values may be
    /// missing.
    pub(crate) async fn stated(&self, keys: &Keys, digest: Digest) -> Result<Transition> {
        match self.core.fetch::<Transition>(keys, &digest.to_string()).await? {
            Some(stored) if stored.record.statement.digest() == digest => Ok(stored.record),
            Some(_) => Err(Error::Broken("a statement")),
            None => {
                let archived = self.archived(keys, &mut ArchiveFiles::default(), digest).await?;
                archived.ok_or(Error::NotFound("transition"))
            }
        }
    }

    /// Returns the row of a transition under review. Such a row is complete in the database until the review
    /// ends.
    pub(crate) async fn held(&self, keys: &Keys, digest: Digest) -> Result<Stored<Transition>> {
        let stored: Stored<Transition> = self.core.need(keys, &digest.to_string(), "transition").await?;
        let whole = stored.record.statement.digest() == digest && stored.record.values == ValueLocation::Here;
        if whole { Ok(stored) } else { Err(Error::Broken("a statement")) }
    }
}
