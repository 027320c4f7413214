//! What may follow what: rules between two states, judged alike for the state guard and for policies.

mod keyed_arrays;
mod rules;
mod violation;

use serde_json::{Number, Value};

use super::json::pointer::Pointer;
pub use keyed_arrays::key_identity;
pub use rules::{KeyedListRule, NewItems, TransitionRule, TransitionRuleKind, ValueOrder, in_order};
pub use violation::TransitionViolation;

/// Which of the two states is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateSide {
    Before,
    After,
}

/// A state, and which of the two it is. A state that may be the first is held against itself, as the one after.
pub type LabelledState<'v> = (&'v Value, StateSide);

/// What takes note of what is wrong.
pub trait ViolationSink {
    /// The pointer is only made if it is told: what is wrong a million times costs no million texts.
    fn broken(&mut self, side: StateSide, broken: TransitionViolation, pointer: impl FnOnce() -> Pointer);
}

impl TransitionRule {
    /// Whether one state may follow the other, as far as this rule is concerned.
    pub fn judge(&self, before: LabelledState<'_>, after: &Value, found: &mut impl ViolationSink) {
        let at = &self.at;
        match &self.kind {
            TransitionRuleKind::Immutable => {
                compare(at, before, after, found, |old, new| {
                    (old != new).then_some(TransitionViolation::ImmutableChanged)
                });
            }
            TransitionRuleKind::Monotonic => compare(at, before, after, found, monotonic),
            TransitionRuleKind::Ordered(order) => {
                compare(at, before, after, found, |old, new| ordered(order.values(), old, new))
            }
            TransitionRuleKind::Keyed(rule) => {
                if let Some((old, new)) = both(at, before, after, found) {
                    keyed_arrays::judge(rule, at, (old, before.1), new, found);
                }
            }
        }
    }
}

fn compare(
    at: &Pointer,
    before: LabelledState<'_>,
    after: &Value,
    found: &mut impl ViolationSink,
    wrong: impl Fn(&Value, &Value) -> Option<TransitionViolation>,
) {
    if let Some(broken) = both(at, before, after, found).and_then(|(old, new)| wrong(old, new)) {
        found.broken(StateSide::After, broken, || at.clone());
    }
}

/// What stands there before and after. A place that one of the states lacks breaks every rule about it.
fn both<'v>(
    at: &Pointer,
    (before, side): LabelledState<'v>,
    after: &'v Value,
    found: &mut impl ViolationSink,
) -> Option<(&'v Value, &'v Value)> {
    let (old, new) = (resolve(at, before), resolve(at, after));
    // A state that is held against itself is told once.
    if old.is_none() && side != StateSide::After {
        found.broken(side, TransitionViolation::PathMissing, || at.clone());
    }
    if new.is_none() {
        found.broken(StateSide::After, TransitionViolation::PathMissing, || at.clone());
    }
    old.zip(new)
}

/// Rules name members; an index is none.
fn resolve<'v>(at: &Pointer, state: &'v Value) -> Option<&'v Value> {
    at.tokens().try_fold(state, |value, name| value.as_object()?.get(name.as_ref()))
}

fn monotonic(old: &Value, new: &Value) -> Option<TransitionViolation> {
    let (Value::Number(old), Value::Number(new)) = (old, new) else { return Some(TransitionViolation::NotAnInteger) };
    if !is_integer(old) || !is_integer(new) {
        return Some(TransitionViolation::NotAnInteger);
    }
    // The parser only lets numbers in that their double says back, so their order is that of the doubles.
    (new.as_f64() < old.as_f64()).then_some(TransitionViolation::Decreased)
}

fn ordered(order: &[Value], old: &Value, new: &Value) -> Option<TransitionViolation> {
    let place = |value: &Value| order.iter().position(|it| it == value);
    match (place(old), place(new)) {
        (Some(old), Some(new)) => (new < old).then_some(TransitionViolation::WentBack),
        _ => Some(TransitionViolation::NotInOrder),
    }
}

/// Whether the value is whole, however it is written.
pub fn is_integer(number: &Number) -> bool {
    number.is_i64() || number.as_f64().is_some_and(|it| it.fract() == 0.0)
}
