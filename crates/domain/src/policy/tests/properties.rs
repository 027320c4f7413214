//! Claims about all states, patches and policies, tried on many.

use std::collections::BTreeSet;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

use super::{node, one_node_with, propose};
use crate::json::diff::{diff, leaves};
use crate::json::patch::{Patch, PatchFormat};
use crate::json::pointer::Pointer;
use crate::policy::{Judgement, Policy, Redactor, StateLimits, project, redacted};

/// Few keys, so that patches, patterns and states meet.
const KEYS: &[&str] = &["a", "b", "0"];

/// Patterns of every shape over those keys.
const PATTERNS: &[&str] =
    &["a", "b", "0", "a.b", "a.a", "a.*", "a.0", "b.*", "b.0", "a.b.a", "a.*.b", "*.b", "b.0.a", "a.0.*"];

/// Returns how many cases are tried, unless `PROPTEST_CASES` says otherwise.
pub(in crate::policy) fn cases(cases: u32) -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let default =
        ProptestConfig { max_global_rejects: 1_000_000, failure_persistence: None, ..ProptestConfig::default() };
    if asked { default } else { ProptestConfig { cases, ..default } }
}

pub(super) fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![Just(json!(null)), Just(json!(1)), Just(json!(2)), Just(json!({})), Just(json!([]))];
    scalar.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![vec(inner.clone(), 1..4).prop_map(Value::Array), object_of(inner)]
    })
}

fn object_of(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    btree_map(select(KEYS).prop_map(str::to_owned), inner, 0..3).prop_map(|it| Value::Object(it.into_iter().collect()))
}

pub(in crate::policy) fn state() -> impl Strategy<Value = Value> {
    object_of(value())
}

pub(super) fn pointer() -> impl Strategy<Value = String> {
    let token = prop_oneof![9 => select(KEYS), 1 => Just("-")];
    vec(token, 0..4).prop_map(|tokens| tokens.iter().map(|it| format!("/{it}")).collect())
}

fn step() -> impl Strategy<Value = Value> {
    (select(vec!["add", "remove", "replace", "move", "copy", "test"]), pointer(), pointer(), value()).prop_map(
        |(op, path, from, value)| match op {
            "remove" => json!({"op": op, "path": path}),
            "move" | "copy" => json!({"op": op, "path": path, "from": from}),
            _ => json!({"op": op, "path": path, "value": value}),
        },
    )
}

pub(in crate::policy) fn request() -> impl Strategy<Value = (PatchFormat, Value)> {
    prop_oneof![
        state().prop_map(|it| (PatchFormat::Merge, it)),
        state().prop_map(|it| (PatchFormat::MergePatch, it)),
        vec(step(), 1..4).prop_map(|it| (PatchFormat::JsonPatch, Value::Array(it))),
    ]
}

pub(in crate::policy) fn patterns(most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(PATTERNS, 0..=most)
}

/// The words of a policy: reads, writes, deny, protected.
#[derive(Clone, Debug)]
pub(super) struct PolicyWords {
    pub(super) reads: Vec<&'static str>,
    pub(super) writes: Vec<&'static str>,
    pub(super) deny: Vec<&'static str>,
    pub(super) protected: Vec<&'static str>,
}

impl PolicyWords {
    pub(super) fn policy(&self) -> Policy {
        self.policy_with("")
    }

    pub(super) fn policy_with(&self, more: &str) -> Policy {
        let lists = [&self.reads, &self.writes, &self.deny, &self.protected].map(|it| it.join(" "));
        one_node_with(lists.each_ref().map(String::as_str), more)
    }
}

pub(super) fn words() -> impl Strategy<Value = PolicyWords> {
    let writes = prop_oneof![3 => patterns(8), 1 => Just(vec!["$"])];
    (patterns(6), writes, patterns(2), patterns(3)).prop_map(|(reads, writes, deny, protected)| {
        let known: BTreeSet<_> = deny.iter().copied().collect();
        PolicyWords { reads, writes, deny: known.into_iter().collect(), protected }
    })
}

/// Returns everything that a pattern names in a state, found without asking `Pattern`.
pub(super) fn named<'v>(pattern: &str, state: &'v Value) -> Vec<(String, &'v Value)> {
    let mut found = vec![(String::new(), state)];
    for segment in pattern.split('.') {
        let mut next = Vec::new();
        for (at, value) in found {
            let members: Vec<(String, &Value)> = match value {
                Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), value)).collect(),
                Value::Array(items) => items.iter().enumerate().map(|(i, value)| (i.to_string(), value)).collect(),
                _ => Vec::new(),
            };
            let fits = members.into_iter().filter(|(key, _)| segment == "*" || key == segment);
            next.extend(fits.map(|(key, value)| (format!("{at}/{key}"), value)));
        }
        found = next;
    }
    found
}

fn is_read(patterns: &[&str], pointer: &Pointer) -> bool {
    patterns.iter().any(|pattern| {
        let segments: Vec<_> = pattern.split('.').collect();
        let tokens: Vec<_> = pointer.tokens().collect();
        tokens.len() >= segments.len() && segments.iter().zip(&tokens).all(|(s, t)| *s == "*" || *s == t.as_ref())
    })
}

/// The same state with every scalar made unlike any other.
fn with_unique_leaves(state: &Value) -> Value {
    fn mark(value: &Value, at: &str) -> Value {
        match value {
            Value::Object(members) => members
                .iter()
                .map(|(key, value)| (key.clone(), mark(value, &format!("{at}.{key}"))))
                .collect::<Map<_, _>>()
                .into(),
            Value::Array(items) => items.iter().enumerate().map(|(i, it)| mark(it, &format!("{at}.{i}"))).collect(),
            _ => Value::from(format!("<{at}>")),
        }
    }
    mark(state, "")
}

proptest! {
    #![proptest_config(cases(2048))]

    #[test]
    fn a_protected_value_never_changes_without_people(words in words(), before in state(), (format, request) in request()) {
        let Ok(_) = Patch::read(format, request.clone()) else { return Ok(()) };
        if let Judgement::Commit { after, .. } = propose(&words.policy(), &before, format, request) {
            for pattern in &words.protected {
                prop_assert_eq!(named(pattern, &before), named(pattern, &after), "{}", pattern);
            }
        }
    }

    #[test]
    fn nothing_changes_outside_the_write_lists(words in words(), before in state(), (format, request) in request()) {
        let Ok(_) = Patch::read(format, request.clone()) else { return Ok(()) };
        let after = match propose(&words.policy(), &before, format, request) {
            Judgement::Commit { after, .. } | Judgement::Hold { after, .. } => after,
            Judgement::Reject { .. } => return Ok(()),
        };
        let all = words.writes == ["$"];
        for change in diff(&before, &after) {
            // Unseen, an object on the way to what is written may come into being; its emptiness is no value.
            let unseen = !is_read(&words.reads, &change.pointer);
            let on_the_way = unseen && change.before.is_none() && change.after == Some(json!({}));
            // An empty list or object that gives way to a filled one is no more than members that come.
            let filled = matches!(change.pointer.resolve(&after), Some(Value::Object(_) | Value::Array(_)));
            let gave_way = filled && change.after.is_none() && is_read(&words.writes, &change.pointer.child("any"));
            let by_the_way = on_the_way || gave_way || change.is_filling(&before, &after);
            prop_assert!(by_the_way || all || is_read(&words.writes, &change.pointer), "{:?}", change);
            prop_assert!(by_the_way || !is_read(&words.deny, &change.pointer), "denied {:?}", change);
        }
    }

    #[test]
    fn a_judgement_never_tells_two_things_of_one_request(words in words(), before in state(), (format, request) in request()) {
        let Ok(_) = Patch::read(format, request.clone()) else { return Ok(()) };
        let policy = words.policy();
        let (first, second) = (propose(&policy, &before, format, request.clone()), propose(&policy, &before, format, request));
        prop_assert_eq!(first, second);
    }

    #[test]
    fn a_view_never_has_a_value_from_outside_the_reads(words in words(), state in state()) {
        let state = with_unique_leaves(&state);
        let view = project(&words.policy(), &node(), &state);
        for (pointer, leaf) in leaves(&view) {
            if is_read(&words.reads, &pointer) {
                prop_assert_eq!(Some(leaf), pointer.resolve(&state));
            } else {
                let placeholder = leaf.is_null() || pointer.is_root();
                prop_assert!(placeholder, "{} {}", pointer, leaf);
            }
        }
        for (pointer, leaf) in leaves(&state) {
            if is_read(&words.reads, &pointer) {
                prop_assert_eq!(Some(leaf), pointer.resolve(&view), "what is read is shown");
            }
        }
    }

    #[test]
    fn a_redacted_diff_never_has_a_hidden_value(
        hide in patterns(4), before in state(), after in state(), from in pointer(), to in pointer(), form in form(),
    ) {
        let quoted: Vec<_> = hide.iter().map(|it| format!("{it:?}")).collect();
        let policy = super::policy(&format!("[redaction]\nhide = [{}]", quoted.join(", ")));
        let (before, after) = (with_values(&before), with_values(&after));
        // A value of the state before, so that it may be redacted on that side only.
        let copied = Pointer::try_from(from.as_str()).unwrap().resolve(&before).map(|it| form.of(it));
        let patch = copied.map(|it| json!([{"op": "add", "path": to, "value": it}]));
        let patched = patch.and_then(|it| Patch::read(PatchFormat::JsonPatch, it).unwrap().apply(&after, &LIMITS).ok());
        let after = patched.filter(Value::is_object).unwrap_or(after);
        let hiding = Redactor::of(&policy, [&before, &after], None);
        let told = serde_json::to_value(redacted(&hiding, &diff(&before, &after))).unwrap();
        for (pointer, leaf) in leaves(&before).into_iter().chain(leaves(&after)) {
            if is_read(&hide, &pointer) {
                let (raw, escaped) = (leaf.as_str().map_or_else(|| leaf.to_string(), str::to_owned), leaf.to_string());
                for text in texts(&told) {
                    prop_assert!(raw.len() < 6 || !text.contains(&raw), "{} in {}", raw, told);
                    prop_assert!(raw.len() < 6 || !text.contains(escaped.trim_matches('"')), "{} in {}", escaped, told);
                }
                prop_assert!(!told.to_string().contains(&format!("\"{pointer}/")), "names below {}", pointer);
            }
        }
    }
}

const LIMITS: StateLimits = StateLimits { bytes_max: 1_000_000, leaves_max: 10_000, depth_max: 64 };

/// Forms of a copied value.
#[derive(Clone, Copy, Debug)]
enum CopyForm {
    AsItIs,
    InText,
    InJson,
    AsKey,
}

fn form() -> impl Strategy<Value = CopyForm> {
    select(vec![CopyForm::AsItIs, CopyForm::InText, CopyForm::InJson, CopyForm::AsKey])
}

impl CopyForm {
    fn of(self, value: &Value) -> Value {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match self {
            Self::AsItIs => value.clone(),
            Self::InText => json!(format!("it is {text}.")),
            Self::InJson => json!(json!({"copied": value}).to_string()),
            Self::AsKey => json!({"open": {text: 1}}),
        }
    }
}

/// Every text in it, keys too, and every number as it is written.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => {
            members.iter().flat_map(|(key, it)| [vec![key.clone()], texts(it)].concat()).collect()
        }
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::String(text) => vec![text.clone()],
        other => vec![other.to_string()],
    }
}

/// The same state with every scalar made a value that is long enough to be looked for: a text with what JSON escapes,
/// or a number.
pub(in crate::policy) fn with_values(state: &Value) -> Value {
    let texts = with_unique_leaves(state);
    fn mark(value: Value) -> Value {
        match value {
            Value::Object(members) => {
                members.into_iter().map(|(key, it)| (key, mark(it))).collect::<Map<_, _>>().into()
            }
            Value::Array(items) => items.into_iter().map(mark).collect(),
            Value::String(text) if text.contains('0') => {
                let number = text.bytes().fold(0_u64, |sum, it| (sum * 31 + u64::from(it)) % 900_000);
                json!(100_000 + number)
            }
            Value::String(text) => json!(format!("\"{text}\n\\")),
            other => other,
        }
    }
    mark(texts)
}
