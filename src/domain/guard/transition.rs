//! The rules between two states, in the order in which they are documented.

use serde_json::Value;

use super::rules::Rules;
use super::schema::is_integer;
use super::{Alias, Code, Violations, keyed};
use crate::domain::json::pointer::Pointer;

pub(super) fn judge(rules: &Rules, before: &Value, after: &Value, found: &mut Violations) {
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
        match (resolve(at, before), resolve(at, after)) {
            (Some(old), Some(new)) => keyed::judge(rule, at, (old, new), found),
            _ => found.add(Alias::Rule, Code::PathMissing, at.clone()),
        }
    }
}

/// A place that one of the states lacks breaks every rule about it.
fn compare(
    at: &Pointer,
    before: &Value,
    after: &Value,
    found: &mut Violations,
    code: impl Fn(&Value, &Value) -> Option<Code>,
) {
    let code = match (resolve(at, before), resolve(at, after)) {
        (Some(old), Some(new)) => code(old, new),
        _ => Some(Code::PathMissing),
    };
    if let Some(code) = code {
        found.add(Alias::Rule, code, at.clone());
    }
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
    // The parser only lets integers in that a double holds exactly.
    (new.as_f64() < old.as_f64()).then_some(Code::Decreased)
}

fn ordered(order: &[Value], old: &Value, new: &Value) -> Option<Code> {
    let place = |value: &Value| order.iter().position(|it| it == value);
    match (place(old), place(new)) {
        (Some(old), Some(new)) => (new < old).then_some(Code::WentBack),
        _ => Some(Code::NotInOrder),
    }
}
