//! What other systems were seen to do, case by case, and where this one differs, each with its reason.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a test reports, and one that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use countersign::domain::guard::{Guard, Violations};
use countersign::domain::json::parse::{DEPTH_CEILING, Limits, parse};
use serde_json::Value;

/// How a case ended: `Ok`, or the code with which it was refused.
type Outcome = Result<(), String>;

const CONFIG: &str = "configuration refused";
const NOT_BUILT: &str = "not built";

/// A state that is no text at all cannot be handed to the guard; none is the nearest there is.
fn text(case: &Value, name: &str) -> String {
    case[name].as_str().unwrap_or_default().to_owned()
}

fn alias(found: &Violations) -> String {
    found.list.first().unwrap().alias.as_str().to_owned()
}

fn ours(case: &Value) -> (Outcome, Option<String>) {
    let rules = case["rules"].as_str();
    let guard = match Guard::new(text(case, "schema").as_bytes(), rules.map(str::as_bytes)) {
        Ok(guard) => guard,
        Err(_) => return (Err(CONFIG.to_owned()), None),
    };
    let (current, proposed) = (text(case, "current"), text(case, "proposed"));
    let judged = match case["op"].as_str().unwrap() {
        "construct" => return (Ok(()), None),
        "payload" => guard.check(proposed.as_bytes()),
        "transition" => guard.transition(current.as_bytes(), proposed.as_bytes()).map(|it| it.proposed),
        "commit" => return (Err(NOT_BUILT.to_owned()), None),
        other => unreachable!("no such operation: {other}"),
    };
    match judged {
        Ok(normal) => (Ok(()), Some(normal.text)),
        Err(found) => (Err(alias(&found)), None),
    }
}

fn theirs(case: &Value) -> Outcome {
    let expect = &case["expect"];
    let passed = expect["verified"] == true || expect["constructed"] == true;
    let code = expect["error_code"].as_str().map(str::to_owned);
    let raised = if expect["constructor_raises"].is_string() { CONFIG } else { "raised" };
    if passed { Ok(()) } else { Err(code.unwrap_or_else(|| raised.to_owned())) }
}

/// Both texts say the same value; how they escape and spell is not compared.
fn same_value(theirs: &Value, ours: Option<&str>) -> bool {
    let limits = Limits { depth_max: DEPTH_CEILING, ..Limits::default() };
    let read = |text: Option<&str>| text.map(|it| parse(it.as_bytes(), &limits).unwrap());
    read(theirs.as_str()) == read(ours)
}

/// Name to reason, from a file with one reason a paragraph and its cases below it.
fn divergences(list: &str) -> BTreeMap<&str, &str> {
    let mut reason = "";
    let mut named = BTreeMap::new();
    for line in list.lines().filter(|it| !it.is_empty()) {
        match line.strip_prefix("# ") {
            Some(text) => reason = text,
            None => assert!(named.insert(line, reason).is_none(), "listed twice: {line}"),
        }
    }
    named
}

#[test]
fn the_state_guard_agrees_with_agent_state_guard_but_for_what_is_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let cases = std::fs::read_to_string(folder.join("agent_state_guard.jsonl")).unwrap();
    let list = std::fs::read_to_string(folder.join("agent_state_guard.divergences")).unwrap();
    let mut listed = divergences(&list);
    let (mut agreed, mut by_reason, mut wrong) = (0, BTreeMap::new(), String::new());
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["name"].as_str().unwrap();
        let (theirs, (ours, text)) = (theirs(&case), ours(&case));
        let normal = text.is_none() || theirs.is_err() || same_value(&case["normalized_state_json"], text.as_deref());
        let reason = listed.remove(name);
        let looser = theirs.is_err() && ours.is_ok();
        match reason {
            None if theirs == ours && normal => agreed += 1,
            None => writeln!(wrong, "unexplained {name}: theirs {theirs:?}, ours {ours:?} {text:?}").unwrap(),
            Some(_) if theirs == ours && normal => writeln!(wrong, "listed, but agrees: {name}").unwrap(),
            Some(reason) if looser && !reason.starts_with("Number spelling") => {
                writeln!(wrong, "looser than what was seen: {name}").unwrap();
            }
            Some(reason) => *by_reason.entry(reason).or_insert(0) += 1,
        }
    }
    listed.keys().for_each(|it| writeln!(wrong, "no such case: {it}").unwrap());
    println!("agreed: {agreed}");
    by_reason.iter().for_each(|(reason, count)| println!("diverged: {count}: {reason}"));
    println!("unexplained: {}", wrong.lines().count());
    assert!(wrong.is_empty(), "{wrong}");
}
