//! From the opening of two trees, in its wire form, to the rows that a page shows.
//!
//! The page shows the opening whole: every leaf, every bare commitment, each in a row of its own,
//! so that the script can rebuild both trees from the rows alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::layout::DigestText;
use super::safe_text::{SafeJson, SafeLine, SafePath};
use crate::domain::primitives::confusable::KnownTexts;
use crate::domain::primitives::sanitize;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiffSideView {
    Leaf {
        value: SafeJson,
        /// Its salt, base64url.
        salt: String,
    },
    /// A commitment whose content is not shown.
    Bare(DigestText),
    Hidden {
        commitment: DigestText,
        /// What kind of value it is: "a text of 9 to 32 characters".
        kind: String,
    },
    Absent,
    /// An object or array is there, and has rows of its own.
    Nested,
}

impl DiffSideView {
    /// Whether its value is not shown.
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Bare(_) | Self::Hidden { .. })
    }

    /// Marks a text that looks like a known one and is another.
    fn compare(&mut self, known: &KnownTexts) {
        if let Self::Leaf { value, .. } = self {
            value.compare(known);
        }
    }

    /// The text that it is, if it is one and is shown.
    fn text(&self) -> Option<String> {
        match self {
            Self::Leaf { value, .. } => value.text(),
            Self::Bare(_) | Self::Hidden { .. } | Self::Absent | Self::Nested => None,
        }
    }

    /// The same, as a hidden value of that kind.
    fn hide(&mut self, kind: String) {
        if let Self::Bare(commitment) = self {
            *self = Self::Hidden { commitment: commitment.clone(), kind };
        }
    }
}

#[derive(Clone, Debug)]
pub struct OpeningRow {
    pub path: SafePath,
    /// Whether the policy protects it.
    pub protection: Protection,
    pub before: DiffSideView,
    pub after: DiffSideView,
    /// Whether its value differs, or was only set again.
    pub meaning: ChangeMeaning,
}

/// What it means that two commitments of one place differ. A value that a request sets without having read it is
/// salted anew even where it is the same, so that nobody can tell a right guess from the commitment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ChangeMeaning {
    Differs,
    /// It was set to what it is.
    SetAgain,
}

/// Whether the policy protects a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protection {
    Protected,
    Plain,
}

impl OpeningRow {
    /// What becomes of the place, in a word.
    pub const fn words(&self) -> &'static str {
        match (&self.before, &self.after) {
            (before, _) if self.is_set_again() && before.is_closed() => "redacted, set to the same value",
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

    /// Marks a text that only looks like the one before.
    fn compare_sides(&mut self) {
        if let Some(before) = self.before.text() {
            let mut known = KnownTexts::default();
            known.learn(&before);
            self.after.compare(&known);
        }
    }

    /// Whether its value stays what it is.
    pub const fn is_set_again(&self) -> bool {
        matches!(self.meaning, ChangeMeaning::SetAgain)
    }
}

/// Something that does not differ.
#[derive(Clone, Debug)]
pub struct UnchangedRow {
    pub path: SafePath,
    /// What is there: a leaf or a commitment.
    pub side: DiffSideView,
}

/// Something that a writer would read.
#[derive(Clone, Debug)]
pub struct ReadRow {
    pub path: SafePath,
    pub side: DiffSideView,
    pub mark: ReadMark,
}

/// How new a value is that a writer would read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ReadMark {
    /// This transition changes it.
    ChangesNow,
    /// An earlier one changed it, after the last confirmed write.
    SinceLastWrite,
    /// As it was written before, or from the beginning.
    Same,
}

impl ReadMark {
    /// What the row is to the script: what changes now has its own row among the changes, and is
    /// only mentioned here.
    pub const fn role(self) -> &'static str {
        match self {
            Self::ChangesNow => "mention",
            Self::SinceLastWrite | Self::Same => "same",
        }
    }

    /// Which trees the value is in, for the script.
    pub const fn trees(self) -> &'static str {
        match self {
            Self::ChangesNow => "to",
            Self::SinceLastWrite | Self::Same => "both",
        }
    }
}

/// Both trees of an opening, row by row.
#[derive(Clone, Debug)]
pub struct OpeningRows {
    /// What differs, protected places first.
    pub changed: Vec<OpeningRow>,
    /// What does not and no writer has taken into its list.
    pub unchanged: Vec<UnchangedRow>,
    pub arrays: ArrayPointers,
}

/// Why a value is not an opening.
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
    /// Reads `{"from": node, "to": node}`. `canonical` gives a leaf's text, `protected` says which
    /// pointers the policy protects.
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

    /// Says what kind of value stands at each hidden place, before and after.
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

    /// Marks texts that would come and only look like one that is known at their place.
    pub fn compare<'k>(&mut self, known: &dyn Fn(&str) -> Option<&'k KnownTexts>) {
        for row in self.changed.iter_mut().filter(|it| it.meaning == ChangeMeaning::Differs) {
            if let Some(known) = known(row.path.pointer()) {
                row.after.compare(known);
            }
        }
    }

    /// Says which hidden places keep their value although their commitment differs: the commitments do not tell.
    pub fn hidden_set_again(&mut self, same: &dyn Fn(&str) -> bool) {
        for row in &mut self.changed {
            if row.before.is_closed() && row.after.is_closed() && same(row.path.pointer()) {
                row.meaning = ChangeMeaning::SetAgain;
            }
        }
        self.sort();
    }

    /// What differs comes before what was only set again, protected places first in each.
    fn sort(&mut self) {
        self.changed.sort_by_cached_key(|it| (it.meaning, it.protection, natural(it.path.pointer())));
    }

    /// What a writer would read. `reads` says whether a pointer is at, above or below what it may
    /// read, `new` whether it changed since the last confirmed write.
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

    /// Takes what the writers' lists show out of the unchanged rows: a row that is there once is
    /// missed when it is gone.
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
    pointer.split('/').map(|key| (key.parse().unwrap_or(u64::MAX), key.to_owned())).collect()
}

impl FlattenedTree {
    fn add(&mut self, node: &Value, at: String, canonical: fn(&Value) -> String) -> Result<(), InvalidOpening> {
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
            None if self.containers.contains(pointer) => DiffSideView::Nested,
            None => DiffSideView::Absent,
        }
    }
}

/// Which places are arrays: a JSON list of pointers for each tree. The script needs it to tell
/// `/items/0` from a key that is called `0`; a wrong list gives other roots.
#[derive(Clone, Debug)]
pub struct ArrayPointers {
    pub from: String,
    pub to: String,
}

/// What a writer node would read.
#[derive(Clone, Debug)]
pub struct WriterReads {
    pub node: SafeLine,
    /// Everything it would read.
    pub rows: Vec<ReadRow>,
}

impl WriterReads {
    /// How many of the values are new to it: changed by an earlier transition that it has not written.
    pub fn news(&self) -> usize {
        self.rows.iter().filter(|it| it.mark == ReadMark::SinceLastWrite).count()
    }
}
