//! Paths of a review with a redacted value.

use countersign_domain::chain::commitment::Tree;
use countersign_domain::chain::opening::{OpenedTree, Opening, OpeningSelection, open};
use countersign_domain::json::pointer::Pointer;
use countersign_domain::policy::RedactedValueKind;
use serde_json::Value;

/// A path of a review with a redacted value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedactedField {
    /// The path at which the redaction begins.
    pub pointer: Pointer,
    /// The kind of the value before the change, if there is one.
    pub before: Option<RedactedValueKind>,
    /// The kind of the value after the change, if there is one.
    pub after: Option<RedactedValueKind>,
}

impl RedactedField {
    /// Returns the field at a path of two states.
    pub(crate) fn of(pointer: Pointer, before: &Value, after: &Value) -> Self {
        let kind = |state: &Value| pointer.resolve(state).map(RedactedValueKind::of);
        Self { before: kind(before), after: kind(after), pointer }
    }

    /// Returns whether the field is a single value before and after. An object or list cannot be revealed as
    /// a whole, because its names are redacted too.
    pub fn is_one_value(&self) -> bool {
        self.before.into_iter().chain(self.after).all(RedactedValueKind::is_leaf)
    }
}

/// Returns the redacted paths of an opening. Paths that are only closed because they did not change are left
/// out.
pub(crate) fn hidden_places(
    hides: &dyn Fn(&Pointer) -> bool,
    opening: &Opening,
    before: &Value,
    after: &Value,
) -> Vec<RedactedField> {
    let root = Pointer::root();
    let mut pointers = opening.from.closed(&root);
    pointers.extend(opening.to.closed(&root));
    pointers.retain(hides);
    // A path may be closed in both trees.
    pointers.sort();
    pointers.dedup();
    pointers.into_iter().map(|at| RedactedField::of(at, before, after)).collect()
}

/// Returns the redacted paths that were set since an earlier version. Their commitments differ even if their values are
/// the same.
pub(crate) fn set_since(hides: &dyn Fn(&Pointer) -> bool, opening: &Opening, earlier: (&Value, &Tree)) -> Vec<Pointer> {
    let mut set = opening.to.closed(&Pointer::root());
    set.retain(hides);
    if set.is_empty() {
        return set;
    }
    let then = open(earlier, earlier, &OpeningSelection { hidden: hides, wanted: &|_| true }).to;
    let commitment = |tree: &OpenedTree, at: &Pointer| tree.at(at).and_then(OpenedTree::root);
    set.retain(|at| commitment(&then, at) != commitment(&opening.to, at));
    set
}
