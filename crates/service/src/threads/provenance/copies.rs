//! Finds the texts that a node or a join may have copied a text from.

use std::sync::Arc;

use countersign_adapters::metrics::BlockingWork;
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::Statement;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::policy::{StateText, StateTextKind, TextIndex, project};
use countersign_domain::threads::transition::Transition;
use serde_json::Value;

use super::{ProvenanceTrace, StateBefore, TracedText};
use crate::error::Result;

/// States that one trace indexes. Beyond them, no copy is found, so the copier counts as the author.
const INDEXED_MAX: usize = 4_096;

/// Indexes that one trace keeps in memory.
const INDEXES_CACHED: usize = 8;

/// The texts of states, by transition: of its result, or of what its node could read before it.
#[derive(Default)]
pub(super) struct IndexCache {
    built: Vec<(IndexKey, Arc<TextIndex>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IndexKey {
    Result(Digest, StateTextKind),
    ReadBefore(Digest, StateTextKind),
    /// The texts of that state which the transition removed from their place.
    Left(Digest, StateTextKind),
}

impl ProvenanceTrace<'_> {
    /// Returns the texts of branches that a join took a text from, and the text before if the join left it as it was.
    pub(super) async fn joined_from(
        &mut self,
        whose: usize,
        statement: &Statement,
        before: &Value,
        value: Option<&Value>,
        text: &StateText,
    ) -> Result<Vec<TracedText>> {
        let mut moved = Vec::new();
        let Some(value) = value else { return Ok(moved) };
        // A branch may have set it to the same value. Then the earlier author is one of its authors.
        if text.resolve(before).as_deref() == Some(value) {
            let version = statement.version - 1;
            return Ok(vec![TracedText { thread: statement.thread.clone(), version, text: text.clone() }]);
        }
        for branch in statement.join.iter().flat_map(|it| &it.branches) {
            let version = self.service.stated(self.keys, branch.transition).await?.statement.version;
            let tip = self.version(&branch.thread, version).await?;
            let from =
                |at| TracedText { thread: branch.thread.clone(), version, text: StateText { kind: text.kind, at } };
            // The same path is the most certain source, so no further candidates are searched.
            if text.resolve(&tip.state).as_deref() == Some(value) {
                return Ok(vec![from(text.at.clone())]);
            }
            // A list that is matched by a key puts an item of a branch at another index.
            let (kind, key) = (text.kind, IndexKey::Result(branch.transition, text.kind));
            let Some(index) = self.indexed(whose, key, move || kind.index(&tip.state)).await? else { continue };
            let (at, value) = (text.at.clone(), value.clone());
            let same = move || {
                let same = index.places_of(&value).iter().filter(|it| it.is_same_but_indexes(&at));
                same.cloned().collect::<Vec<_>>()
            };
            moved.extend(self.service.core.apart(&self.permit, BlockingWork::Trace, same).await?.into_iter().map(from));
        }
        Ok(moved)
    }

    /// Returns the texts that the node could read and that are equal to the text that it set. An insertion
    /// into a list moves the later items, for example. Only readable texts count, so that a guess finds
    /// nothing. The most certain source is an equal item of the same list, then an equal text that left its place.
    /// No other text counts beside it, because a node that reads a redacted value moves guesses at it, too.
    pub(super) async fn copied_from(
        &mut self,
        whose: usize,
        transition: &Transition,
        before: StateBefore,
        text: &StateText,
        value: Option<&Value>,
    ) -> Result<Vec<Pointer>> {
        let (statement, kind) = (&transition.statement, text.kind);
        let (Some(node), Some(value)) = (statement.node.clone(), value) else { return Ok(Vec::new()) };
        let policy = self.service.policies.policy(self.keys, statement.policy).await?;
        let read = {
            let before = before.clone();
            move || kind.index(&project(&policy, &node, before.state()))
        };
        let key = IndexKey::ReadBefore(transition.digest, kind);
        let places =
            self.indexed(whose, key, read.clone()).await?.map_or_else(Vec::new, |it| it.places_of(value).to_vec());
        let same_list: Vec<Pointer> = places.iter().filter(|it| it.is_same_but_indexes(&text.at)).cloned().collect();
        if !same_list.is_empty() || places.len() <= 1 {
            return Ok(if same_list.is_empty() { places } else { same_list });
        }
        let delta = transition.delta.clone();
        let left = move || match delta.apply(before.state()) {
            Ok(after) => read().without_texts_of(kind, &after),
            // The delta was checked when the version was loaded, so this keeps every place as a source.
            Err(_) => read(),
        };
        let index = self.indexed(whose, IndexKey::Left(transition.digest, kind), left).await?;
        let left = index.map_or_else(Vec::new, |it| it.places_of(value).to_vec());
        Ok(if left.is_empty() { places } else { left })
    }

    /// Returns an index. It is built on a blocking thread, because a large state takes milliseconds. Returns `None` at the
    /// limit.
    async fn indexed(
        &mut self,
        whose: usize,
        key: IndexKey,
        build: impl FnOnce() -> TextIndex + Send + 'static,
    ) -> Result<Option<Arc<TextIndex>>> {
        if let Some(known) = self.indexes.get(key) {
            return Ok(Some(known));
        }
        self.spent[whose].indexes += 1;
        if self.spent[whose].indexes > INDEXED_MAX {
            return Ok(None);
        }
        let built = Arc::new(self.service.core.apart(&self.permit, BlockingWork::Trace, build).await?);
        if self.indexes.built.len() >= INDEXES_CACHED {
            self.indexes.built.remove(0);
        }
        self.indexes.built.push((key, Arc::clone(&built)));
        Ok(Some(built))
    }
}

impl IndexCache {
    fn get(&self, key: IndexKey) -> Option<Arc<TextIndex>> {
        self.built.iter().find(|it| it.0 == key).map(|it| Arc::clone(&it.1))
    }
}
