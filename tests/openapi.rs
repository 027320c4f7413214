//! Checks that the OpenAPI description is complete and current, and has nothing more.

#![expect(clippy::unwrap_used, reason = "a test says by its failure what could not be")]

#[path = "openapi/pages.rs"]
mod pages;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use countersign_domain::chain::denial::DenialCode;
use countersign_domain::interrupts::InterruptRejected;
use countersign_domain::json::parse::JsonCode;
use countersign_domain::platform::idempotency::IdempotencyError;
use countersign_domain::policy::RejectCode;

use countersign_web::api::openapi::KEYLESS;
use countersign_web::api::public::DESCRIPTION;
use countersign_web::auth::permissions::TABLE;
use serde_json::{Value, json};

const OPEN: &[&str] = &["/.well-known/jwks.json", "/livez", "/readyz"];

/// Returns the OpenAPI description as JSON.
fn described() -> Value {
    serde_json::from_str(&DESCRIPTION).unwrap()
}

/// Every call: path, method, what is said of it.
fn calls(told: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = told["paths"].as_object().unwrap().iter();
    let of = |(path, item)| {
        let item: &Value = item;
        let path: &String = path;
        item.as_object().unwrap().iter().map(move |(method, call)| (path.as_str(), method.as_str(), call))
    };
    paths.flat_map(of).collect()
}

#[test]
fn the_committed_copy_is_what_is_served() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
    let current = format!("{}\n", DESCRIPTION.as_str());
    if std::env::var_os("RENEW").is_some() {
        std::fs::write(&file, current).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == current, "docs/openapi.json is not current: RENEW=1 cargo test --test openapi");
}

#[test]
fn every_call_of_a_machine_is_described_and_nothing_else() {
    let told = described();
    let described: BTreeSet<_> = calls(&told).iter().map(|(path, method, _)| (method.to_uppercase(), *path)).collect();
    let machines = TABLE.iter().filter(|it| !it.machines.is_empty()).map(|it| (it.method.to_owned(), it.route));
    let open = OPEN.iter().map(|it| ("GET".to_owned(), *it));
    assert_eq!(described, machines.chain(open).collect());
}

#[test]
fn every_call_has_a_summary_its_roles_and_its_status_codes() {
    let told = described();
    assert_eq!(told["openapi"], "3.1.0");
    let tags: Vec<_> = told["tags"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    let mut names = BTreeSet::new();
    for (path, method, call) in calls(&told) {
        let at = format!("{method} {path}");
        assert!(names.insert(call["operationId"].as_str().unwrap().to_owned()), "{at}");
        assert!(!call["summary"].as_str().unwrap().is_empty(), "{at}");
        let described = call["description"].as_str().unwrap_or_default();
        assert!(described.contains("Returns 20"), "{at} does not describe its status codes");
        assert!(tags.contains(&call["tags"][0]), "{at}");
        let rule = TABLE.iter().find(|it| it.route == path && it.method.eq_ignore_ascii_case(method));
        if let Some(rule) = rule {
            let roles: Vec<_> = rule.machines.iter().map(|it| it.as_str()).collect();
            assert_eq!(call["x-roles"], json!(roles), "{at}");
            assert_eq!(call["security"][0], json!({"token": []}), "{at}");
        } else {
            assert!(call["security"].is_null(), "{at}");
        }
        let takes_key = call["parameters"].as_array().into_iter().flatten().any(|it| it["name"] == "Idempotency-Key");
        assert_eq!(takes_key, method == "post" && !KEYLESS.contains(&path), "{at}");
        for (status, answer) in call["responses"].as_object().unwrap() {
            let content = &answer["content"];
            let said = !answer["$ref"].is_null() || !content.is_null() || status == "204";
            assert!(said, "{at} says nothing of what a {status} has in it");
            let untyped = content.as_object().into_iter().flatten().any(|(_, it)| it["schema"].is_null());
            assert!(!untyped, "{at} {status}");
        }
        for parameter in call["parameters"].as_array().into_iter().flatten() {
            let words = parameter["description"].as_str().unwrap_or_default();
            assert!(!words.is_empty(), "{at}: nothing is said of {}", parameter["name"]);
        }
    }
}

#[test]
fn every_member_has_a_type_and_a_word_on_it() {
    let told = described();
    let mut bare = Vec::new();
    for (name, schema) in told["components"]["schemas"].as_object().unwrap() {
        let mut all = vec![schema];
        all.extend(["oneOf", "anyOf", "allOf"].iter().flat_map(|it| schema[*it].as_array()).flatten());
        for (member, it) in all.iter().filter_map(|it| it["properties"].as_object()).flatten() {
            // Any JSON has no type; it has a word on it all the same.
            // Which of several forms it is, is said by one word.
            let is_mark = it["enum"].as_array().is_some_and(|it| it.len() == 1);
            let of_one = it["oneOf"].as_array().into_iter().flatten().any(|it| !it["description"].is_null());
            if it["description"].is_null() && !of_one && !is_mark && it["$ref"].is_null() {
                bare.push(format!("{name}.{member}"));
            }
        }
    }
    // The members of what is signed are the protocol's own words, and explained there.
    let signed = [
        "Statement",
        "VoteStatement",
        "PolicyVoteStatement",
        "InterruptVoteStatement",
        "PinnedPasskey",
        "VoteEvidence",
    ];
    bare.retain(|it| !signed.contains(&it.split_once('.').unwrap().0));
    assert!(bare.is_empty(), "{bare:?}");
}

/// The schema of a body, with everything that it names.
fn validator(told: &Value, place: &str) -> jsonschema::Validator {
    let mut root = told.clone();
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["allOf"] = json!([{"$ref": format!("#{}", place.replace('{', "%7B").replace('}', "%7D"))}]);
    jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(&root).unwrap()
}

#[test]
fn every_call_and_problem_has_an_example_that_is_as_it_is_described() {
    let told = described();
    let mut contents = Vec::new();
    for (path, method, call) in calls(&told) {
        let at = format!("/paths/{}/{method}", path.replace('~', "~0").replace('/', "~1"));
        contents.push(format!("{at}/requestBody/content/application~1json"));
        let good = call["responses"].as_object().unwrap().keys().filter(|it| it.starts_with('2'));
        contents.extend(good.map(|it| format!("{at}/responses/{it}/content/application~1json")));
    }
    let problems = told["components"]["responses"].as_object().unwrap().keys();
    contents.extend(problems.map(|it| format!("/components/responses/{it}/content/application~1problem+json")));
    let mut held = 0;
    for place in contents {
        let Some(content) = told.pointer(&place) else { continue };
        let example = &content["example"];
        assert!(!example.is_null(), "{place} has no example");
        let found: Vec<_> =
            validator(&told, &format!("{place}/schema")).iter_errors(example).map(|it| it.to_string()).collect();
        assert!(found.is_empty(), "{place}: {found:#?}");
        held += 1;
    }
    assert!(held > 60, "{held}");
}

#[test]
fn every_code_occurs() {
    let told = described();
    let schemas = &told["components"]["schemas"];
    let has = |name: &str, code: &str| schemas[name]["enum"].as_array().unwrap().contains(&json!(code));
    let problems = DenialCode::ALL.iter().map(|it| it.as_str());
    let problems = problems.chain(JsonCode::ALL.iter().map(|it| it.as_str()));
    let problems = problems.chain(InterruptRejected::ALL.iter().map(|it| it.code()));
    for code in problems.chain(IdempotencyError::ALL.iter().map(|it| it.code())) {
        assert!(has("ProblemCode", code), "{code}");
    }
    for code in RejectCode::ALL.iter().map(|it| it.as_str()) {
        assert!(has("FieldErrorCode", code), "{code}");
    }
    let denied = &told["components"]["responses"]["Denied"];
    let codes = &denied["content"]["application/problem+json"]["schema"]["allOf"][1]["properties"]["code"]["enum"];
    assert_eq!(*codes, DenialCode::ALL.iter().map(|it| json!(it.as_str())).collect::<Value>());
}

#[test]
fn every_reference_leads_somewhere() {
    let told = described();
    let mut open = vec![&told];
    let mut seen = BTreeMap::new();
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(to)) = members.get("$ref") {
                    let place = to.strip_prefix('#').unwrap_or_else(|| panic!("{to}"));
                    seen.insert(to.clone(), told.pointer(place).is_some());
                }
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    let lost: Vec<_> = seen.iter().filter(|(_, there)| !**there).collect();
    assert!(lost.is_empty() && seen.len() > 50, "{lost:?}");
}
