//! Heads of threads. Each is checked against its signatures before it is used.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use countersign_domain::chain::hash::Digest;
use countersign_domain::keys::{KeyState, KeyUse, Keys, PublicKey, ThreadSecret};
use countersign_domain::log::event::Event;
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{STATE_DELTAS_MAX, StateContent, StateRow, Transition};
use countersign_store::records::{event_alias, version_id};
use countersign_store::{LIST_ROWS_MAX, StoreError};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::threads::Threads;
use crate::threads::version::Version;

const BROKEN: Error = Error::Broken("the chain");

impl Threads {
    /// Caches the head that a change has committed.
    pub(crate) fn cache_head(&self, head: Version) {
        self.heads.put(Arc::new(head));
    }

    pub(crate) fn secret(&self, keys: &Keys, thread: &ThreadId) -> ThreadSecret {
        keys.salt().thread_secret(thread.as_str())
    }

    /// Returns the verified head of a thread. After an error nothing may be proposed or written on it.
    pub(crate) async fn head(&self, keys: &Keys, thread: &Thread) -> Result<Arc<Version>> {
        self.check_last_event(keys, thread).await?;
        if let Some(head) = self.known_head(keys, thread) {
            return Ok(head);
        }
        let head = Arc::new(self.version(keys, &thread.id, thread.head.version).await?);
        if head.entry.transition != thread.head.transition {
            return Err(BROKEN);
        }
        self.heads.put(Arc::clone(&head));
        Ok(head)
    }

    /// Returns the head from the cache, if its keys are still trusted.
    pub(crate) fn known_head(&self, keys: &Keys, thread: &Thread) -> Option<Arc<Version>> {
        self.heads.get(&thread.id, thread.head.transition).filter(|head| self.still_trusted(keys, head))
    }

    /// Returns whether the keys of a head and its parent are trusted. A key may have been revoked since the
    /// head was checked.
    fn still_trusted(&self, keys: &Keys, head: &Version) -> bool {
        let good = |kid: &String| {
            let state = keys.public(KeyUse::Chain, kid).map(PublicKey::state);
            // A retired key signs nothing new, but its signatures stay valid.
            matches!(state, Some(KeyState::Signing | KeyState::Retired))
        };
        good(&head.kid) && head.parent_kid.iter().all(good)
    }

    /// Checks that the thread row matches the last event. A row that was restored from a backup or edited
    /// does not.
    async fn check_last_event(&self, keys: &Keys, thread: &Thread) -> Result<()> {
        let Some(last) = thread.last_event else { return Err(BROKEN) };
        let reader = self.core.reader(keys);
        let stored = reader.get_by_alias::<Event>(&event_alias(&thread.id, last.seq)).await?;
        // An event after the last one shows that an older thread row was restored.
        let beyond = reader.get_by_alias::<Event>(&event_alias(&thread.id, last.seq + 1)).await?;
        let agrees = stored.is_some_and(|it| it.record.hash() == last.hash);
        if agrees && beyond.is_none() {
            return Ok(());
        }
        // Either another gateway committed between these reads, or the row does not belong to its events.
        let again = self.core.thread(keys, &thread.id).await?;
        // The row is unchanged, so the events were tampered with.
        if again.record.last_event == thread.last_event {
            Err(BROKEN)
        } else {
            Err(StoreError::Conflict("threads").into())
        }
    }
}

/// States for lists.
impl Threads {
    /// Returns the state before each of these transitions. The states come from sealed rows and their roots
    /// are not recomputed, because a list needs speed. States in archives are left out.
    pub(crate) async fn states_before(
        &self,
        keys: &Keys,
        transitions: impl Iterator<Item = &Transition>,
    ) -> Result<HashMap<Digest, Value>> {
        let mut states: HashMap<Digest, Value> = HashMap::new();
        let mut asked: Vec<(Digest, ThreadId, u64)> = Vec::new();
        for transition in transitions {
            let statement = &transition.statement;
            // Most listed transitions are based on a current head, which is in the cache.
            let known = statement.parent.and_then(|it| self.heads.get(&statement.thread, it));
            match (known, statement.version.checked_sub(1)) {
                (Some(head), _) => drop(states.insert(transition.digest, head.state.clone())),
                (None, None) => drop(states.insert(transition.digest, Value::Object(Default::default()))),
                (None, Some(version)) => asked.push((transition.digest, statement.thread.clone(), version)),
            }
        }
        let mut rows: HashMap<String, StateContent> = HashMap::new();
        self.fetch_states(keys, &mut rows, asked.iter().map(|(_, thread, at)| version_id(thread, *at))).await?;
        let older = asked.iter().flat_map(|(_, thread, at)| match rows.get(&version_id(thread, *at)) {
            // A greater distance is never written, so following it would only read without a limit.
            Some(StateContent::Delta { base, .. }) if at.saturating_sub(*base) <= STATE_DELTAS_MAX => {
                (*base..*at).map(|it| version_id(thread, it)).collect()
            }
            _ => Vec::new(),
        });
        let older: Vec<String> = older.collect();
        self.fetch_states(keys, &mut rows, older.into_iter()).await?;
        for (digest, thread, at) in asked {
            // A version without a row is in an archive, which lists do not read.
            if rows.contains_key(&version_id(&thread, at)) {
                states.insert(digest, rolled_forward(&rows, &thread, at).ok_or(BROKEN)?);
            }
        }
        Ok(states)
    }

    async fn fetch_states(
        &self,
        keys: &Keys,
        rows: &mut HashMap<String, StateContent>,
        ids: impl Iterator<Item = String>,
    ) -> Result<()> {
        // Several transitions of one thread can need the same older version, which is read once.
        let ids: BTreeSet<String> = ids.filter(|it| !rows.contains_key(it)).collect();
        let ids: Vec<String> = ids.into_iter().collect();
        for chunk in ids.chunks(LIST_ROWS_MAX as usize) {
            let found = self.core.reader(keys).get_many::<StateRow>(chunk).await?.into_iter();
            rows.extend(found.map(|it| (version_id(&it.record.thread, it.record.version), it.record.content)));
        }
        Ok(())
    }
}

/// Returns the state of a version from its rows, without its tree.
fn rolled_forward(rows: &HashMap<String, StateContent>, thread: &ThreadId, version: u64) -> Option<Value> {
    let base = match rows.get(&version_id(thread, version))? {
        StateContent::Full { .. } => version,
        StateContent::Delta { base, .. } => *base,
    };
    let mut state = None;
    for at in base..=version {
        state = Some(match (rows.get(&version_id(thread, at))?, state) {
            (StateContent::Full { state, .. }, None) => state.clone(),
            (StateContent::Delta { delta, .. }, Some(before)) => delta.apply(&before).ok()?,
            _ => return None,
        });
    }
    state
}
