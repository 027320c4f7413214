//! Checks every answer in the API tests against the OpenAPI description: status, content type and body. The body must
//! contain nothing that is not described.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex, PoisonError};

use countersign_web::api::public::DESCRIPTION;
use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

static DESCRIBED: LazyLock<Value> = LazyLock::new(|| {
    let mut told: Value = serde_json::from_str(&DESCRIPTION).unwrap();
    let mut parts = BTreeSet::new();
    collect_parts(&told, false, &mut parts);
    let schemas = told["components"]["schemas"].as_object_mut().unwrap();
    for (name, schema) in schemas.iter_mut() {
        close(schema, parts.contains(&format!("#/components/schemas/{name}")));
    }
    for (_, answer) in told["components"]["responses"].as_object_mut().unwrap() {
        close(&mut answer["content"]["application/problem+json"]["schema"], false);
    }
    told
});

static VALIDATORS: LazyLock<Mutex<BTreeMap<String, Validator>>> = LazyLock::new(Mutex::default);

/// Collects the schemas that are parts of others: they cannot be closed by themselves.
fn collect_parts(value: &Value, within: bool, parts: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let (Some(Value::String(to)), true) = (members.get("$ref"), within) {
                parts.insert(to.clone());
            }
            for (name, it) in members {
                collect_parts(
                    it,
                    name == "allOf" || (within && !matches!(name.as_str(), "properties" | "items")),
                    parts,
                );
            }
        }
        Value::Array(items) => items.iter().for_each(|it| collect_parts(it, within, parts)),
        _ => {}
    }
}

fn close(schema: &mut Value, is_part: bool) {
    let closable = !schema["properties"].is_null() || !schema["allOf"].is_null();
    if closable && !is_part && schema["additionalProperties"].is_null() {
        schema["unevaluatedProperties"] = json!(false);
    }
}

/// The described path that this one is of.
fn path_of<'a>(told: &'a Value, path: &str) -> Option<&'a str> {
    let path = path.split('?').next().unwrap_or_default();
    let fits = |it: &&String| {
        it.split('/').count() == path.split('/').count()
            && it.split('/').zip(path.split('/')).all(|(name, given)| name == given || name.starts_with('{'))
    };
    told["paths"].as_object().unwrap().keys().find(fits).map(String::as_str)
}

/// Fails the test if the answer does not match its description. A call without a description is not checked.
pub fn check(method: &str, path: &str, answer: (u16, &str, &Value)) {
    let told = &*DESCRIBED;
    let (status, content_type, body) = answer;
    let Some(route) = path_of(told, path) else { return };
    let call = &told["paths"][route][method.to_lowercase()];
    if call.is_null() {
        return;
    }
    let at = format!("{method} {route}: {status} {content_type}");
    let escaped = route.replace('~', "~0").replace('/', "~1");
    let mut place = format!("/paths/{escaped}/{}/responses/{status}", method.to_lowercase());
    let mut described = told.pointer(&place).unwrap_or_else(|| panic!("{at} is not described: {body}"));
    if let Some(to) = described["$ref"].as_str() {
        place = to.trim_start_matches('#').to_owned();
        described = told.pointer(&place).unwrap();
    }
    let kind = content_type.split(';').next().unwrap_or_default();
    if described["content"].is_null() {
        assert!(kind.is_empty(), "{at} has a body that is not described");
        return;
    }
    assert!(!described["content"][kind].is_null(), "{at}: this kind of content is not described");
    if !kind.ends_with("json") {
        return;
    }
    let place = format!("{place}/content/{}/schema", kind.replace('/', "~1"));
    let mut validators = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = validators.entry(place.clone()).or_insert_with(|| {
        let mut root = told.clone();
        root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        let whole = json!({"$ref": format!("#{}", place.replace('{', "%7B").replace('}', "%7D"))});
        root["allOf"] = json!([whole]);
        jsonschema::options().with_draft(Draft::Draft202012).build(&root).unwrap()
    });
    let wrong: Vec<String> = validator.iter_errors(body).map(|it| format!("{}: {it}", it.instance_path())).collect();
    assert!(wrong.is_empty(), "{at} is not as described: {wrong:#?}\n{body:#}");
}
