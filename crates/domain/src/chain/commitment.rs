//! Commitment tree of a state. Leaves are salted, so the root commits to every value and reveals none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::hash::{Digest, Tag};
use crate::json::canonical::{write_canonical, write_string};
use crate::json::pointer::{Pointer, array_index};
use crate::keys::ThreadSecret;
use crate::primitives::id::ProposalId;

pub type Salt = [u8; 32];

/// Commitment tree of one state. A clone is cheap, because versions share every unchanged part.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    pub(super) commitment: Digest,
    pub(super) node: Node,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Leaf { origin: ProposalId, salt: Salt },
    Object(Arc<BTreeMap<String, Tree>>),
    Array(Arc<Vec<Tree>>),
}

/// Maps each proposal to the leaves that it set last. With the thread's secret, this gives the salts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Origins(BTreeMap<ProposalId, Vec<Pointer>>);

impl Origins {
    /// Returns every leaf that a later proposal than `first` set. `first` set all leaves of the state.
    pub fn set_after(self, first: &ProposalId) -> impl Iterator<Item = Pointer> {
        self.0.into_iter().filter(move |(it, _)| it != first).flat_map(|(_, leaves)| leaves)
    }
}

/// Stored origins do not match the stored state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a leaf of the state has no origin")]
pub struct OriginMissing;

/// Describes which leaves a transition sets.
#[derive(Clone, Copy, Debug)]
pub struct LeafSource<'a> {
    /// Proposal whose id salts the leaves that it sets.
    pub proposal: &'a ProposalId,
    /// Leaves that count as set although their value is the same. A node names them outside its reads. Without a new
    /// salt, an unmoved root would confirm a guess.
    pub named: &'a BTreeSet<Pointer>,
}

/// Values and trees of a container before the change.
type PreviousNodes<'b, Values, Trees> = (&'b Values, &'b Arc<Trees>);

struct TreeBuilder<'a> {
    secret: &'a ThreadSecret,
    buffer: Vec<u8>,
}

impl Tree {
    /// Builds the tree of a state whose every leaf was set by one proposal: version 0, or the root of `{}`.
    pub fn new(secret: &ThreadSecret, state: &Value, proposal: &ProposalId) -> Self {
        let setting = LeafSource { proposal, named: &BTreeSet::new() };
        TreeBuilder::new(secret).grow(None, state, &Pointer::root(), &setting).0
    }

    /// Returns the tree after a change. Leaves that were not set keep origin, salt and commitment.
    #[must_use]
    pub fn advance(&self, secret: &ThreadSecret, before: &Value, after: &Value, setting: &LeafSource<'_>) -> Self {
        TreeBuilder::new(secret).grow(Some((before, self)), after, &Pointer::root(), setting).0
    }

    /// Rebuilds the tree of a stored state from its stored origins.
    pub fn restore(secret: &ThreadSecret, state: &Value, origins: &Origins) -> Result<Self, OriginMissing> {
        let by_leaf: BTreeMap<&Pointer, &ProposalId> =
            origins.0.iter().flat_map(|(proposal, leaves)| leaves.iter().map(move |leaf| (leaf, proposal))).collect();
        TreeBuilder::new(secret).restore(state, &Pointer::root(), &by_leaf)
    }

    /// Returns the root of the state.
    pub fn root(&self) -> Digest {
        self.commitment
    }

    /// Returns which proposal set which leaf.
    pub fn origins(&self) -> Origins {
        let mut origins = Origins::default();
        self.collect(&Pointer::root(), &mut origins);
        origins
    }

    /// Returns the proposal that set the leaf at a path, if there is a leaf.
    pub fn origin(&self, at: &Pointer) -> Option<&ProposalId> {
        match &self.at(at)?.node {
            Node::Leaf { origin, .. } => Some(origin),
            Node::Object(_) | Node::Array(_) => None,
        }
    }

    /// Returns the first leaf at or below a path, and the proposal that set it.
    pub fn first_leaf(&self, at: &Pointer) -> Option<(Pointer, ProposalId)> {
        let (mut tree, mut at) = (self.at(at)?, at.clone());
        loop {
            (tree, at) = match &tree.node {
                Node::Leaf { origin, .. } => return Some((at, origin.clone())),
                Node::Object(members) => members.iter().next().map(|(key, tree)| (tree, at.child(key)))?,
                Node::Array(items) => (items.first()?, at.index(0)),
            };
        }
    }

    /// Returns every leaf of either tree that is not in both with the same origin.
    pub fn differing_leaves(&self, other: &Self) -> BTreeSet<Pointer> {
        let mut found = BTreeSet::new();
        add_differing(Some(self), Some(other), &Pointer::root(), &mut found);
        found
    }

    fn at(&self, at: &Pointer) -> Option<&Self> {
        let mut tree = self;
        for token in at.tokens() {
            tree = tree.child(&token)?;
        }
        Some(tree)
    }

    fn child(&self, token: &str) -> Option<&Self> {
        match &self.node {
            Node::Object(members) => members.get(token),
            Node::Array(items) => items.get(array_index(token)?),
            Node::Leaf { .. } => None,
        }
    }

    fn collect(&self, at: &Pointer, origins: &mut Origins) {
        match &self.node {
            Node::Leaf { origin, .. } => origins.0.entry(origin.clone()).or_default().push(at.clone()),
            Node::Object(members) => members.iter().for_each(|(key, tree)| tree.collect(&at.child(key), origins)),
            Node::Array(items) => {
                items.iter().enumerate().for_each(|(i, tree)| tree.collect(&at.index(i), origins));
            }
        }
    }
}

fn add_differing(one: Option<&Tree>, other: Option<&Tree>, at: &Pointer, found: &mut BTreeSet<Pointer>) {
    // Equal commitments share salts and therefore origins.
    if one.map(Tree::root) == other.map(Tree::root) {
        return;
    }
    let nodes = (one.map(|it| &it.node), other.map(|it| &it.node));
    if matches!(nodes, (Some(Node::Leaf { .. }), _) | (_, Some(Node::Leaf { .. }))) {
        found.insert(at.clone());
    }
    let names = |node: Option<&Node>| match node {
        Some(Node::Object(members)) => members.keys().cloned().collect(),
        Some(Node::Array(items)) => (0..items.len()).map(|it| it.to_string()).collect(),
        Some(Node::Leaf { .. }) | None => Vec::new(),
    };
    let names: BTreeSet<String> = names(nodes.0).into_iter().chain(names(nodes.1)).collect();
    for name in &names {
        add_differing(one.and_then(|it| it.child(name)), other.and_then(|it| it.child(name)), &at.child(name), found);
    }
}

/// Returns whether a value is a leaf: a scalar, `{}` or `[]`.
pub(super) fn is_leaf(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    }
}

impl<'a> TreeBuilder<'a> {
    fn new(secret: &'a ThreadSecret) -> Self {
        Self { secret, buffer: Vec::with_capacity(256) }
    }

    /// Builds the tree of `value`. Also returns whether it is identical to the tree before.
    fn grow(
        &mut self,
        before: Option<(&Value, &Tree)>,
        value: &Value,
        at: &Pointer,
        setting: &LeafSource<'_>,
    ) -> (Tree, bool) {
        match (value, before) {
            (Value::Object(members), before) if !members.is_empty() => {
                let old = match before {
                    Some((Value::Object(values), Tree { node: Node::Object(trees), .. })) => Some((values, trees)),
                    _ => None,
                };
                let (children, same) = self.grow_members(old, members, at, setting);
                match before {
                    // An unchanged part is shared, so none of its hashes is computed again.
                    Some((_, tree)) if same => (tree.clone(), true),
                    _ => (self.object(children), false),
                }
            }
            (Value::Array(items), before) if !items.is_empty() => {
                let old = match before {
                    Some((Value::Array(values), Tree { node: Node::Array(trees), .. })) => Some((values, trees)),
                    _ => None,
                };
                let (children, same) = self.grow_items(old, items, at, setting);
                match before {
                    Some((_, tree)) if same => (tree.clone(), true),
                    _ => (self.array(children), false),
                }
            }
            // An unchanged leaf keeps its salt, so its commitment reveals nothing new.
            (_, Some((old, tree))) if old == value && !setting.named.contains(at) => (tree.clone(), true),
            _ => (self.leaf(value, at, setting.proposal), false),
        }
    }

    fn grow_members(
        &mut self,
        old: Option<PreviousNodes<'_, Map<String, Value>, BTreeMap<String, Tree>>>,
        members: &Map<String, Value>,
        at: &Pointer,
        setting: &LeafSource<'_>,
    ) -> (BTreeMap<String, Tree>, bool) {
        // A removed member changes the object even if all others are equal.
        let mut same = old.is_some_and(|(values, _)| values.len() == members.len());
        let mut children = BTreeMap::new();
        for (key, value) in members {
            let before = old.and_then(|(values, trees)| values.get(key).zip(trees.get(key)));
            let (tree, kept) = self.grow(before, value, &at.child(key), setting);
            same &= kept;
            children.insert(key.clone(), tree);
        }
        (children, same)
    }

    fn grow_items(
        &mut self,
        old: Option<PreviousNodes<'_, Vec<Value>, Vec<Tree>>>,
        items: &[Value],
        at: &Pointer,
        setting: &LeafSource<'_>,
    ) -> (Vec<Tree>, bool) {
        let mut same = old.is_some_and(|(values, _)| values.len() == items.len());
        let mut children = Vec::with_capacity(items.len());
        for (index, value) in items.iter().enumerate() {
            // Items are matched by index, because the salt of a leaf depends on its path.
            let before = old.and_then(|(values, trees)| values.get(index).zip(trees.get(index)));
            let (tree, kept) = self.grow(before, value, &at.index(index), setting);
            same &= kept;
            children.push(tree);
        }
        (children, same)
    }

    fn restore(
        &mut self,
        value: &Value,
        at: &Pointer,
        origins: &BTreeMap<&Pointer, &ProposalId>,
    ) -> Result<Tree, OriginMissing> {
        match value {
            Value::Object(members) if !members.is_empty() => {
                let children = members
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), self.restore(value, &at.child(key), origins)?)))
                    .collect::<Result<_, _>>()?;
                Ok(self.object(children))
            }
            Value::Array(items) if !items.is_empty() => {
                let children = items
                    .iter()
                    .enumerate()
                    .map(|(i, value)| self.restore(value, &at.index(i), origins))
                    .collect::<Result<_, _>>()?;
                Ok(self.array(children))
            }
            // Without its origin a leaf has no salt, so the state cannot be verified.
            leaf => Ok(self.leaf(leaf, at, origins.get(at).ok_or(OriginMissing)?)),
        }
    }

    fn leaf(&mut self, value: &Value, at: &Pointer, origin: &ProposalId) -> Tree {
        let salt = self.salt(at, origin);
        self.buffer.clear();
        write_canonical(value, &mut self.buffer);
        let commitment = leaf_commitment(&salt, &self.buffer);
        Tree { commitment, node: Node::Leaf { origin: origin.clone(), salt } }
    }

    /// Returns HMAC of `JCS([pointer, proposal])` under the thread's secret.
    fn salt(&mut self, at: &Pointer, origin: &ProposalId) -> Salt {
        self.buffer.clear();
        // The canonical JSON is written by hand, because this runs once per leaf.
        self.buffer.push(b'[');
        write_string(at.as_str(), &mut self.buffer);
        self.buffer.push(b',');
        write_string(origin.as_str(), &mut self.buffer);
        self.buffer.push(b']');
        self.secret.hmac(&self.buffer)
    }

    fn object(&mut self, members: BTreeMap<String, Tree>) -> Tree {
        let commitment = object_commitment(members.iter().map(|(key, tree)| (key.as_str(), tree.commitment)));
        Tree { commitment, node: Node::Object(Arc::new(members)) }
    }

    fn array(&mut self, items: Vec<Tree>) -> Tree {
        let commitment = array_commitment(items.iter().map(|tree| tree.commitment));
        Tree { commitment, node: Node::Array(Arc::new(items)) }
    }
}

/// Returns `H(leaf, salt ‖ JCS(value))`.
pub(super) fn leaf_commitment(salt: &Salt, canonical_value: &[u8]) -> Digest {
    Digest::of(Tag::Leaf, &[salt, canonical_value])
}

/// Returns `H(object, JCS({key: commitment}))`.
pub(super) fn object_commitment<'k>(members: impl Iterator<Item = (&'k str, Digest)>) -> Digest {
    let members: Map<String, Value> = members.map(|(key, it)| (key.to_owned(), Value::from(it.to_string()))).collect();
    let mut text = Vec::new();
    write_canonical(&Value::Object(members), &mut text);
    Digest::of(Tag::Object, &[&text])
}

/// Returns `H(array, JCS([commitment, …]))`.
pub(super) fn array_commitment(items: impl Iterator<Item = Digest>) -> Digest {
    // Digests need no escape, so the canonical text is written directly.
    let mut text = vec![b'['];
    for (index, commitment) in items.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.push(b'"');
        commitment.write_to(&mut text);
        text.push(b'"');
    }
    text.push(b']');
    Digest::of(Tag::Array, &[&text])
}
