//! Judgements by a few fixed policies: a state, and a request.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use countersign_domain::json::canonical::canonical;
use countersign_domain::json::diff::{LeafChange, diff};
use countersign_domain::json::patch::{Patch, PatchFormat};
use countersign_domain::json::pattern::Pattern;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::policy::excerpt;
use countersign_domain::policy::{
    CallerContext, JudgedReason, Judgement, NodePolicy, Policy, PolicyRequest, PolicySource, Redactor, RequestKind,
    StateLimits, Violation, judge_for, redacted,
};
use countersign_domain::primitives::id::NodeId;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What begins each text that stands where a policy hides; in no policy, and in no sentence of ours.
const HIDDEN: &str = "h1dd3n-";

/// The same of each key there.
const NAME: &str = "n4m3d-";

/// A reader, writers of parts, and one of all, over few names, so that inputs meet them.
static POLICIES: LazyLock<Vec<Policy>> = LazyLock::new(|| {
    let schema = include_str!("../policies/schema.json").to_owned();
    let texts = [include_str!("../policies/lists.toml"), include_str!("../policies/rules.toml")];
    let schemas = [("schema.json".to_owned(), schema)].into();
    let source = |text: &str| PolicySource { text: text.to_owned(), schemas: Clone::clone(&schemas) };
    texts.map(|it| Policy::compile(&source(it)).expect("a policy that comes with the targets")).into()
});

/// Whatever is asked, the policy's promises hold.
pub fn check(text: &[u8]) {
    let parts = super::parts(text);
    let (Some(state), Some(request)) = (super::value(parts.first()), super::value(parts.get(1))) else { return };
    // A fuzzer watches what is compared, and learns the words.
    let knows = |it: &Value| [HIDDEN, NAME].iter().any(|word| canonical(it).contains(word));
    if !state.is_object() || knows(&state) || knows(&request) {
        return;
    }
    POLICIES.iter().for_each(|policy| promises(policy, &state, &request));
}

/// Whatever is asked, in each form that the request has: the promises of every policy.
pub fn promises(policy: &Policy, state: &Value, request: &Value) {
    let state = marked(policy, state, &Pointer::root());
    for format in [PatchFormat::Merge, PatchFormat::MergePatch, PatchFormat::JsonPatch] {
        let request = match (format, request) {
            (PatchFormat::JsonPatch, Value::Array(steps)) => steps.iter().map(|it| marked_step(policy, it)).collect(),
            (PatchFormat::Merge | PatchFormat::MergePatch, Value::Object(_)) => {
                marked(policy, request, &Pointer::root())
            }
            _ => continue,
        };
        let Ok(patch) = Patch::read(format, request.clone()) else { continue };
        let hiding = Redactor::of_request(policy, &state, format, &request, None);
        kept(policy, &excerpt(&hiding, format, &request));
        let names =
            if takes_from_hidden(policy, &request) { NameVisibility::Elsewhere } else { NameVisibility::Nowhere };
        for (node, rules) in policy.nodes() {
            judged(&FuzzCase { policy, node, rules, state: &state, patch: &patch, names });
        }
    }
}

/// Where the names below something hidden may be shown. Its values never are; its names are where they were copied or
/// moved to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameVisibility {
    Nowhere,
    Elsewhere,
}

/// Whether some step copies or moves something hidden, or something that holds it.
fn takes_from_hidden(policy: &Policy, request: &Value) -> bool {
    let from = |step: &Value| Pointer::try_from(step.get("from")?.as_str()?).ok();
    let takes = |from: Pointer| policy.hidden().touches(&from);
    request.as_array().is_some_and(|steps| steps.iter().filter_map(from).any(takes))
}

/// What is kept of a request to look at. One that was cut off is no JSON any more.
fn kept(policy: &Policy, excerpt: &str) {
    assert!(!excerpt.contains(HIDDEN) && !excerpt.contains(NAME), "{excerpt}");
    if let Ok(excerpt) = serde_json::from_str(excerpt) {
        nothing_hidden(policy, &excerpt);
    }
}

struct FuzzCase<'a> {
    policy: &'a Policy,
    node: &'a NodeId,
    rules: &'a NodePolicy,
    state: &'a Value,
    patch: &'a Patch,
    names: NameVisibility,
}

impl FuzzCase<'_> {
    /// Nothing that stood where the policy hides, and nothing that its detectors know, in any text and any key.
    fn nothing_hidden(&self, told: impl Serialize) {
        let told = serde_json::to_value(told).expect("what is told is JSON");
        nothing_hidden(self.policy, &told);
        assert!(self.names == NameVisibility::Elsewhere || !canonical(&told).contains(NAME), "{told}");
    }

    fn judge(&self) -> Judgement {
        let committed_nodes = BTreeSet::from([self.node.clone()]);
        let asker = CallerContext { principal: "token", owner: "team", committed_nodes: &committed_nodes };
        let request = PolicyRequest { node: self.node, kind: RequestKind::Propose { patch: self.patch } };
        judge_for(self.policy, self.state, &request, asker, &StateLimits::default())
    }
}

fn judged(case: &FuzzCase<'_>) {
    let judgement = case.judge();
    assert_eq!(judgement, case.judge(), "judged twice, it is two things");
    match &judgement {
        Judgement::Commit { after, changes, .. } => {
            effect(case, after, changes);
            for pattern in case.policy.protected() {
                assert_eq!(
                    named(pattern, case.state),
                    named(pattern, after),
                    "{pattern} changed, and nobody was asked"
                );
            }
        }
        Judgement::Hold { after, changes, reasons, .. } => {
            effect(case, after, changes);
            held(case, after, reasons);
        }
        Judgement::Reject { violations } => rejected(case, violations),
    }
}

/// What changes is what the patch does, within the limits, and only where the node may write.
fn effect(case: &FuzzCase<'_>, after: &Value, changes: &[LeafChange]) {
    let limits = StateLimits::default();
    assert_eq!(case.patch.apply(case.state, &limits).as_ref(), Ok(after));
    assert_eq!(limits.check(after), Ok(()));
    assert_eq!(diff(case.state, after), changes);
    for change in changes {
        let LeafChange { pointer, before, after: is } = change;
        // Unseen, an object on the way to what is written may come into being; its emptiness is no value.
        let on_the_way = !case.rules.reads().covers(pointer) && before.is_none() && *is == Some(json!({}));
        // An empty list or object that gives way to a filled one is no more than members that come.
        let filled = matches!(pointer.resolve(after), Some(Value::Object(_) | Value::Array(_)));
        let gave_way = filled && is.is_none() && case.rules.writes().covers(&pointer.child("any"));
        if on_the_way || gave_way || change.is_filling(case.state, after) {
            continue;
        }
        assert!(case.rules.writes().covers(pointer), "{} may not write {pointer}", case.node);
        assert!(!case.rules.deny().covers(pointer), "{} is denied to write {pointer}", case.node);
    }
    case.nothing_hidden(redacted(&Redactor::of(case.policy, [case.state, after], None), changes));
}

fn held(case: &FuzzCase<'_>, after: &Value, reasons: &[JudgedReason]) {
    assert!(!reasons.is_empty(), "held for no reason");
    for pattern in case.policy.protected() {
        let told = reasons.iter().any(|it| it.pattern.as_ref() == Some(pattern));
        assert!(told || named(pattern, case.state) == named(pattern, after), "{pattern} changed, and nobody is told");
    }
    case.nothing_hidden(reasons);
}

fn rejected(case: &FuzzCase<'_>, violations: &[Violation]) {
    assert!(!violations.is_empty(), "rejected for no reason");
    for violation in violations {
        assert_eq!(case.policy.cut(&violation.pointer), violation.pointer, "a place is told that is hidden");
    }
    case.nothing_hidden(violations);
}

fn nothing_hidden(policy: &Policy, told: &Value) {
    match told {
        Value::String(text) => no_secret(policy, text),
        Value::Array(items) => items.iter().for_each(|it| nothing_hidden(policy, it)),
        Value::Object(members) => {
            for (key, value) in members {
                no_secret(policy, key);
                nothing_hidden(policy, value);
            }
        }
        _ => {}
    }
}

fn no_secret(policy: &Policy, text: &str) {
    assert!(!text.contains(HIDDEN), "{text}");
    let hiding = Redactor::of(policy, [], None);
    match Pointer::try_from(text) {
        // Escaped and joined, names that are no secret may look like one.
        Ok(pointer) => pointer.tokens().for_each(|it| assert_eq!(hiding.masked(&it), it)),
        Err(_) => assert_eq!(hiding.masked(text), text),
    }
}

/// Everything that a pattern names in a state, found without asking it.
fn named<'v>(pattern: &Pattern, state: &'v Value) -> Vec<(Pointer, &'v Value)> {
    let mut found = vec![(Pointer::root(), state)];
    let path = pattern.as_str().trim_start_matches("$.");
    for segment in path.split('.').filter(|it| *it != "$") {
        let mut next = Vec::new();
        for (at, value) in found {
            let members: Vec<(Pointer, &Value)> = match value {
                Value::Object(members) => members.iter().map(|(key, value)| (at.child(key), value)).collect(),
                Value::Array(items) => items.iter().enumerate().map(|(n, value)| (at.index(n), value)).collect(),
                _ => Vec::new(),
            };
            let fits = |at: &Pointer| segment == "*" || at.tokens().last().is_some_and(|it| it == segment);
            next.extend(members.into_iter().filter(|(at, _)| fits(at)));
        }
        found = next;
    }
    found
}

/// The value with every key and text that is hidden made one that is known again. Indices stay what they are.
fn marked(policy: &Policy, value: &Value, at: &Pointer) -> Value {
    let hidden = policy.hides(at);
    match value {
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                let key = if hidden { marked_token(key) } else { key.clone() };
                let value = marked(policy, value, &at.child(&key));
                (key, value)
            };
            Value::Object(members.iter().map(member).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().enumerate().map(|(n, it)| marked(policy, it, &at.index(n))).collect(),
        Value::String(text) if hidden => json!(format!("{HIDDEN}{text}")),
        other => other.clone(),
    }
}

fn marked_token(token: &str) -> String {
    if token == "-" || token.bytes().all(|it| it.is_ascii_digit()) {
        token.to_owned()
    } else {
        format!("{NAME}{token}")
    }
}

fn marked_step(policy: &Policy, step: &Value) -> Value {
    let mut step = step.clone();
    for name in ["path", "from"] {
        if let Some(Ok(pointer)) = step.get(name).and_then(Value::as_str).map(Pointer::try_from) {
            let mark = |at: Pointer, token: std::borrow::Cow<'_, str>| {
                let hidden = policy.hides(&at);
                at.child(&if hidden { marked_token(&token) } else { token.into_owned() })
            };
            step[name] = json!(pointer.tokens().fold(Pointer::root(), mark).as_str());
        }
    }
    if let (Some(Ok(path)), Some(value)) =
        (step.get("path").and_then(Value::as_str).map(Pointer::try_from), step.get("value"))
    {
        step["value"] = marked(policy, value, &path);
    }
    step
}
