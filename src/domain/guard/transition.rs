//! The rules between two states, in the order in which they are documented.

use serde_json::Value;

use super::rules::Rules;
use super::small::is_integer;
use super::{Code, Subject, Violations, keyed};
use crate::domain::json::pointer::Pointer;

/// A state, and what it is called where it is wrong.
pub(super) type Named<'v> = (&'v Value, Subject);

pub(super) fn judge(rules: &Rules, before: Named<'_>, after: &Value, found: &mut Violations) {
    for at in &rules.immutable {
        let code = |old: &Value, new: &Value| (old != new).then_some(Code::ImmutableChanged);
        compare(at, before, after, found, code);
    }
    for at in &rules.monotonic {
        compare(at, before, after, found, monotonic);
    }
    for (at, order) in &rules.ordered {
        compare(at, before, after, found, |old, new| ordered(order, old, new));
    }
    for (at, rule) in &rules.keyed {
        if let Some((old, new)) = both(at, before, after, found) {
            keyed::judge(rule, at, (old, before.1), new, found);
        }
    }
}

fn compare(
    at: &Pointer,
    before: Named<'_>,
    after: &Value,
    found: &mut Violations,
    code: impl Fn(&Value, &Value) -> Option<Code>,
) {
    if let Some(code) = both(at, before, after, found).and_then(|(old, new)| code(old, new)) {
        found.rule(Subject::Proposed, code, || at.clone());
    }
}

/// What stands there before and after. A place that one of the states lacks breaks every rule about it.
fn both<'v>(
    at: &Pointer,
    (before, subject): Named<'v>,
    after: &'v Value,
    found: &mut Violations,
) -> Option<(&'v Value, &'v Value)> {
    let (old, new) = (resolve(at, before), resolve(at, after));
    // A state that is held against itself is told once.
    if old.is_none() && subject != Subject::Proposed {
        found.rule(subject, Code::PathMissing, || at.clone());
    }
    if new.is_none() {
        found.rule(Subject::Proposed, Code::PathMissing, || at.clone());
    }
    old.zip(new)
}

/// Rules name members; an index is none.
fn resolve<'v>(at: &Pointer, state: &'v Value) -> Option<&'v Value> {
    at.tokens().try_fold(state, |value, name| value.as_object()?.get(name.as_ref()))
}

fn monotonic(old: &Value, new: &Value) -> Option<Code> {
    let (Value::Number(old), Value::Number(new)) = (old, new) else { return Some(Code::NotAnInteger) };
    if !is_integer(old) || !is_integer(new) {
        return Some(Code::NotAnInteger);
    }
    // The parser only lets numbers in that their double says back, so their order is that of the doubles.
    (new.as_f64() < old.as_f64()).then_some(Code::Decreased)
}

fn ordered(order: &[Value], old: &Value, new: &Value) -> Option<Code> {
    let place = |value: &Value| order.iter().position(|it| it == value);
    match (place(old), place(new)) {
        (Some(old), Some(new)) => (new < old).then_some(Code::WentBack),
        _ => Some(Code::NotInOrder),
    }
}
