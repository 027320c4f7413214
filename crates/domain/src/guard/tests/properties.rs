//! Properties that must hold for every schema, rule and state, tried on many small ones.

use proptest::prelude::*;
use serde_json::{Map, json};

use crate::guard::*;

const RULES: &str = r#"{"immutable_paths": ["$.id"], "monotonic_integer_paths": ["$.n"],
    "ordered_enum_paths": {"$.s": ["a", "b", "c"]}, "keyed_object_array_paths": {"$.t": {"key": "k",
    "monotonic_boolean_fields": ["done"]}}}"#;
const OPEN: &str = r#"{"type": "object", "properties": {}, "additionalProperties": true}"#;

fn guard() -> StateGuard {
    StateGuard::new(OPEN.as_bytes(), Some(RULES.as_bytes())).unwrap()
}

fn may_follow(before: &Value, after: &Value) -> bool {
    guard().transition(before.to_string().as_bytes(), after.to_string().as_bytes()).is_ok()
}

/// Draws from few values, so that equal and similar ones often meet.
fn scalar() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![json!(0), json!(1), json!(1.5), json!("1"), json!(true), json!(false), json!(null)])
}

fn rest() -> impl Strategy<Value = Map<String, Value>> {
    let done =
        prop_oneof![2 => Just(None), 4 => any::<bool>().prop_map(|it| Some(json!(it))), 1 => scalar().prop_map(Some)];
    let other = prop_oneof![Just(None), scalar().prop_map(Some)];
    (done, other).prop_map(|(done, other)| {
        let named = [("done", done), ("x", other)].into_iter();
        named.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    })
}

/// Draws items that mostly have keys of their own.
fn items() -> impl Strategy<Value = Value> {
    let keys = prop::sample::subsequence(vec![json!(1), json!("1"), json!("b"), json!(2)], 0..4);
    let sound = (keys.prop_shuffle(), prop::collection::vec(rest(), 4)).prop_map(|(keys, rest)| {
        let item = |(key, mut rest): (Value, Map<String, Value>)| {
            rest.insert("k".to_owned(), key);
            Value::Object(rest)
        };
        Value::Array(keys.into_iter().zip(rest).map(item).collect())
    });
    let odd = prop_oneof![scalar(), rest().prop_map(Value::Object), Just(json!({"k": 1})), Just(json!({"k": null}))];
    prop_oneof![12 => sound, 1 => prop::collection::vec(odd, 0..3).prop_map(Value::from), 1 => scalar()]
}

fn state() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec!["a", "b", "c"]).prop_map(Value::from);
    let word = prop_oneof![12 => word, 1 => Just(json!("d")), 1 => Just(json!(0))];
    let number = prop::sample::select(vec![json!(0), json!(1), json!(2e300)]);
    let number = prop_oneof![12 => number, 1 => Just(json!(1.5)), 1 => Just(json!(true))];
    (scalar(), number, word, items()).prop_map(|(id, n, s, t)| json!({"id": id, "n": n, "s": s, "t": t}))
}

/// One change that a step may make.
#[derive(Clone, Debug)]
enum RandomEdit {
    Nothing,
    Member(&'static str, Value),
    Field(usize, &'static str, Option<Value>),
    Push(Map<String, Value>),
    Remove(usize),
    Swap(usize, usize),
    InsertFirst(Map<String, Value>),
}

fn edit() -> impl Strategy<Value = RandomEdit> {
    let new = || {
        (rest(), prop::sample::select(vec![json!("new"), json!(1), json!(3)])).prop_map(|(mut rest, key)| {
            rest.insert("k".to_owned(), key);
            rest
        })
    };
    let field = prop::sample::select(vec!["done", "done", "done", "x", "k"]);
    let value = prop_oneof![any::<bool>().prop_map(|it| Some(json!(it))), Just(None), scalar().prop_map(Some)];
    let word = prop::sample::select(vec![json!("a"), json!("b"), json!("c"), json!("d")]);
    prop_oneof![
        1 => Just(RandomEdit::Nothing),
        1 => scalar().prop_map(|it| RandomEdit::Member("id", it)),
        2 => scalar().prop_map(|it| RandomEdit::Member("n", it)),
        2 => word.prop_map(|it| RandomEdit::Member("s", it)),
        6 => (0_usize..3, field, value).prop_map(|(at, name, value)| RandomEdit::Field(at, name, value)),
        2 => new().prop_map(RandomEdit::Push),
        1 => (0_usize..3).prop_map(RandomEdit::Remove),
        1 => (0_usize..3, 0_usize..3).prop_map(|(one, other)| RandomEdit::Swap(one, other)),
        1 => new().prop_map(RandomEdit::InsertFirst),
    ]
}

/// Draws a state and its results after one and two edits. Independent states would have little in common.
fn steps() -> impl Strategy<Value = [Value; 3]> {
    (state(), edit(), edit()).prop_map(|(first, one, other)| {
        let second = edited(&first, one);
        let third = edited(&second, other);
        [first, second, third]
    })
}

fn edited(state: &Value, edit: RandomEdit) -> Value {
    let mut after = state.clone();
    if let RandomEdit::Member(name, value) = edit {
        after[name] = value;
        return after;
    }
    let Some(items) = after["t"].as_array_mut() else { return after };
    match edit {
        RandomEdit::Nothing | RandomEdit::Member(..) => {}
        RandomEdit::Field(at, name, value) => {
            if let Some(Value::Object(members)) = items.get_mut(at) {
                match value {
                    Some(value) => drop(members.insert(name.to_owned(), value)),
                    None => drop(members.remove(name)),
                }
            }
        }
        RandomEdit::Push(item) => items.push(Value::Object(item)),
        RandomEdit::Remove(at) if at < items.len() => drop(items.remove(at)),
        RandomEdit::Swap(one, other) if one.max(other) < items.len() => items.swap(one, other),
        RandomEdit::Remove(_) | RandomEdit::Swap(..) => {}
        RandomEdit::InsertFirst(item) => items.insert(0, Value::Object(item)),
    }
    after
}

/// The rules in their simplest form, without regard for messages or run time.
fn oracle(before: &Value, after: &Value) -> bool {
    let order = ["a", "b", "c"];
    let whole = |it: &Value| it.as_f64().filter(|it| it.fract() == 0.0);
    let rank = |it: &Value| it.as_str().and_then(|it| order.iter().position(|other| *other == it));
    let grows = matches!((whole(&before["n"]), whole(&after["n"])), (Some(old), Some(new)) if old <= new);
    let advances = matches!((rank(&before["s"]), rank(&after["s"])), (Some(old), Some(new)) if old <= new);
    let (Some(old), Some(new)) = (keyed(&before["t"]), keyed(&after["t"])) else { return false };
    let kept = old.len() <= new.len() && old.iter().zip(&new).all(|(old, new)| item_may_follow(old, new));
    before["id"] == after["id"] && grows && advances && kept
}

/// Returns the items if each is an object with a key of its own.
fn keyed(items: &Value) -> Option<Vec<&Map<String, Value>>> {
    let items: Vec<_> = items.as_array()?.iter().map(Value::as_object).collect::<Option<_>>()?;
    let sound = |it: &Value| it.is_string() || it.is_number();
    let all = items.iter().all(|it| it.get("k").is_some_and(sound));
    let apart = items.iter().enumerate().all(|(at, it)| items[..at].iter().all(|other| other.get("k") != it.get("k")));
    (all && apart).then_some(items)
}

fn item_may_follow(old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let boolean = |it: Option<&Value>| it.is_none_or(Value::is_boolean);
    let (was, is) = (old.get("done"), new.get("done"));
    let rest = |it: &Map<String, Value>| -> Map<String, Value> {
        it.clone().into_iter().filter(|(name, _)| name != "done").collect()
    };
    rest(old) == rest(new) && boolean(was) && boolean(is) && (was == is || is == Some(&Value::Bool(true)))
}

/// Draws a schema in the guard's own dialect and the same one in JSON Schema.
fn schemas() -> impl Strategy<Value = [Value; 2]> {
    let leaf = prop::sample::select(vec!["string", "integer", "number", "boolean", "null"]);
    let listed = prop::collection::vec(scalar(), 1..3);
    let leaf = prop_oneof![
        leaf.clone().prop_map(|it| json!({"type": it})),
        (leaf, listed).prop_map(|(it, listed)| json!({"type": it, "enum": listed})),
    ];
    let schema = leaf.prop_recursive(3, 12, 3, |inner| {
        let named = prop::collection::btree_map(prop::sample::select(vec!["id", "n", "k"]), inner.clone(), 0..3);
        let required = prop::collection::btree_set(prop::sample::select(vec!["id", "k"]), 0..2);
        prop_oneof![
            inner.prop_map(|it| json!({"type": "array", "items": it})),
            (named, required, any::<bool>()).prop_map(|(named, required, open)| {
                let required: Vec<_> = required.into_iter().filter(|it| named.contains_key(it)).collect();
                json!({"type": "object", "properties": named, "required": required, "additionalProperties": open})
            }),
        ]
    });
    schema.prop_map(|small| {
        let mut other = small.clone();
        other["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        [small, other]
    })
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        let named = prop::collection::btree_map(prop::sample::select(vec!["id", "n", "k", "z"]), inner.clone(), 0..4);
        prop_oneof![prop::collection::vec(inner, 0..3).prop_map(Value::from), named.prop_map(|it| json!(it))]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_may_follow_is_what_the_rules_say_in_plain_words([before, after, _] in steps()) {
        prop_assert_eq!(may_follow(&before, &after), oracle(&before, &after), "{} {}", before, after);
    }

    #[test]
    fn strangers_are_judged_as_the_rules_say_in_plain_words(before in state(), after in state()) {
        prop_assert_eq!(may_follow(&before, &after), oracle(&before, &after), "{} {}", before, after);
    }

    /// Otherwise two allowed steps could reach what one step may not.
    #[test]
    fn two_allowed_steps_lead_nowhere_that_one_could_not([first, second, third] in steps()) {
        if may_follow(&first, &second) && may_follow(&second, &third) {
            prop_assert!(may_follow(&first, &third), "{} {} {}", first, second, third);
        }
    }

    #[test]
    fn a_state_may_be_the_first_exactly_if_it_may_follow_itself(state in state()) {
        let first = guard().first(state.to_string().as_bytes());
        prop_assert_eq!(first.is_ok(), may_follow(&state, &state), "{}", state);
    }

    #[test]
    fn how_a_state_is_written_changes_nothing_of_what_is_found(before in state(), after in state()) {
        let plain = guard().transition(before.to_string().as_bytes(), after.to_string().as_bytes());
        let [before, after] = [&before, &after].map(|it| serde_json::to_string_pretty(it).unwrap());
        prop_assert_eq!(guard().transition(before.as_bytes(), after.as_bytes()), plain);
    }

    #[test]
    fn a_pointer_leads_into_the_state_that_is_wrong(before in state(), after in state()) {
        let Err(found) = guard().transition(before.to_string().as_bytes(), after.to_string().as_bytes()) else {
            return Ok(());
        };
        for it in &found.list {
            let state = if it.subject == ViolationSubject::Current { &before } else { &after };
            if it.code == GuardCode::Rule(TransitionViolation::NotABoolean) {
                prop_assert!(it.pointer.resolve(state).is_some_and(|it| !it.is_boolean()), "{:?} in {}", it, state);
            }
            // A missing member is reported at the path where it should be.
            let missing = matches!(it.code, GuardCode::Rule(TransitionViolation::KeyMissing | TransitionViolation::FieldRemoved | TransitionViolation::BooleanNotToTrue));
            let at = if missing { it.pointer.parent().unwrap() } else { it.pointer.clone() };
            prop_assert!(at.resolve(state).is_some(), "{:?} in {}", it, state);
        }
    }

    #[test]
    fn a_schema_admits_the_same_in_both_dialects([small, other] in schemas(), value in value()) {
        let [small, other] = [small, other].map(|it| StateGuard::new(it.to_string().as_bytes(), None).unwrap());
        prop_assert_eq!((small.dialect(), other.dialect()), (SchemaDialect::Guard, SchemaDialect::JsonSchema));
        let text = value.to_string();
        prop_assert_eq!(small.check(text.as_bytes()).is_ok(), other.check(text.as_bytes()).is_ok(), "{}", text);
    }
}
