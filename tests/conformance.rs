//! Observed behaviour of other systems, case by case. Each difference in this system has a reason.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a test reports, and one that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use countersign_domain::guard::{StateGuard, Violations};
use countersign_domain::json::parse::{DEPTH_CEILING, ParseLimits, parse};

use countersign::state_file::{AllowedRoots, PreviousContent, StateCommit, StateFileError, commit};
use serde_json::{Map, Value, json};
use unicode_normalization::UnicodeNormalization as _;

#[derive(Debug, Default)]
struct CaseEnd {
    /// Nothing, or the code with which it was refused.
    refused: Option<String>,
    /// The normalised state, and the one before.
    states: [Option<String>; 2],
    /// Path, length and mode of the file, as the commit reports them.
    committed: Option<(String, u64, String)>,
    files: BTreeMap<String, String>,
}

const CONFIG: &str = "configuration refused";

fn refused(code: &str) -> CaseEnd {
    CaseEnd { refused: Some(code.to_owned()), ..CaseEnd::default() }
}

fn blocked(found: &Violations) -> CaseEnd {
    refused(found.list.first().unwrap().alias.as_str())
}

fn passed(states: [Option<String>; 2]) -> CaseEnd {
    CaseEnd { states, ..CaseEnd::default() }
}

/// A state that is no text at all cannot be handed to the guard; none is the nearest there is.
fn text(case: &Value, name: &str) -> String {
    case[name].as_str().unwrap_or_default().to_owned()
}

fn ours(case: &Value) -> CaseEnd {
    let rules = case["rules"].as_str();
    let Ok(guard) = StateGuard::new(text(case, "schema").as_bytes(), rules.map(str::as_bytes)) else {
        return refused(CONFIG);
    };
    let (current, proposed) = (text(case, "current"), text(case, "proposed"));
    match case["op"].as_str().unwrap() {
        "construct" => CaseEnd::default(),
        "payload" => match guard.check(proposed.as_bytes()) {
            Ok(state) => passed([Some(state.text), None]),
            Err(found) => blocked(&found),
        },
        "transition" => match guard.transition(current.as_bytes(), proposed.as_bytes()) {
            Ok(allowed) => passed([Some(allowed.proposed.text), Some(allowed.previous.text)]),
            Err(found) => blocked(&found),
        },
        "commit" => commits(case, &guard),
        other => unreachable!("no such operation: {other}"),
    }
}

/// Commits in a folder that is set up as the case says.
fn commits(case: &Value, guard: &StateGuard) -> CaseEnd {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    let place = |text: &str| text.replace("{T}", top.to_str().unwrap());
    for step in case["fs"].as_array().unwrap() {
        let (kind, rest) = step.as_str().unwrap().split_once(':').unwrap();
        match kind {
            "dir" => fs::create_dir_all(top.join(rest)).unwrap(),
            "file" => rest.split_once(':').map(|(path, text)| fs::write(top.join(path), text)).unwrap().unwrap(),
            "link" => rest.split_once("->").map(|(at, to)| symlink(place(to), top.join(at))).unwrap().unwrap(),
            other => unreachable!("no such step: {other}"),
        }
    }
    let before = files(&top);
    // A root that is no text is written out: it is no absolute path either way.
    let roots = case["roots"].as_array().unwrap().iter();
    let roots = roots.map(|it| PathBuf::from(it.as_str().map_or_else(|| it.to_string(), place)));
    let Ok(roots) = AllowedRoots::new(roots) else { return refused(CONFIG) };
    let (target, current, proposed) = (place(&text(case, "target")), text(case, "current"), text(case, "proposed"));
    // AgentStateGuard has no parameter for the expected content. The caller provides it: the case wrote that content.
    let there = Path::new(&target).exists();
    let current =
        if there { PreviousContent::Held(current.as_bytes()) } else { PreviousContent::Elsewhere(current.as_bytes()) };
    let request = StateCommit { target: Path::new(&target), before: current, proposed: proposed.as_bytes() };
    let mut ended = match commit(guard, &roots, &request) {
        Ok(it) => {
            let mode = format!("0o{:o}", fs::metadata(&it.path).unwrap().mode() & 0o7777);
            let path = it.path.to_str().unwrap().replace(top.to_str().unwrap(), "{T}");
            let committed = Some((path, it.bytes as u64, mode));
            CaseEnd { committed, ..passed([Some(it.state.text), it.previous.map(|it| it.text)]) }
        }
        Err(StateFileError::Blocked { found, .. }) => blocked(&found),
        Err(unsure @ StateFileError::Unsynced { .. }) => unreachable!("{unsure}"),
    };
    ended.files = files(&top).into_iter().filter(|(path, text)| before.get(path) != Some(text)).collect();
    assert!(before.keys().all(|path| top.join(path).exists()), "something was removed");
    assert!(ended.refused.is_none() || ended.files.is_empty(), "refused, and yet changed: {ended:?}");
    ended
}

/// Returns each file with its text. Everything that is neither a file nor a folder is skipped.
fn files(top: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![top.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (kind, path) = (entry.file_type().unwrap(), entry.path());
            let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                found.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    found
}

fn theirs(case: &Value) -> CaseEnd {
    let expect = &case["expect"];
    let texts = ["normalized_state_json", "normalized_previous_state_json"];
    let files = expect["files_changed"].as_object().cloned().unwrap_or_default();
    let committed = expect["committed_path"].as_str().map(|path| {
        let mode = expect["mode"].as_str().unwrap();
        (path.to_owned(), expect["committed_bytes"].as_u64().unwrap(), mode.to_owned())
    });
    let code = expect["error_code"].as_str().map(str::to_owned);
    let raised = if expect["constructor_raises"].is_string() { CONFIG } else { "raised" };
    let verified = expect["verified"] == true || expect["constructed"] == true;
    CaseEnd {
        refused: if verified { None } else { Some(code.unwrap_or_else(|| raised.to_owned())) },
        states: texts.map(|it| case[it].as_str().map(str::to_owned)),
        committed,
        files: files.into_iter().map(|(path, text)| (path, text.as_str().unwrap().to_owned())).collect(),
    }
}

#[derive(PartialEq, Eq, Debug)]
enum ConformanceResult {
    /// In everything, but for how a text escapes and a number is spelt.
    Same,
    /// In verdict and code; AgentStateGuard changed the text to NFC, which is another text.
    SameButNfc,
    Different,
}

fn compare(theirs: &CaseEnd, ours: &CaseEnd) -> ConformanceResult {
    if theirs.refused != ours.refused || theirs.committed != ours.committed || theirs.files != ours.files {
        return ConformanceResult::Different;
    }
    if ours.refused.is_some() {
        return ConformanceResult::Same;
    }
    let read = |ended: &CaseEnd| ended.states.each_ref().map(|it| it.as_deref().map(value));
    let (theirs, ours) = (read(theirs), read(ours));
    match theirs == ours {
        true => ConformanceResult::Same,
        false if theirs == ours.map(|it| it.map(nfc)) => ConformanceResult::SameButNfc,
        false => ConformanceResult::Different,
    }
}

fn value(text: &str) -> Value {
    parse(text.as_bytes(), &ParseLimits { depth_max: DEPTH_CEILING, ..ParseLimits::default() }).unwrap()
}

fn nfc(value: Value) -> Value {
    match value {
        Value::String(text) => json!(text.nfc().collect::<String>()),
        Value::Array(items) => items.into_iter().map(nfc).collect(),
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name.nfc().collect(), nfc(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// A divergence blocks what passed, the making of a guard included, answers with a code what raised, or is about how a
/// number is written.
fn may_diverge(reason: &str, theirs: &CaseEnd, ours: &CaseEnd) -> bool {
    let Some(code) = &ours.refused else { return reason.starts_with("Number") };
    match theirs.refused.as_deref() {
        None | Some("raised") => true,
        // That guard was made and refused a state; ours is not made.
        Some(theirs) => (code == CONFIG && theirs != CONFIG) || reason.starts_with("Number"),
    }
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
    assert!(named.values().all(|it| !it.is_empty()), "a case is listed without a reason");
    named
}

#[test]
fn the_state_guard_agrees_with_agent_state_guard_but_for_what_is_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let cases = fs::read_to_string(folder.join("agent_state_guard.jsonl")).unwrap();
    let list = fs::read_to_string(folder.join("agent_state_guard.divergences")).unwrap();
    let mut listed = divergences(&list);
    let (mut agreed, mut kept, mut by_reason, mut wrong) = (0, 0, BTreeMap::<_, usize>::new(), String::new());
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["name"].as_str().unwrap();
        let (theirs, ours) = (theirs(&case), ours(&case));
        let compared = compare(&theirs, &ours);
        match (listed.remove(name), &compared) {
            (None, ConformanceResult::Different) => {
                writeln!(wrong, "unexplained {name}: {theirs:?}, {ours:?}").unwrap()
            }
            (None, _) => {
                agreed += 1;
                kept += usize::from(compared == ConformanceResult::SameButNfc);
            }
            (Some(reason), ConformanceResult::Different) if may_diverge(reason, &theirs, &ours) => {
                *by_reason.entry(reason).or_insert(0) += 1;
            }
            (Some(_), ConformanceResult::Different) => {
                writeln!(wrong, "neither stricter nor a number {name}: {theirs:?}, {ours:?}").unwrap();
            }
            (Some(_), _) => writeln!(wrong, "listed, but agrees: {name}").unwrap(),
        }
    }
    listed.keys().for_each(|it| writeln!(wrong, "no such case: {it}").unwrap());
    println!("cases: {}", cases.lines().count());
    println!("agreed: {agreed}, of these with text as it was written instead of in NFC: {kept}");
    println!("diverged: {}", by_reason.values().sum::<usize>());
    by_reason.iter().for_each(|(reason, count)| println!("diverged: {count}: {reason}"));
    println!("unexplained: {}", wrong.lines().count());
    assert!(wrong.is_empty(), "{wrong}");
    let page = fs::read_to_string(folder.join("../../docs/specs/state-guard.md")).unwrap().replace('\n', " ");
    let (cases, diverged) = (cases.lines().count(), by_reason.values().sum::<usize>());
    for counted in [
        format!("{cases} outcomes"),
        format!("{agreed} agree"),
        format!("that {kept} of them keep text"),
        format!("{diverged} differ"),
    ] {
        assert!(page.contains(&counted), "docs/specs/state-guard.md does not say: {counted}");
    }
}
