//! Values for the property tests.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization as _;

use super::number::number;

/// Generates any value that `parse` can return.
pub(super) fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", number).prop_map(Value::Number),
        any::<String>().prop_map(Value::from),
    ];
    let key = prop_oneof!["[a-c~/.\"\\\\*$]{0,3}", any::<String>(), "[\u{e9}\u{fb33}\u{ffff}\u{1f600}\u{10ffff}]{1,2}"];
    nested(scalar, key)
}

/// Generates values that are often partly equal: few keys, few scalars.
pub(super) fn alike_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from), Just(Value::from("0"))];
    nested(scalar, "[01a~/]{1}")
}

/// Generates a value that is always an object, like a state.
pub(super) fn alike_state() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[01a~/]{1}", alike_value(), 0..4).prop_map(|it| object(it.into_iter()))
}

fn nested(
    scalar: impl Strategy<Value = Value> + 'static,
    key: impl Strategy<Value = String> + Clone + 'static,
) -> impl Strategy<Value = Value> {
    scalar.prop_recursive(4, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4).prop_map(|it| object(it.into_iter())),
        ]
    })
}

/// Builds an object from the members whose keys also differ after NFC.
fn object(members: impl Iterator<Item = (String, Value)>) -> Value {
    let mut taken = BTreeSet::new();
    let members: Map<_, _> = members.filter(|(key, _)| taken.insert(key.nfc().collect::<String>())).collect();
    Value::Object(members)
}
