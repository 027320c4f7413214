use std::collections::BTreeMap;

use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Strategy as _;
use serde_json::json;

use super::*;
use crate::json::canonical::canonical;
use crate::json::diff::LeafChange;
use crate::policy::PolicySource;
use crate::threads::branch::Strategy;

fn policy() -> Policy {
    let text = "flow = \"f\"\n[transitions.keyed_arrays.\"found\"]\nkey = \"id\"\n[nodes.n]\nreads = [\"a\"]\n";
    Policy::compile(&PolicySource { text: text.to_owned(), schemas: BTreeMap::new() }).unwrap()
}

fn name(text: &str) -> BranchName {
    BranchName::try_from(text).unwrap()
}

/// Joins branches, each given as a name, a state and a confidence in millionths.
fn joined(
    base: &Value,
    sides: &[(&str, Value, u32)],
    strategy: Strategy,
    resolve: &Value,
) -> Result<Value, JoinRejected> {
    let (policy, resolutions) = (policy(), Resolutions::read(resolve).unwrap());
    let names: Vec<BranchName> = sides.iter().map(|it| name(it.0)).collect();
    let all = names.iter().zip(sides).map(|(name, it)| BranchState { name, state: &it.1, confidence: it.2 });
    let all: Vec<BranchState<'_>> = all.collect();
    join(base, &all, JoinOptions { strategy, policy: &policy, resolutions: &resolutions })
}

fn union(base: &Value, states: &[Value]) -> Result<Value, JoinRejected> {
    let names = ["a", "b", "c", "d"];
    let sides: Vec<_> = names.iter().zip(states).map(|(name, it)| (*name, it.clone(), 0)).collect();
    joined(base, &sides, Strategy::Union, &json!([]))
}

fn conflicts(places: &[&str]) -> Result<Value, JoinRejected> {
    Err(JoinRejected::Conflicts(places.iter().map(|it| Pointer::try_from(*it).unwrap()).collect()))
}

#[test]
fn separate_changes_of_branches_are_all_joined() {
    let base = json!({"kept": 1, "gone": 2, "deep": {"x": 1, "y": 2}, "list": [1, 2]});
    let left = json!({"kept": 1, "deep": {"x": 5, "y": 2}, "list": [9, 2], "new": null});
    let right = json!({"kept": 1, "gone": 2, "deep": {"x": 1, "y": 6}, "list": [1, 8]});
    let both = json!({"kept": 1, "deep": {"x": 5, "y": 6}, "list": [9, 8], "new": null});
    assert_eq!(union(&base, &[left, right]), Ok(both));
}

#[test]
fn new_objects_are_merged_by_their_members() {
    let absent = json!({});
    let deep = |leaf: Value| json!({"new": {"a": {"same": [1, {}], "b": leaf}}});
    let table = [
        (vec![absent.clone(), deep(json!({"x": 1})), deep(json!({"y": {}}))], Ok(deep(json!({"x": 1, "y": {}})))),
        (vec![absent.clone(), deep(json!({})), deep(json!({}))], Ok(deep(json!({})))),
        (vec![absent.clone(), deep(json!({}))], Ok(deep(json!({})))),
        (vec![absent.clone(), deep(json!({"x": 1})), deep(json!({"x": 2}))], conflicts(&["/new/a/b/x"])),
        (vec![absent.clone(), deep(json!({"x": 1})), deep(json!(2))], conflicts(&["/new/a/b"])),
        (vec![deep(json!([1])), deep(json!([1, 2]))], conflicts(&["/new/a/b"])),
        (vec![deep(json!([1])), deep(json!([1]))], Ok(deep(json!([1])))),
        (vec![json!({"new": {}}), json!({"new": {}})], Ok(json!({"new": {}}))),
        (vec![json!({"new": {}}), absent.clone()], Ok(json!({"new": {}}))),
    ];
    for (states, expected) in table {
        assert_eq!(union(&absent, &states), expected, "{states:?}");
    }
}

#[test]
fn union_names_every_conflicting_path() {
    let table = [
        (json!({"x": 1}), json!({"x": 2}), json!({"x": 3}), conflicts(&["/x"])),
        (json!({}), json!({"x": 2}), json!({"x": 2}), Ok(json!({"x": 2}))),
        (json!({"x": 1}), json!({}), json!({"x": 3}), conflicts(&["/x"])),
        (json!({"x": {"y": 1}}), json!({}), json!({"x": {"y": 2}}), conflicts(&["/x"])),
        (json!({"x": {"y": 1}}), json!({"x": {}}), json!({"x": {"y": 1, "z": 2}}), Ok(json!({"x": {"z": 2}}))),
        (json!({}), json!({"x": {"y": 1}}), json!({"x": {"z": 2}}), Ok(json!({"x": {"y": 1, "z": 2}}))),
        (json!({}), json!({"x": {"y": 1}}), json!({"x": [1]}), conflicts(&["/x"])),
        (json!({"x": 1, "y": 1}), json!({"x": 2, "y": 2}), json!({"x": 3, "y": 3}), conflicts(&["/x", "/y"])),
        // A list whose length changed is merged as one value.
        (json!({"l": [1, 2]}), json!({"l": [1, 2, 3]}), json!({"l": [0, 2]}), conflicts(&["/l"])),
        (json!({"l": [1, 2]}), json!({"l": [1]}), json!({"l": [1, 2]}), Ok(json!({"l": [1]}))),
        (json!({"l": [1, 2]}), json!({"l": [3, 2]}), json!({"l": [4, 2]}), conflicts(&["/l/0"])),
        (json!({}), json!({"l": [1]}), json!({"l": [2]}), conflicts(&["/l"])),
    ];
    for (base, left, right, wanted) in table {
        assert_eq!(union(&base, &[left.clone(), right.clone()]), wanted, "{base} {left} {right}");
        assert_eq!(union(&base, &[right, left]), wanted, "{base}, the other way round");
    }
}

#[test]
fn keyed_lists_merge_by_key() {
    let base = json!({"found": [{"id": "one", "ok": false}, {"id": "two", "ok": false}]});
    let left = json!({"found": [{"id": "one", "ok": true}, {"id": "two", "ok": false}, {"id": "three"}]});
    let right =
        json!({"found": [{"id": "one", "ok": false}, {"id": "two", "ok": true}, {"id": "four"}, {"id": "five"}]});
    let both = json!({"found": [{"id": "one", "ok": true}, {"id": "two", "ok": true}, {"id": "three"}, {"id": "four"}, {"id": "five"}]});
    assert_eq!(union(&base, &[left.clone(), right.clone()]), Ok(both.clone()));
    // The order follows the names of the branches, not their order in the request.
    let swapped = joined(&base, &[("b", right, 0), ("a", left, 0)], Strategy::Union, &json!([]));
    assert_eq!(swapped, Ok(both));
    let same = |value: i32| json!({"found": [{"id": "one", "ok": false}, {"id": "two", "ok": false}, {"id": "new", "v": value}]});
    assert_eq!(union(&base, &[same(1), same(2)]), conflicts(&["/found/2/v"]));
    let without = json!({"found": [{"id": "two", "ok": false}]});
    let changed = json!({"found": [{"id": "one", "ok": false}, {"id": "two", "ok": true}]});
    assert_eq!(union(&base, &[without.clone(), changed]), Ok(json!({"found": [{"id": "two", "ok": true}]})));
    let both_touch = json!({"found": [{"id": "one", "ok": true}, {"id": "two", "ok": false}]});
    assert_eq!(union(&base, &[without, both_touch]), conflicts(&["/found/0"]));
}

#[test]
fn lists_without_unique_keys_are_one_value() {
    let base = json!({"found": [{"id": 1}, {"id": 2}]});
    let more = json!({"found": [{"id": 1}, {"id": 2}, {"id": 3}]});
    for odd in [
        json!({"found": [{"id": 1}, {"id": 2}, {"id": 2.0}]}),
        json!({"found": [{"id": 2}, {"id": 1}, {"id": 4}]}),
        json!({"found": [{"id": 1}, {"id": 2}, {"no": 3}]}),
        json!({"found": [{"id": 1}, {"id": 2}, 3]}),
        json!({"found": [{"id": 1}, {"id": 2}, {"id": null}]}),
    ] {
        assert_eq!(union(&base, &[more.clone(), odd.clone()]), conflicts(&["/found"]), "{odd}");
        assert_eq!(union(&base, &[base.clone(), odd.clone()]), Ok(odd), "one alone is taken over as it is");
    }
}

#[test]
fn every_strategy_settles_a_conflict_its_own_way() {
    let base = json!({"x": 0, "y": 0});
    let sides = [
        ("c", json!({"x": 1, "y": 0}), 300_000),
        ("a", json!({"x": 2, "y": 0}), 500_000),
        ("b", json!({"x": 1, "y": 7}), 100_000),
    ];
    let of = |strategy, resolve| joined(&base, &sides, strategy, &resolve).map(|it| it["x"].clone());
    assert_eq!(of(Strategy::LastWrite, json!([])), Ok(json!(1)), "the last that is named");
    assert_eq!(of(Strategy::Vote, json!([])), Ok(json!(1)), "two of three");
    assert_eq!(of(Strategy::Confidence, json!([])), Ok(json!(2)), "half is more than four tenths");
    assert_eq!(of(Strategy::Explicit, json!([{"path": "/x", "value": 9}])), Ok(json!(9)));
    assert_eq!(of(Strategy::Explicit, json!([{"path": "/x"}])), Ok(json!(null)), "nothing stands there");
    let settled = joined(&base, &sides, Strategy::Explicit, &json!([{"path": "/x"}])).unwrap();
    assert_eq!(settled, json!({"y": 7}));
}

#[test]
fn first_named_branch_wins_a_tie_and_unchanged_branches_have_no_effect() {
    let base = json!({});
    let (one, two) = (json!({"x": 1}), json!({"x": 2}));
    for strategy in [Strategy::Vote, Strategy::Confidence] {
        let of = |sides: &[(&str, Value, u32)]| joined(&base, sides, strategy, &json!([])).unwrap()["x"].clone();
        assert_eq!(of(&[("b", two.clone(), 5), ("a", one.clone(), 5)]), json!(2), "{strategy:?}");
        assert_eq!(of(&[("a", one.clone(), 5), ("b", two.clone(), 5)]), json!(1), "{strategy:?}");
        let idle = ("c", base.clone(), 900_000);
        assert_eq!(of(&[idle.clone(), ("d", json!({}), 5), ("a", one.clone(), 0)]), json!(1), "{strategy:?}");
    }
}

#[test]
fn explicit_resolutions_must_match_the_conflicts() {
    let base = json!({"x": 0, "y": 0});
    let sides = [("a", json!({"x": 1, "y": 1}), 0), ("b", json!({"x": 2, "y": 0}), 0)];
    let of = |resolve| joined(&base, &sides, Strategy::Explicit, &resolve);
    assert_eq!(of(json!([])), conflicts(&["/x"]));
    let idle = Err(JoinRejected::NoConflict(Pointer::try_from("/y").unwrap()));
    assert_eq!(of(json!([{"path": "/x", "value": 1}, {"path": "/y", "value": 1}])), idle);
    let malformed = [
        json!({}),
        json!([1]),
        json!([{"path": "x"}]),
        json!([{"path": "/x", "op": "add"}]),
        json!([{"value": 1}]),
        json!([{"path": "/x"}, {"path": "/x"}]),
    ];
    for wrong in malformed {
        assert!(Resolutions::read(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn changed_paths_exclude_containers_that_were_only_filled() {
    let base = json!({"o": {}, "x": 1, "l": [1]});
    let states = [json!({"o": {"a": 1}, "x": 1, "l": [1]}), json!({"o": {}, "l": [1, 2]})];
    let places: Vec<String> = changed(&base, states.iter()).iter().map(Pointer::to_string).collect();
    assert_eq!(places, ["/l/1", "/o/a", "/x"]);
}

const KEYS: &[&str] = &["a", "b", "c"];

/// Generates nested objects, so that leaves can be set one after another.
fn tree() -> impl proptest::strategy::Strategy<Value = Value> {
    let scalar = prop_oneof![Just(json!(null)), Just(json!(1)), Just(json!(2)), Just(json!("x"))];
    let inner = scalar.prop_recursive(3, 12, 3, |inner| {
        btree_map(select(KEYS).prop_map(str::to_owned), inner, 0..3)
            .prop_map(|it| Value::Object(it.into_iter().collect()))
    });
    btree_map(select(KEYS).prop_map(str::to_owned), inner, 0..4).prop_map(|it| Value::Object(it.into_iter().collect()))
}

/// Generates any JSON value, including lists with keys.
fn anything() -> impl proptest::strategy::Strategy<Value = Value> {
    let item = (0_i32..4, 0_i32..3).prop_map(|(id, v)| json!({"id": id, "v": v}));
    let list = proptest::collection::vec(item, 0..4).prop_map(Value::Array);
    (tree(), proptest::option::of(list)).prop_map(|(mut state, list)| {
        if let Some(list) = list {
            state["found"] = list;
        }
        state
    })
}

/// Removes objects that lost their last leaf and that the branch does not have either.
fn emptied(state: &mut Value, mut path: &str, after: &Value) {
    while let Some((above, key)) = path.rsplit_once('/') {
        let at = |it: &str| Pointer::try_from(it).unwrap();
        let goes = at(path).resolve(after).is_none() && at(path).resolve(state) == Some(&json!({}));
        match at(above).resolve_mut(state) {
            Some(Value::Object(members)) if goes => drop(members.remove(key)),
            _ => return,
        }
        path = above;
    }
}

/// Mixes two states: at each path one or the other, as the mask selects.
fn mixed(base: &Value, other: &Value, mask: u64, path: &mut String) -> Value {
    let (Value::Object(ours), Value::Object(theirs)) = (base, other) else { return other.clone() };
    let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let mut made = Map::new();
    for key in keys {
        let length = path.len();
        path.push_str(key);
        let place = path.bytes().fold(7_u64, |sum, it| sum * 31 % 61 + u64::from(it)) % 64;
        let value = match (ours.get(key), theirs.get(key)) {
            (Some(ours @ Value::Object(_)), Some(theirs @ Value::Object(_))) => Some(mixed(ours, theirs, mask, path)),
            (ours, theirs) => {
                if mask >> place & 1 == 1 {
                    theirs.cloned()
                } else {
                    ours.cloned()
                }
            }
        };
        path.truncate(length);
        made.extend(value.map(|it| (key.clone(), it)));
    }
    Value::Object(made)
}

/// Applies the differences leaf by leaf, as a reader of the diff would.
fn applied(state: &Value, before: &Value, after: &Value) -> Value {
    let mut state = state.clone();
    let said = |it: &LeafChange| !it.is_filling(before, after);
    let changes: Vec<LeafChange> = diff(before, after).into_iter().filter(said).collect();
    let (gone, there): (Vec<_>, Vec<_>) = changes.into_iter().partition(|it| it.after.is_none());
    for change in gone {
        let (above, key) = change.pointer.as_str().rsplit_once('/').unwrap();
        if let Some(Value::Object(members)) = Pointer::try_from(above).unwrap().resolve_mut(&mut state) {
            members.remove(key);
        }
        emptied(&mut state, above, after);
    }
    for change in there {
        let mut at = &mut state;
        for token in change.pointer.tokens() {
            if !at.is_object() {
                *at = json!({});
            }
            at = at.as_object_mut().unwrap().entry(token.as_ref()).or_insert(json!({}));
        }
        *at = change.after.unwrap();
    }
    state
}

/// Returns the paths that a branch changed. A removed object is listed as a whole, because no other branch changed it
/// then.
fn places(before: &Value, after: &Value) -> Vec<Pointer> {
    let whole = |it: Pointer| {
        let mut path = it.as_str();
        while let Some((above, _)) = path.rsplit_once('/') {
            if above.is_empty() || Pointer::try_from(above).unwrap().resolve(after).is_some() {
                break;
            }
            path = above;
        }
        Pointer::try_from(path).unwrap()
    };
    changed(before, std::iter::once(after)).into_iter().map(whole).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_branches_that_do_not_conflict_changes_nothing(
        base in anything(), one in anything(), two in anything(), three in anything(),
    ) {
        let sides = [("a", one, 1_u32), ("b", two, 2), ("c", three, 3)];
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let of = |order: &[usize; 3], strategy| {
            let asked: Vec<_> = order.iter().map(|it| sides[*it].clone()).collect();
            joined(&base, &asked, strategy, &json!([]))
        };
        let first = of(&orders[0], Strategy::Union);
        for order in &orders {
            prop_assert_eq!(&of(order, Strategy::Union), &first);
            // Without conflicts, every strategy gives the same result.
            if let Ok(first) = &first {
                for strategy in [Strategy::LastWrite, Strategy::Vote, Strategy::Confidence, Strategy::Explicit] {
                    let joined = of(order, strategy).unwrap();
                    prop_assert_eq!(canonical(&joined), canonical(first));
                }
            }
        }
    }

    #[test]
    fn one_branch_alone_is_joined_as_it_is(base in anything(), one in anything()) {
        prop_assert_eq!(union(&base, std::slice::from_ref(&one)), Ok(one.clone()));
        prop_assert_eq!(union(&base, &[base.clone(), one.clone(), base.clone()]), Ok(one.clone()));
        prop_assert_eq!(union(&base, &[one.clone(), one.clone()]), Ok(one));
    }

    #[test]
    fn union_of_separate_changes_equals_applying_them_in_order(
        base in tree(), one in tree(), two in tree(), mask in any::<u64>(),
    ) {
        let one = mixed(&base, &one, mask, &mut String::new());
        let two = mixed(&base, &two, !mask, &mut String::new());
        let (of_one, of_two) = (places(&base, &one), places(&base, &two));
        let apart = of_one.iter().all(|it| of_two.iter().all(|other| !it.touches(other)));
        if apart {
            let joined = union(&base, &[one.clone(), two.clone()]).unwrap();
            prop_assert_eq!(&joined, &applied(&one, &base, &two));
            prop_assert_eq!(&joined, &applied(&two, &base, &one));
        }
    }

    #[test]
    fn join_adds_nothing_that_no_branch_has(base in tree(), one in tree(), two in tree()) {
        for strategy in [Strategy::LastWrite, Strategy::Vote, Strategy::Confidence] {
            let sides = [("a", one.clone(), 1), ("b", two.clone(), 2)];
            let joined = joined(&base, &sides, strategy, &json!([])).unwrap();
            for (at, leaf) in crate::json::diff::leaves(&joined) {
                let has = |state: &Value| at.resolve(state) == Some(leaf);
                let empty = *leaf == json!({});
                prop_assert!(empty || has(&base) || has(&one) || has(&two), "{at} {leaf}");
            }
        }
    }
}
