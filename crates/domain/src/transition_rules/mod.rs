//! Transition rules: which state may follow another. The state guard and policies use the same rules.

mod keyed_arrays;
mod rules;
mod violation;

use serde_json::{Number, Value};

use super::json::pointer::Pointer;
pub use keyed_arrays::key_identity;
pub use rules::{KeyedListRule, NewItems, TransitionRule, TransitionRuleKind, ValueOrder, in_order};
pub use violation::TransitionViolation;

/// The state that breaks the rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateSide {
    Before,
    After,
}

/// A state and its side. A first state is compared with itself, as the state after.
pub type LabelledState<'v> = (&'v Value, StateSide);

/// Receives the violations.
pub trait ViolationSink {
    /// Records a violation. The pointer is built only if the violation is reported, because a state can have a
    /// million violations.
    fn broken(&mut self, side: StateSide, broken: TransitionViolation, pointer: impl FnOnce() -> Pointer);
}

impl TransitionRule {
    /// Returns whether one state may follow the other, as far as this rule is concerned.
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

/// Returns the values at the path before and after. A path that one of the states lacks breaks every rule about it.
fn both<'v>(
    at: &Pointer,
    (before, side): LabelledState<'v>,
    after: &'v Value,
    found: &mut impl ViolationSink,
) -> Option<(&'v Value, &'v Value)> {
    let (old, new) = (resolve(at, before), resolve(at, after));
    // If a state is compared with itself, each violation is reported once.
    if old.is_none() && side != StateSide::After {
        found.broken(side, TransitionViolation::PathMissing, || at.clone());
    }
    if new.is_none() {
        found.broken(StateSide::After, TransitionViolation::PathMissing, || at.clone());
    }
    old.zip(new)
}

/// Rules name members of objects. They cannot name an index.
fn resolve<'v>(at: &Pointer, state: &'v Value) -> Option<&'v Value> {
    at.tokens().try_fold(state, |value, name| value.as_object()?.get(name.as_ref()))
}

fn monotonic(old: &Value, new: &Value) -> Option<TransitionViolation> {
    let (Value::Number(old), Value::Number(new)) = (old, new) else { return Some(TransitionViolation::NotAnInteger) };
    if !is_integer(old) || !is_integer(new) {
        return Some(TransitionViolation::NotAnInteger);
    }
    // The parser accepts only numbers that a double represents exactly, so their order is that of the doubles.
    (new.as_f64() < old.as_f64()).then_some(TransitionViolation::Decreased)
}

fn ordered(order: &[Value], old: &Value, new: &Value) -> Option<TransitionViolation> {
    let place = |value: &Value| order.iter().position(|it| it == value);
    match (place(old), place(new)) {
        (Some(old), Some(new)) => (new < old).then_some(TransitionViolation::WentBack),
        _ => Some(TransitionViolation::NotInOrder),
    }
}

/// Returns whether the value is whole, however it is written.
pub fn is_integer(number: &Number) -> bool {
    number.is_i64() || number.as_f64().is_some_and(|it| it.fract() == 0.0)
}
