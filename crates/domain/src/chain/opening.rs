//! Openings: parts of two trees. A reader recomputes both roots, and so knows that the diff is complete even if values
//! are redacted.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{Error as _, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::commitment::{Node, Salt, Tree, array_commitment, is_leaf, leaf_commitment, object_commitment};
use super::hash::Digest;
use crate::json::canonical::canonical;
use crate::json::pointer::{Pointer, array_index};

/// One tree, opened in places.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum OpenedTree {
    /// Redacted or unchanged: only its commitment.
    Bare(Digest),
    /// A leaf with its salt.
    Leaf(OpenedLeaf),
    /// An object with all of its keys.
    Object(OpenedObject),
    /// An array with all of its items.
    Array(OpenedArray),
}

/// An opened leaf.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OpenedLeaf {
    /// The value: a scalar, `{}` or `[]`.
    pub value: Value,
    /// The salt of the leaf.
    #[serde(serialize_with = "salt_to_text")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub salt: Salt,
}

/// An opened object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OpenedObject {
    /// Every member.
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub object: BTreeMap<String, OpenedTree>,
}

/// An opened array.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OpenedArray {
    /// Every item.
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub array: Vec<OpenedTree>,
}

/// The openings of both trees of a transition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// The tree before.
    pub from: OpenedTree,
    /// The tree after.
    pub to: OpenedTree,
}

/// Reads each part directly. The derived implementation would keep a copy of the content below at every level.
impl<'de> Deserialize<'de> for OpenedTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OpeningVisitor)
    }
}

struct OpeningVisitor;

impl<'de> Visitor<'de> for OpeningVisitor {
    type Value = OpenedTree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a commitment, or an opened leaf, object or array")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OpenedTree, E> {
        // The text is not repeated in the error, because it may be a redacted value.
        text.parse().map(OpenedTree::Bare).map_err(|_| E::invalid_value(Unexpected::Str(""), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OpenedTree, A::Error> {
        let (mut object, mut array, mut value, mut salt) = (None, None, None, None);
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let again = match name.as_ref() {
                "object" => object.replace(map.next_value()?).is_some(),
                "array" => array.replace(map.next_value()?).is_some(),
                "value" => value.replace(map.next_value::<Value>()?).is_some(),
                "salt" => salt.replace(map.next_value::<ReadSalt>()?.0).is_some(),
                _ => true,
            };
            // An unknown or repeated name makes the text ambiguous, so it is refused.
            if again {
                return Err(A::Error::invalid_type(Unexpected::Map, &Self));
            }
        }
        match (object, array, value, salt) {
            (Some(object), None, None, None) => Ok(OpenedTree::Object(OpenedObject { object })),
            (None, Some(array), None, None) => Ok(OpenedTree::Array(OpenedArray { array })),
            (None, None, Some(value), Some(salt)) => Ok(OpenedTree::Leaf(OpenedLeaf { value, salt })),
            _ => Err(A::Error::invalid_type(Unexpected::Map, &Self)),
        }
    }
}

#[derive(Deserialize)]
struct ReadSalt(#[serde(deserialize_with = "salt_from_text")] Salt);

fn salt_to_text<S: Serializer>(salt: &Salt, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&URL_SAFE_NO_PAD.encode(salt))
}

fn salt_from_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Salt, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(serde::de::Error::custom)?;
    Salt::try_from(bytes).map_err(|_| serde::de::Error::custom("a salt is 32 bytes"))
}

impl OpenedTree {
    /// Returns the root that this opening commits to, or `None` if an opened leaf is not a leaf.
    pub fn root(&self) -> Option<Digest> {
        match self {
            Self::Bare(commitment) => Some(*commitment),
            Self::Leaf(OpenedLeaf { value, salt }) => {
                is_leaf(value).then(|| leaf_commitment(salt, canonical(value).as_bytes()))
            }
            Self::Object(OpenedObject { object }) => {
                let members: Option<Vec<_>> = object.iter().map(|(key, it)| Some((key.as_str(), it.root()?))).collect();
                // An empty object is a leaf with a salt. As a container its commitment could be guessed.
                members.filter(|it| !it.is_empty()).map(|it| object_commitment(it.into_iter()))
            }
            Self::Array(OpenedArray { array }) => {
                let items: Option<Vec<_>> = array.iter().map(Self::root).collect();
                items.filter(|it| !it.is_empty()).map(|it| array_commitment(it.into_iter()))
            }
        }
    }
}

impl OpenedTree {
    /// Returns the closed paths at and below `at`.
    pub fn closed(&self, at: &Pointer) -> Vec<Pointer> {
        match self {
            Self::Bare(_) => vec![at.clone()],
            Self::Leaf(_) => Vec::new(),
            Self::Object(OpenedObject { object }) => {
                object.iter().flat_map(|(key, node)| node.closed(&at.child(key))).collect()
            }
            Self::Array(OpenedArray { array }) => {
                array.iter().enumerate().flat_map(|(index, node)| node.closed(&at.index(index))).collect()
            }
        }
    }

    /// Returns the opened part at a path.
    pub fn at(&self, pointer: &Pointer) -> Option<&Self> {
        let mut here = self;
        for token in pointer.tokens() {
            here = match here {
                Self::Object(OpenedObject { object }) => object.get(token.as_ref())?,
                Self::Array(OpenedArray { array }) => array.get(array_index(&token)?)?,
                Self::Bare(_) | Self::Leaf(_) => return None,
            };
        }
        Some(here)
    }
}

/// Opened leaves whose salts contradict their values.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SaltComparison {
    /// Leaves that differ under the same salt. No gateway makes such a pair.
    pub kept: BTreeSet<Pointer>,
    /// Leaves that a request without sight of them set to the same value.
    pub set_again: BTreeSet<Pointer>,
}

impl Opening {
    /// Returns whether the whole change is shown: nothing that differs is closed on either side.
    pub fn is_whole(&self) -> bool {
        is_seen(Some(&self.from), Some(&self.to))
    }

    /// Compares each opened leaf's salts with its values.
    pub fn salting(&self) -> SaltComparison {
        let mut found = SaltComparison::default();
        found.compare(&self.from, &self.to, &Pointer::root());
        found
    }
}

/// Returns whether all differences between two nodes are opened.
fn is_seen(old: Option<&OpenedTree>, new: Option<&OpenedTree>) -> bool {
    match (old, new) {
        (Some(OpenedTree::Bare(one)), Some(OpenedTree::Bare(other))) => one == other,
        (Some(closed @ OpenedTree::Bare(_)), Some(open)) | (Some(open), Some(closed @ OpenedTree::Bare(_))) => {
            // A part that is closed on one side is unchanged if both commitments are equal.
            closed.root() == open.root()
        }
        (
            Some(OpenedTree::Object(OpenedObject { object: old })),
            Some(OpenedTree::Object(OpenedObject { object: new })),
        ) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            keys.into_iter().all(|key| is_seen(old.get(key), new.get(key)))
        }
        (Some(OpenedTree::Array(OpenedArray { array: old })), Some(OpenedTree::Array(OpenedArray { array: new }))) => {
            (0..old.len().max(new.len())).all(|at| is_seen(old.get(at), new.get(at)))
        }
        // After a change of kind, every part of both sides belongs to the change.
        (Some(one), Some(other)) => is_open(one) && is_open(other),
        (Some(only), None) | (None, Some(only)) => is_open(only),
        (None, None) => true,
    }
}

/// Returns whether the node has no closed part.
fn is_open(node: &OpenedTree) -> bool {
    node.closed(&Pointer::root()).is_empty()
}

impl SaltComparison {
    fn compare(&mut self, old: &OpenedTree, new: &OpenedTree, at: &Pointer) {
        match (old, new) {
            (OpenedTree::Leaf(old), OpenedTree::Leaf(new)) => {
                match (old.value == new.value, old.salt == new.salt) {
                    (true, false) => _ = self.set_again.insert(at.clone()),
                    (false, true) => _ = self.kept.insert(at.clone()),
                    (true, true) | (false, false) => {}
                };
            }
            (OpenedTree::Object(OpenedObject { object: old }), OpenedTree::Object(OpenedObject { object: new })) => {
                for (key, (old, new)) in old.iter().filter_map(|(key, old)| Some((key, (old, new.get(key)?)))) {
                    self.compare(old, new, &at.child(key));
                }
            }
            (OpenedTree::Array(OpenedArray { array: old }), OpenedTree::Array(OpenedArray { array: new })) => {
                for (index, (old, new)) in old.iter().zip(new).enumerate() {
                    self.compare(old, new, &at.index(index));
                }
            }
            // A change of kind sets everything below again, even if path and value coincide.
            (OpenedTree::Array(_), OpenedTree::Object(_)) | (OpenedTree::Object(_), OpenedTree::Array(_)) => {
                let (old, new) = (ends(old, at), ends(new, at));
                self.kept.extend(old.into_iter().filter(|(at, it)| new.get(at) == Some(it)).map(|(at, _)| at));
            }
            _ => {}
        }
    }
}

/// Returns the leaves and bare commitments at and below a path, as commitments.
fn ends(node: &OpenedTree, at: &Pointer) -> BTreeMap<Pointer, Option<Digest>> {
    match node {
        OpenedTree::Object(OpenedObject { object }) => {
            object.iter().flat_map(|(key, node)| ends(node, &at.child(key))).collect()
        }
        OpenedTree::Array(OpenedArray { array }) => {
            array.iter().enumerate().flat_map(|(index, node)| ends(node, &at.index(index))).collect()
        }
        OpenedTree::Leaf(_) | OpenedTree::Bare(_) => BTreeMap::from([(at.clone(), node.root())]),
    }
}

/// Selects what an opening shows. Nothing below a redacted pointer is opened, even if it is wanted.
pub struct OpeningSelection<'a> {
    /// Returns whether a pointer is redacted.
    pub hidden: &'a dyn Fn(&Pointer) -> bool,
    /// Returns whether to show a path at, above or below a pointer although it did not change.
    pub wanted: &'a dyn Fn(&Pointer) -> bool,
}

/// Opens both trees along the change and the wanted paths.
pub fn open(before: (&Value, &Tree), after: (&Value, &Tree), view: &OpeningSelection<'_>) -> Opening {
    open_within(before, after, view, &mut usize::MAX.clone()).expect("there is room for any")
}

/// Opens both trees like `open`, within a memory budget. The memory that it uses is subtracted from the budget.
pub fn open_within(
    before: (&Value, &Tree),
    after: (&Value, &Tree),
    view: &OpeningSelection<'_>,
    room: &mut usize,
) -> Option<Opening> {
    let root = Pointer::root();
    let mut left = *room;
    let from = open_one(before.0, before.1, Some(after.1), &root, view, &mut left)?;
    let to = open_one(after.0, after.1, Some(before.1), &root, view, &mut left)?;
    // The budget is charged only if both trees fit.
    *room = left;
    Some(Opening { from, to })
}

/// Approximate memory of an opened node without keys and texts. A map with one member allocates space for eleven.
const LEAF_BYTES: usize = 128;
const CONTAINER_BYTES: usize = 1_024;

fn open_one(
    value: &Value,
    tree: &Tree,
    other: Option<&Tree>,
    at: &Pointer,
    view: &OpeningSelection<'_>,
    room: &mut usize,
) -> Option<OpenedTree> {
    let mut take = |bytes: usize| {
        *room = room.checked_sub(bytes)?;
        Some(())
    };
    let unchanged = other.is_some_and(|it| it.commitment == tree.commitment);
    // Redaction comes first, so a wanted path cannot open a redacted value.
    if (view.hidden)(at) || (unchanged && !(view.wanted)(at)) {
        take(LEAF_BYTES)?;
        return Some(OpenedTree::Bare(tree.commitment));
    }
    let opened = match (value, &tree.node) {
        (Value::Object(members), Node::Object(trees)) => {
            let other = match other.map(|it| &it.node) {
                Some(Node::Object(others)) => Some(others),
                _ => None,
            };
            take(CONTAINER_BYTES + trees.keys().map(String::len).sum::<usize>())?;
            let open = |(key, tree): (&String, &Tree)| {
                let value = members.get(key).unwrap_or(&Value::Null);
                let other = other.and_then(|it| it.get(key));
                Some((key.clone(), open_one(value, tree, other, &at.child(key), view, room)?))
            };
            OpenedTree::Object(OpenedObject { object: trees.iter().map(open).collect::<Option<_>>()? })
        }
        (Value::Array(items), Node::Array(trees)) => {
            let other = match other.map(|it| &it.node) {
                Some(Node::Array(others)) => Some(others),
                _ => None,
            };
            take(CONTAINER_BYTES)?;
            let open = |(index, (value, tree)): (usize, (&Value, &Tree))| {
                let other = other.and_then(|it| it.get(index));
                open_one(value, tree, other, &at.index(index), view, room)
            };
            let items = items.iter().zip(trees.iter()).enumerate();
            OpenedTree::Array(OpenedArray { array: items.map(open).collect::<Option<_>>()? })
        }
        (leaf, Node::Leaf { salt, .. }) => {
            take(LEAF_BYTES + leaf.as_str().map_or(0, str::len))?;
            OpenedTree::Leaf(OpenedLeaf { value: leaf.clone(), salt: *salt })
        }
        // Value and tree always agree, and otherwise a commitment reveals nothing.
        _ => OpenedTree::Bare(tree.commitment),
    };
    Some(opened)
}
