//! Policies: a text, the schema that it names `s`, a state and a patch. What compiles is used.

use countersign_domain::json::patch::{Patch, PatchFormat};
use countersign_domain::policy::excerpt;
use countersign_domain::policy::{
    Policy, PolicyRequest, PolicySource, Redactor, RequestKind, StateLimits, judge, judge_initial, project,
};
use serde_json::{Value, json};

/// Nodes that are tried: fuzzers like to name many.
const NODES_MAX: usize = 3;

/// A text is refused at a place in it, or means one thing, and then it can be used.
pub fn check(text: &[u8]) {
    let parts = super::parts(text);
    let words = |at: usize| parts.get(at).and_then(|it| std::str::from_utf8(it).ok()).map(str::to_owned);
    let Some(toml) = words(0) else { return };
    let schemas = words(1).map(|it| ("s".to_owned(), it)).into_iter().collect();
    let source = PolicySource { text: toml, schemas };
    match Policy::compile(&source) {
        Ok(policy) => {
            assert_eq!(policy.digest(), source.digest());
            let again = Policy::compile(policy.source()).expect("it was understood before");
            assert_eq!(again.digest(), policy.digest());
            let state = super::value(parts.get(2)).filter(Value::is_object).unwrap_or_else(|| json!({}));
            let request = super::value(parts.get(3)).unwrap_or_else(|| json!({}));
            used(&policy, &again, &state, &request);
        }
        Err(error) => {
            assert_eq!(Policy::compile(&source).err().as_ref(), Some(&error));
            // The end of the text is a place, too.
            let lines = u32::try_from(source.text.split('\n').count()).expect("a text of a fuzzer is short");
            assert!((1..=lines).contains(&error.line) && error.column >= 1, "{error:?}");
            assert!(!error.message.is_empty());
        }
    }
}

fn used(policy: &Policy, again: &Policy, state: &Value, request: &Value) {
    let limits = StateLimits::default();
    _ = judge_initial(policy, state, &limits);
    for (node, _) in policy.nodes().take(NODES_MAX) {
        let view = project(policy, node, state);
        assert_eq!(project(policy, node, &view), view, "a view of a view is another");
        for format in [PatchFormat::MergePatch, PatchFormat::JsonPatch] {
            let Ok(patch) = Patch::read(format, request.clone()) else { continue };
            let asked = PolicyRequest { node, kind: RequestKind::Propose { patch: &patch } };
            assert_eq!(judge(policy, state, &asked, &limits), judge(again, state, &asked, &limits));
            _ = excerpt(&Redactor::of_request(policy, state, format, request, None), format, request);
        }
    }
}
