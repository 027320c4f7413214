//! Builds the rows of a page from the opening of two trees.
//!
//! The page shows the whole opening: every leaf and every commitment has its own row,
//! so that the script can rebuild both trees from the rows alone.

use std::collections::{BTreeMap, BTreeSet};

use countersign_domain::primitives::confusable::KnownTexts;
use countersign_domain::primitives::sanitize;
use serde_json::Value;

use super::layout::DigestText;
use super::safe_text::{SafeJson, SafeLine, SafePath};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiffSideView {
    Leaf {
        value: SafeJson,
        /// Salt in base64url.
        salt: String,
    },
    /// A commitment without its value.
    Bare(DigestText),
    Hidden {
        commitment: DigestText,
        /// Kind of the value: "a text of 9 to 32 characters".
        kind: String,
    },
    Absent,
    /// An object or array that has its own rows.
    Nested,
}

impl DiffSideView {
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Bare(_) | Self::Hidden { .. })
    }

    /// Marks a text that looks like a known text but differs from it.
    fn compare(&mut self, known: &KnownTexts) {
        if let Self::Leaf { value, .. } = self {
            value.compare(known);
        }
    }

    /// Returns the text if the value is a text and not redacted.
    fn text(&self) -> Option<String> {
        match self {
            Self::Leaf { value, .. } => value.text(),
            Self::Bare(_) | Self::Hidden { .. } | Self::Absent | Self::Nested => None,
        }
    }

    /// Adds the kind of a redacted value.
    fn hide(&mut self, kind: String) {
        if let Self::Bare(commitment) = self {
            *self = Self::Hidden { commitment: commitment.clone(), kind };
        }
    }
}

#[derive(Clone, Debug)]
pub struct OpeningRow {
    pub path: SafePath,
    pub protection: Protection,
    pub before: DiffSideView,
    pub after: DiffSideView,
    pub meaning: ChangeMeaning,
}

/// The meaning of two different commitments at one path. A value that a request sets without reading it gets a new salt
/// even if the value is the same. Otherwise an attacker could confirm a guess by the commitment. A page does not show
/// whether a redacted value is the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ChangeMeaning {
    Differs,
    /// Set to the value that it already had.
    SetAgain,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protection {
    Protected,
    Plain,
}

impl OpeningRow {
    /// Returns the label of the change.
    pub const fn words(&self) -> &'static str {
        match (&self.before, &self.after) {
            _ if self.is_set_again() => "set, same value",
            (DiffSideView::Absent, after) if after.is_closed() => "redacted, added",
            (before, DiffSideView::Absent) if before.is_closed() => "redacted, removed",
            (before, after) if before.is_closed() || after.is_closed() => "redacted, changed",
            (DiffSideView::Absent, _) => "added",
            (_, DiffSideView::Absent) => "removed",
            (_, DiffSideView::Nested) | (DiffSideView::Nested, _) => "replaced",
            _ => "changed",
        }
    }

    /// Marks a new text that looks like the old one but differs from it.
    fn compare_sides(&mut self) {
        if let Some(before) = self.before.text() {
            let mut known = KnownTexts::default();
            known.learn(&before);
            self.after.compare(&known);
        }
    }

    pub const fn is_set_again(&self) -> bool {
        matches!(self.meaning, ChangeMeaning::SetAgain)
    }
}

/// An unchanged value.
#[derive(Clone, Debug)]
pub struct UnchangedRow {
    pub path: SafePath,
    pub side: DiffSideView,
}

/// A value that a writer would read.
#[derive(Clone, Debug)]
pub struct ReadRow {
    pub path: SafePath,
    pub side: DiffSideView,
    pub mark: ReadMark,
}

/// The age of a value that a writer would read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ReadMark {
    /// This transition changes it.
    ChangesNow,
    /// An earlier transition changed it after the last confirmed write.
    SinceLastWrite,
    /// Unchanged since the last confirmed write, or since the start.
    Same,
}

impl ReadMark {
    /// Returns the role of the row for the script. A value that changes now has its own row in the changes and is only
    /// mentioned here.
    pub const fn role(self) -> &'static str {
        match self {
            Self::ChangesNow => "mention",
            Self::SinceLastWrite | Self::Same => "same",
        }
    }

    /// Returns the trees that contain the value, for the script.
    pub const fn trees(self) -> &'static str {
        match self {
            Self::ChangesNow => "to",
            Self::SinceLastWrite | Self::Same => "both",
        }
    }
}

/// The rows of both trees of an opening.
#[derive(Clone, Debug)]
pub struct OpeningRows {
    /// Changed values, protected paths first.
    pub changed: Vec<OpeningRow>,
    /// Unchanged values that no list of a writer shows.
    pub unchanged: Vec<UnchangedRow>,
    pub arrays: ArrayPointers,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not the opening of two trees")]
pub struct InvalidOpening;

#[derive(Default)]
struct FlattenedTree {
    places: BTreeMap<String, DiffSideView>,
    containers: BTreeSet<String>,
    arrays: Vec<Value>,
}

impl OpeningRows {
    /// Reads `{"from": node, "to": node}`. `canonical` returns a leaf's text, and `protected` returns whether the
    /// policy protects a pointer.
    pub fn read(
        opening: &Value,
        canonical: fn(&Value) -> String,
        protected: &dyn Fn(&str) -> bool,
    ) -> Result<Self, InvalidOpening> {
        let flat = |name: &str| {
            let mut flat = FlattenedTree::default();
            flat.add(opening.get(name).ok_or(InvalidOpening)?, String::new(), canonical)?;
            Ok(flat)
        };
        let (from, to) = (flat("from")?, flat("to")?);
        let arrays = ArrayPointers {
            from: sanitize::json(&Value::from(from.arrays.clone()).to_string()),
            to: sanitize::json(&Value::from(to.arrays.clone()).to_string()),
        };
        let mut rows = Self { changed: Vec::new(), unchanged: Vec::new(), arrays };
        let pointers: BTreeSet<&String> = from.places.keys().chain(to.places.keys()).collect();
        for pointer in pointers {
            let (before, after) = (from.side(pointer), to.side(pointer));
            let path = SafePath::new(pointer.as_str());
            if before == after {
                rows.unchanged.push(UnchangedRow { path, side: after });
            } else {
                let protection = if protected(pointer) { Protection::Protected } else { Protection::Plain };
                let meaning =
                    if same_value(&before, &after) { ChangeMeaning::SetAgain } else { ChangeMeaning::Differs };
                let mut row = OpeningRow { path, protection, before, after, meaning };
                row.compare_sides();
                rows.changed.push(row);
            }
        }
        rows.sort();
        Ok(rows)
    }

    /// Adds the kinds of redacted values, before and after.
    pub fn name_hidden(&mut self, kinds: &dyn Fn(&str) -> Option<(String, String)>) {
        for row in &mut self.changed {
            if let Some((before, after)) = kinds(row.path.pointer()) {
                row.before.hide(before);
                row.after.hide(after);
            }
        }
        for row in &mut self.unchanged {
            if let Some((_, after)) = kinds(row.path.pointer()) {
                row.side.hide(after);
            }
        }
    }

    /// Marks new texts that look like a known text at their path but differ from it.
    pub fn compare<'k>(&mut self, known: &dyn Fn(&str) -> Option<&'k KnownTexts>) {
        for row in self.changed.iter_mut().filter(|it| it.meaning == ChangeMeaning::Differs) {
            if let Some(known) = known(row.path.pointer()) {
                row.after.compare(known);
            }
        }
    }

    /// Sorts changed values before values that were only set again, and protected paths first in both.
    fn sort(&mut self) {
        // Real differences and protected values come first, because a reviewer decides on these.
        self.changed.sort_by_cached_key(|it| (it.meaning, it.protection, natural(it.path.pointer())));
    }

    /// Returns the values that a writer would read. `reads` checks whether a pointer is at, above or below a readable
    /// path. `new` checks whether it changed since the last confirmed write.
    pub fn reads(&self, reads: &dyn Fn(&str) -> bool, new: &dyn Fn(&str) -> bool) -> Vec<ReadRow> {
        let changed = self.changed.iter().filter(|it| reads(it.path.pointer()) && it.after != DiffSideView::Nested);
        let changed = changed.map(|it| (&it.path, &it.after, ReadMark::ChangesNow));
        let unchanged = self.unchanged.iter().filter(|it| reads(it.path.pointer())).map(|it| {
            let mark = if new(it.path.pointer()) { ReadMark::SinceLastWrite } else { ReadMark::Same };
            (&it.path, &it.side, mark)
        });
        let row = |(path, side, mark): (&SafePath, &DiffSideView, ReadMark)| ReadRow {
            path: path.clone(),
            side: side.clone(),
            mark,
        };
        let mut rows: Vec<ReadRow> = changed.chain(unchanged).map(row).collect();
        rows.sort_by_cached_key(|it| (it.mark, natural(it.path.pointer())));
        rows
    }

    /// Removes values from the unchanged rows that a writer's list shows. Each value must have exactly one row, so that
    /// the script notices a missing row.
    pub fn leave_out(&mut self, writers: &[WriterReads]) {
        let shown: BTreeSet<&SafePath> = writers.iter().flat_map(|it| &it.rows).map(|it| &it.path).collect();
        self.unchanged.retain(|it| !shown.contains(&it.path));
    }
}

fn same_value(before: &DiffSideView, after: &DiffSideView) -> bool {
    matches!((before, after), (DiffSideView::Leaf { value: one, .. }, DiffSideView::Leaf { value: other, .. }) if one == other)
}

/// Sorts `/items/2` before `/items/10`.
fn natural(pointer: &str) -> Vec<(u64, String)> {
    // Array indexes sort as numbers, so that item 10 comes after item 9.
    pointer.split('/').map(|key| (key.parse().unwrap_or(u64::MAX), key.to_owned())).collect()
}

impl FlattenedTree {
    fn add(&mut self, node: &Value, at: String, canonical: fn(&Value) -> String) -> Result<(), InvalidOpening> {
        // The tilde is escaped first, because the escape of the slash contains one (RFC 6901).
        let child = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        if let Some(commitment) = node.as_str() {
            self.places.insert(at, DiffSideView::Bare(DigestText::new(commitment)));
        } else if let Some(members) = node.get("object").and_then(Value::as_object) {
            members.iter().try_for_each(|(key, node)| self.add(node, child(key), canonical))?;
            self.containers.insert(at);
        } else if let Some(items) = node.get("array").and_then(Value::as_array) {
            items.iter().enumerate().try_for_each(|(i, node)| self.add(node, child(&i.to_string()), canonical))?;
            self.arrays.push(Value::from(at.as_str()));
            self.containers.insert(at);
        } else {
            let (value, salt) =
                node.get("value").zip(node.get("salt").and_then(Value::as_str)).ok_or(InvalidOpening)?;
            self.places
                .insert(at, DiffSideView::Leaf { value: SafeJson::new(canonical(value)), salt: salt.to_owned() });
        }
        Ok(())
    }

    fn side(&self, pointer: &str) -> DiffSideView {
        match self.places.get(pointer) {
            Some(side) => side.clone(),
            // A container has no row of its own, because its leaves have theirs.
            None if self.containers.contains(pointer) => DiffSideView::Nested,
            None => DiffSideView::Absent,
        }
    }
}

/// The arrays of each tree, as a JSON list of pointers. The script needs them to distinguish an item `/items/0` from a
/// key `0`. A wrong list results in other roots.
#[derive(Clone, Debug)]
pub struct ArrayPointers {
    pub from: String,
    pub to: String,
}

#[derive(Clone, Debug)]
pub struct WriterReads {
    pub node: SafeLine,
    pub rows: Vec<ReadRow>,
}

impl WriterReads {
    /// Counts the values that an earlier transition changed and that the writer has not written yet.
    pub fn news(&self) -> usize {
        self.rows.iter().filter(|it| it.mark == ReadMark::SinceLastWrite).count()
    }
}
