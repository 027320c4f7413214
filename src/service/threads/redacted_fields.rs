//! Places of a review where something hidden stands.

use serde_json::Value;

use crate::domain::chain::opening::Opening;
use crate::domain::json::pointer::Pointer;
use crate::domain::policy::RedactedValueKind;

/// A place of a review where something hidden stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedactedField {
    /// Where the hidden part begins.
    pub pointer: Pointer,
    /// What kind of value stood there, if one did.
    pub before: Option<RedactedValueKind>,
    /// What kind of value would stand there, if one does.
    pub after: Option<RedactedValueKind>,
}

impl RedactedField {
    /// That place of two states.
    pub(in crate::service) fn of(pointer: Pointer, (before, after): (&Value, &Value)) -> Self {
        let kind = |state: &Value| pointer.resolve(state).map(RedactedValueKind::of);
        Self { before: kind(before), after: kind(after), pointer }
    }

    /// Whether it is one value before and one after: what has parts is not looked at as a whole, since its names
    /// are hidden too.
    pub fn is_one_value(&self) -> bool {
        self.before.into_iter().chain(self.after).all(RedactedValueKind::is_leaf)
    }
}

/// What is hidden in an opening. What is only closed because it does not change is not among it.
pub(in crate::service) fn hidden_places(
    hides: &dyn Fn(&Pointer) -> bool,
    opening: &Opening,
    (before, after): (&Value, &Value),
) -> Vec<RedactedField> {
    let root = Pointer::root();
    let mut pointers = opening.from.closed(&root);
    pointers.extend(opening.to.closed(&root));
    pointers.retain(hides);
    pointers.sort();
    pointers.dedup();
    pointers.into_iter().map(|at| RedactedField::of(at, (before, after))).collect()
}
