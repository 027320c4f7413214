use super::*;
use crate::domain::chain::hash::Digest;
use crate::domain::chain::jws::{self, Typ};
use crate::domain::episode::artefacts::{PAUSES_TOLD_MAX, Timeline};
use crate::domain::episode::record::{EVENTS_MAX, Record};
use crate::domain::episode::samples::{event, folder, happened, paused};
use crate::domain::id::ThreadId;
use crate::domain::json::canonical::canonical;
use crate::domain::keys::{KeyUse, Keys};
use crate::domain::time::Timestamp;

fn codes(folder: &Folder) -> Vec<&'static str> {
    let (_, report) = verify(folder, Signature::Unchecked);
    report.findings.iter().map(|it| it.code.as_str()).collect()
}

fn bytes<'f>(folder: &'f mut Folder, file: &str) -> &'f mut Vec<u8> {
    let (_, content) = folder.entries.iter_mut().find(|it| it.0 == file).unwrap();
    let Content::Bytes(bytes) = content else { panic!("it is no file") };
    bytes
}

/// Changes a manifest or a state as JSON.
fn edit(folder: &mut Folder, file: &str, change: impl FnOnce(&mut Value)) {
    let bytes = bytes(folder, file);
    let mut value: Value = serde_json::from_slice(bytes).unwrap();
    change(&mut value);
    *bytes = (canonical(&value) + "\n").into_bytes();
}

/// Makes the manifest fit the files, as somebody would who edits both.
fn covered_up(folder: &mut Folder) {
    let now: Vec<(String, Vec<u8>)> = folder
        .entries
        .iter()
        .filter_map(|(name, content)| match content {
            Content::Bytes(bytes) => Some((name.clone(), bytes.clone())),
            _ => None,
        })
        .collect();
    edit(folder, "manifest.json", |manifest| {
        for entry in manifest["files"].as_array_mut().unwrap() {
            let (_, bytes) = now.iter().find(|it| entry["name"] == it.0.as_str()).unwrap();
            entry["sha256"] = Digest::of_file(bytes).to_string().into();
            entry["size_bytes"] = bytes.len().into();
        }
    });
}

#[test]
fn what_we_write_verifies() {
    for status in ["ok", "error", "vetoed", "aborted", "partial"] {
        let (_, report) = verify(&folder(happened(status)), Signature::Unchecked);
        assert_eq!(report.verdict(), Verdict::Verified, "{report:?}");
        assert_eq!(report.notes.iter().map(|it| it.code).collect::<Vec<_>>(), [Note::NotSigned]);
    }
}

#[test]
fn a_run_that_waits_has_no_manifest_so_nothing_can_be_told() {
    let (_, report) = verify(&folder(paused()), Signature::Unchecked);
    assert!(report.findings.is_empty(), "{report:?}");
    assert_eq!(report.verdict(), Verdict::CouldNotTell);
}

/// The files of a folder with what each holds.
fn files(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let bytes = |(name, content): &(String, Content)| match content {
        Content::Bytes(bytes) => (name.clone(), bytes.clone()),
        _ => panic!("ours are files"),
    };
    folder.entries.iter().map(bytes).collect()
}

/// One bit of every byte, another one each time.
fn flipped(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len()).map(|place| {
        let mut flipped = bytes.to_vec();
        flipped[place] ^= 1 << (place % 8);
        flipped
    })
}

#[test]
fn every_flipped_byte_of_a_file_is_found() {
    let good = folder(happened("ok"));
    for (name, content) in files(&good).into_iter().filter(|it| it.0 != "manifest.json") {
        for bad in flipped(&content).step_by(5) {
            let mut folder = good.clone();
            *bytes(&mut folder, &name) = bad;
            assert!(codes(&folder).contains(&"hash"), "{name}");
        }
    }
}

fn keys() -> Keys {
    let now = Timestamp::from_millis(1_795_225_000_000);
    Keys::generate("https://a.example", now, &mut crate::random::fill).unwrap()
}

/// The folder of a finished run, signed.
fn signed(keys: &Keys) -> Folder {
    let timeline = Timeline::of(happened("ok"));
    let run = ThreadId::try_from("order-17").unwrap();
    let sign = |it| manifest::signed(it, &run, keys.signing(KeyUse::Chain), (keys.issuer(), 1_795_225_000));
    let mut folder = folder(happened("ok"));
    *bytes(&mut folder, "manifest.json") = timeline.manifest(sign).unwrap();
    folder
}

fn codes_by(folder: &Folder, keys: &Keys) -> Vec<&'static str> {
    let (_, report) = verify(folder, Signature::By(keys.trusted()));
    report.findings.iter().map(|it| it.code.as_str()).collect()
}

#[test]
fn a_signed_manifest_says_everything_in_it_and_nobody_else_can_say_it() {
    let keys = keys();
    let good = signed(&keys);
    assert_eq!(codes_by(&good, &keys), [""; 0]);
    assert_eq!(codes(&good), [""; 0], "a signature that is not asked for is in nobody's way");
    let content = bytes(&mut good.clone(), "manifest.json").clone();
    for bad in flipped(&content) {
        let mut folder = good.clone();
        // A line feed that became another blank says nothing else.
        let blank = bad.last() != content.last();
        *bytes(&mut folder, "manifest.json") = bad;
        assert!(blank || !codes_by(&folder, &keys).is_empty());
    }
    assert_eq!(codes_by(&folder(happened("ok")), &keys), ["unsigned"]);
    let others = self::keys();
    assert_eq!(codes_by(&good, &others), ["signature"]);
    let mut moved = good.clone();
    edit(&mut moved, "manifest.json", |it| it["created_at"] = "2026-11-22T09:00:00.000Z".into());
    assert_eq!(codes_by(&moved, &keys), ["signature"]);
}

#[test]
fn a_key_that_is_revoked_signs_no_manifest_and_a_retired_one_did() {
    let keys = keys();
    let (good, kid) = (signed(&keys), keys.signing(KeyUse::Chain).kid().to_owned());
    let now = Timestamp::from_millis(1_795_225_000_000);
    let retired = keys.rotate(KeyUse::Chain, now, &mut crate::random::fill).unwrap();
    assert_eq!(codes_by(&good, &retired), [""; 0]);
    let revoked = retired.revoke(&kid, now, &mut crate::random::fill).unwrap();
    assert_eq!(codes_by(&good, &revoked), ["signature"]);
}

#[test]
fn no_other_token_of_the_gateway_signs_a_manifest() {
    let keys = keys();
    let mut other = signed(&keys);
    edit(&mut other, "manifest.json", |it| {
        let read = jws::read::<manifest::Claims>(it["signer"]["jws"].as_str().unwrap(), Typ::Episode).unwrap();
        let jws = jws::sign(keys.signing(KeyUse::Chain), Typ::Entry, read.claims_unverified());
        it["signer"]["jws"] = jws.into();
    });
    assert_eq!(codes_by(&other, &keys), ["signature"]);
}

#[test]
fn what_is_cut_off_dropped_or_added_is_found() {
    let good = folder(happened("ok"));
    for file in ["events.jsonl", "learn.jsonl", "state.json", "summary.json", "final.json"] {
        let mut cut = good.clone();
        let bytes = bytes(&mut cut, file);
        bytes.truncate(bytes.len() / 2);
        let found = codes(&cut);
        assert!(found.contains(&"size") && found.contains(&"hash"), "{file}: {found:?}");
        let mut dropped = good.clone();
        dropped.entries.retain(|it| it.0 != file);
        assert!(codes(&dropped).contains(&"missing"), "{file}");
    }
    let mut added = good.clone();
    added.entries.push(("more.json".to_owned(), Content::Bytes(b"{}".to_vec())));
    assert_eq!(codes(&added), ["unexpected"]);
    let mut bare = good.clone();
    bare.entries.retain(|it| it.0 != "manifest.json");
    assert_eq!(codes(&bare), ["manifest_missing"]);
    assert_eq!(codes(&Folder::default()), ["manifest_missing"]);
}

#[test]
fn names_that_lead_elsewhere_are_found_wherever_they_stand() {
    let good = folder(happened("ok"));
    for name in ["../state.json", "/etc/passwd", "a/b", "..", ".", ".hidden", "a\\b", "a\nb", "ünder", "", "a.", "C:x"]
    {
        let mut named = good.clone();
        edit(&mut named, "manifest.json", |it| {
            let entry = json!({"name": name, "sha256": Digest::of_file(b""), "size_bytes": 0, "kind": "other"});
            it["files"].as_array_mut().unwrap().push(entry);
        });
        assert!(codes(&named).contains(&"name"), "{name:?}: {:?}", codes(&named));
        let mut there = good.clone();
        there.entries.push((name.to_owned(), Content::Bytes(Vec::new())));
        assert!(codes(&there).contains(&"name"), "{name:?}");
    }
}

#[test]
fn two_names_for_one_file_are_found() {
    let good = folder(happened("ok"));
    for name in ["state.json", "State.json", "MANIFEST.json"] {
        let mut twice = good.clone();
        twice.entries.push((name.to_owned(), Content::Bytes(b"{}".to_vec())));
        assert!(codes(&twice).contains(&"name_twice"), "{name}");
        let mut named = good.clone();
        edit(&mut named, "manifest.json", |it| {
            let mut entry = it["files"][0].clone();
            entry["name"] = name.into();
            it["files"].as_array_mut().unwrap().push(entry);
        });
        assert!(codes(&named).contains(&"name_twice"), "{name}");
    }
}

#[test]
fn what_is_no_plain_file_is_found_and_not_read() {
    for (content, code) in [(Content::NotAFile, "not_a_file"), (Content::TooLong, "too_long")] {
        let mut linked = folder(happened("ok"));
        linked.entries.iter_mut().find(|it| it.0 == "state.json").unwrap().1 = content;
        assert_eq!(codes(&linked), [code]);
    }
}

#[test]
fn a_file_under_another_kind_is_found() {
    let mut wrong = folder(happened("ok"));
    edit(&mut wrong, "manifest.json", |it| it["files"][0]["kind"] = "summary".into());
    assert_eq!(codes(&wrong), ["kind"]);
    let mut itself = folder(happened("ok"));
    edit(&mut itself, "manifest.json", |it| it["files"][0]["name"] = "manifest.json".into());
    assert!(codes(&itself).contains(&"kind"));
    let mut rightly = folder(happened("ok"));
    edit(&mut rightly, "manifest.json", |it| {
        let entry =
            json!({"name": "manifest.json", "kind": "manifest", "sha256": Digest::of_file(b""), "size_bytes": 0});
        it["files"].as_array_mut().unwrap().push(entry);
    });
    assert!(codes(&rightly).contains(&"kind"), "a manifest cannot have its own hash, whatever it calls itself");
}

#[test]
fn a_manifest_that_leaves_out_what_every_run_has_is_found() {
    for file in ["events.jsonl", "state.json"] {
        let mut less = folder(happened("ok"));
        edit(&mut less, "manifest.json", |it| it["files"].as_array_mut().unwrap().retain(|it| it["name"] != file));
        less.entries.retain(|it| it.0 != file);
        assert!(codes(&less).contains(&"missing"), "{file}");
    }
    let mut other = folder(happened("ok"));
    edit(&mut other, "manifest.json", |it| it["schema_version"] = "manifest/2.0".into());
    assert_eq!(codes(&other), ["manifest_malformed"]);
}

/// The folder with other events, everything else made to fit.
fn with_lines(change: impl FnOnce(&mut Vec<String>)) -> Folder {
    let mut folder = folder(happened("ok"));
    let events = bytes(&mut folder, "events.jsonl");
    let mut lines: Vec<String> = std::str::from_utf8(events).unwrap().lines().map(str::to_owned).collect();
    change(&mut lines);
    *events = lines.iter().map(|it| it.to_owned() + "\n").collect::<String>().into_bytes();
    covered_up(&mut folder);
    folder
}

fn changed(line: &mut String, change: impl FnOnce(&mut Record)) {
    let mut record: Record = serde_json::from_str(line).unwrap();
    change(&mut record);
    *line = record.line();
}

#[test]
fn events_that_do_not_hang_together_are_found_though_the_manifest_fits() {
    let removed = with_lines(|it| drop(it.remove(3)));
    assert!(codes(&removed).contains(&"event_previous"));
    let swapped = with_lines(|it| it.swap(3, 4));
    assert!(codes(&swapped).contains(&"event_previous"));
    let unlinked = with_lines(|it| changed(&mut it[3], |it| it.previous = None));
    assert!(codes(&unlinked).contains(&"event_previous"));
    let beheaded = with_lines(|it| drop(it.remove(0)));
    assert!(codes(&beheaded).contains(&"event_start"));
    let twice = with_lines(|it| changed(&mut it[3], |it| it.id = Some("e1".to_owned())));
    assert!(codes(&twice).contains(&"event_id"));
    let uncaused = with_lines(|it| changed(&mut it[3], |it| it.caused_by = Some("e5".to_owned())));
    assert!(codes(&uncaused).contains(&"event_cause"));
    let other = with_lines(|it| changed(&mut it[3], |it| it.episode_id = "order-18".to_owned()));
    assert!(codes(&other).contains(&"episode"));
    for bad in ["", "{}", "[]", "{\"phase\":1}"] {
        assert!(codes(&with_lines(|it| it[3] = bad.to_owned())).contains(&"event_malformed"), "{bad:?}");
    }
    let undated = with_lines(|it| changed(&mut it[3], |it| it.timestamp = "yesterday".to_owned()));
    assert!(codes(&undated).contains(&"event_malformed"));
    let mut open = folder(happened("ok"));
    bytes(&mut open, "events.jsonl").pop();
    covered_up(&mut open);
    assert_eq!(codes(&open), ["events_truncated"]);
}

#[test]
fn a_state_that_does_not_follow_is_found_though_the_manifest_fits() {
    let stated = |change: fn(&mut Value)| {
        let mut folder = folder(happened("ok"));
        edit(&mut folder, "state.json", change);
        covered_up(&mut folder);
        codes(&folder)
    };
    assert_eq!(
        stated(|it| it["plan"]["steps"][1]["status"] = "failed".into()),
        ["projection_status", "projection_state"]
    );
    assert_eq!(stated(|it| it["plan"]["steps"][1]["kind"] = "verify".into()), ["projection_plan", "projection_state"]);
    assert_eq!(stated(|it| it["plan"]["updated_at"] = "2026-11-22T08:00:00.000Z".into())[0], "projection_plan");
    assert_eq!(stated(|it| it["outcomes"]["actions"][0]["tool"] = "other".into())[0], "projection_outcomes");
    assert_eq!(stated(|it| drop(it["links"].as_object_mut().unwrap().remove("summary")))[0], "projection_links");
    assert!(
        stated(|it| it["episode"]["started_at"] = "2026-11-22T07:00:00.000Z".into()).contains(&"projection_started_at")
    );
    assert!(stated(|it| it["episode"]["id"] = "order-18".into()).contains(&"episode"));
    assert_eq!(stated(|it| it["beliefs"] = json!([])), ["projection_state"]);
    assert_eq!(stated(|it| it["version"] = "2.0".into()), ["state_malformed"]);
    assert_eq!(stated(|it| it["outcomes"]["status"] = "fine".into()), ["state_malformed"]);
    assert_eq!(stated(|it| it["plan"]["steps"][0]["kind"] = "ponder".into()), ["state_malformed"]);
}

#[test]
fn what_else_follows_from_the_events_is_made_again() {
    for file in ["summary.json", "final.json", "learn.jsonl"] {
        let mut other = folder(happened("ok"));
        bytes(&mut other, file).extend_from_slice(b" ");
        covered_up(&mut other);
        assert_eq!(codes(&other), ["projection_derived"], "{file}");
    }
}

#[test]
fn a_run_that_is_not_over_may_not_link_to_what_only_a_finished_one_has() {
    let mut early = folder(paused());
    edit(&mut early, "state.json", |it| it["links"]["manifest"] = "manifest.json".into());
    assert!(codes(&early).contains(&"projection_links"));
}

#[test]
fn a_run_of_another_system_is_told_what_it_has_no_evidence_for() {
    let mut lines: Vec<Record> = vec![
        event(1, "start", json!({"task": "x"})),
        event(2, "plan", json!({"steps": ["detect:a", "act:b"]})),
        event(3, "act", json!({"step_id": "step-1", "step_status": "done"})),
    ];
    lines[2].caused_by = Some("e2".to_owned());
    let mut state = super::super::state::state(&lines);
    state["plan"]["steps"][1]["status"] = "done".into();
    let events: String = lines.iter().map(|it| it.line() + "\n").collect();
    let entries = [("events.jsonl", events.into_bytes()), ("state.json", canonical(&state).into_bytes())];
    let entries = entries.map(|(name, bytes)| (name.to_owned(), Content::Bytes(bytes))).to_vec();
    let (_, report) = verify(&Folder { entries }, Signature::Unchecked);
    assert!(report.findings.is_empty(), "{report:?}");
    let notes: Vec<_> = report.notes.iter().map(|it| (it.code, it.about.as_deref())).collect();
    let expected = [
        (Note::NotFinished, None),
        (Note::NoEventLinks, None),
        (Note::NoStepStatus, Some("step-2")),
        (Note::NoProjection, None),
    ];
    assert_eq!(notes, expected);
}

/// A run of so many events, held every second time.
fn held_often(events: usize) -> Vec<Record> {
    let mut happened = vec![event(0, "start", json!({"task": "x"}))];
    let held = |at: usize| if at % 2 == 1 { "transition.held" } else { "transition.denied" };
    happened.extend((1..events).map(|at| Record {
        timestamp: "2026-11-22T08:00:00.000Z".to_owned(),
        ..crate::domain::episode::samples::gateway(at, held(at))
    }));
    happened
}

#[test]
fn a_run_of_as_many_events_as_are_told_is_read_again() {
    let most = usize::try_from(crate::domain::episode::told::TOLD_MAX).unwrap();
    let mut happened = held_often(most - 1);
    happened.push(Record {
        timestamp: "2026-11-22T09:00:00.000Z".to_owned(),
        ..event(most, "terminate", json!({"status": "ok"}))
    });
    assert_eq!(happened.len(), most);
    let folder = folder(happened);
    let lines = folder.bytes(Artefact::Events).unwrap();
    assert!(lines.len() < 32 * 1024 * 1024, "room is left for what agents say: {}", lines.len());
    let (run, report) = verify(&folder, Signature::Unchecked);
    assert_eq!(report.verdict(), Verdict::Verified, "{:?}", &report.findings);
    assert_eq!(run.lines.iter().filter(|it| it.record.is_projection()).count(), PAUSES_TOLD_MAX + 1);
}

#[test]
fn more_events_than_any_run_has_are_found() {
    let line = event(1, "observe", json!({})).line() + "\n";
    let (lines, found) = record::read(line.repeat(EVENTS_MAX).as_bytes(), "events.jsonl");
    assert_eq!((lines.len(), found.len()), (EVENTS_MAX, 0));
    let (lines, found) = record::read(line.repeat(EVENTS_MAX + 2).as_bytes(), "events.jsonl");
    assert_eq!((lines.len(), found[0].code, found.len()), (EVENTS_MAX, Code::EventsTooMany, 1));
}

#[test]
fn long_outcomes_that_are_others_are_found_by_their_hash() {
    let act = |at: usize| event(at, "act", json!({"tool": "t", "outcome": "ok", "input_excerpt": "x".repeat(1_000)}));
    let mut long = vec![event(0, "start", json!({"task": "x"}))];
    long.extend((1..100).map(act));
    long.push(crate::domain::episode::samples::gateway(100, "transition.held"));
    let mut waiting = folder(long);
    assert_eq!(codes(&waiting), [""; 0]);
    edit(&mut waiting, "state.json", |it| it["outcomes"]["actions"][0]["tool"] = "other".into());
    assert!(codes(&waiting).contains(&"projection_outcomes"));
}

#[test]
fn whatever_a_plan_or_a_state_has_in_it_is_held_against_the_events() {
    let stated = |change: &dyn Fn(&mut Value)| {
        let mut folder = folder(happened("ok"));
        edit(&mut folder, "state.json", change);
        covered_up(&mut folder);
        codes(&folder)
    };
    for (place, value) in [
        ("/plan/source", json!("other")),
        ("/plan/rationale", json!("other")),
        ("/plan/updated_at", json!("2026-11-22T08:00:00.000Z")),
        ("/plan/steps/0/id", json!("other")),
        ("/plan/steps/0/kind", json!("verify")),
        ("/plan/steps/0/description", json!("other")),
    ] {
        let found = stated(&|it| *it.pointer_mut(place).unwrap() = value.clone());
        assert!(found.contains(&"projection_plan"), "{place}: {found:?}");
    }
    assert!(stated(&|it| drop(it["plan"]["steps"].as_array_mut().unwrap().pop())).contains(&"projection_plan"));
    for (place, value) in [
        ("/version", json!("2.0")),
        ("/state_schema_version", json!("2.0.0")),
        ("/memory", json!([])),
        ("/goal", json!("x")),
        ("/episode/id", json!(7)),
        ("/beliefs", json!({})),
        ("/outcomes/status", json!("fine")),
        ("/plan/steps", json!({})),
        ("/plan/steps/0/id", json!(7)),
        ("/plan/steps/0/description", json!(7)),
        ("/plan/steps/0/kind", json!("ponder")),
        ("/plan/steps/0/status", json!("fine")),
    ] {
        let found = stated(&|it| *it.pointer_mut(place).unwrap() = value.clone());
        assert_eq!(found, ["state_malformed"], "{place}");
    }
    // A state that is none is held against nothing: of one whose projection is another system's, only what it says.
    let foreign = |change: &dyn Fn(&mut Value)| {
        let mut folder = with_lines(|it| {
            let last = it.len() - 1;
            changed(&mut it[last], |it| drop(it.payload.remove("projector")));
        });
        edit(&mut folder, "state.json", change);
        covered_up(&mut folder);
        codes(&folder)
    };
    assert_eq!(foreign(&|_| {}), [""; 0]);
    assert_eq!(foreign(&|it| it["links"]["learn"] = "other.jsonl".into()), ["projection_links"]);
    assert_eq!(foreign(&|it| it["links"]["more"] = "more.json".into()), ["projection_links", "projection_links"]);
    assert_eq!(foreign(&|it| it["outcomes"]["summary"] = "other".into()), ["projection_outcomes"]);
    assert_eq!(foreign(&|it| it["plan"]["steps"][1]["status"] = "failed".into()), ["projection_status"]);
    assert_eq!(
        foreign(&|it| it["episode"]["started_at"] = "2026-11-22T07:00:00.000Z".into()),
        ["projection_started_at"]
    );
}

#[test]
fn a_finished_run_that_links_to_less_than_it_has_is_found_though_its_last_projection_says_so() {
    let less = |links: &mut Value| drop(links.as_object_mut().unwrap().remove("summary"));
    let mut folder = with_lines(|it| {
        let last = it.len() - 1;
        changed(&mut it[last], |it| {
            drop(it.payload.remove("projector"));
            less(it.payload.get_mut("links").unwrap());
        });
    });
    edit(&mut folder, "state.json", |it| less(&mut it["links"]));
    covered_up(&mut folder);
    assert_eq!(codes(&folder), ["projection_links"]);
}

#[test]
fn names_of_every_odd_form_are_found_each_for_itself() {
    let long = "a".repeat(129);
    for name in [long.as_str(), "a.", ".a", "-a", "a b", "a/b"] {
        let mut there = folder(happened("ok"));
        there.entries.push((name.to_owned(), Content::Bytes(Vec::new())));
        assert!(codes(&there).contains(&"name"), "{name:?}");
    }
    let mut fits = folder(happened("ok"));
    fits.entries.push(("a".repeat(128), Content::Bytes(Vec::new())));
    assert_eq!(codes(&fits), ["unexpected"]);
}

#[test]
fn a_manifest_of_more_files_than_any_run_has_is_none() {
    let with = |count: usize| {
        let mut many = folder(happened("ok"));
        edit(&mut many, "manifest.json", |it| {
            let entry = |at: usize| json!({"name": format!("f{at}"), "sha256": Digest::of_file(b""), "size_bytes": 0, "kind": "o"});
            it["files"].as_array_mut().unwrap().extend((0..count).map(entry));
        });
        codes(&many)
    };
    assert!(with(manifest::FILES_MAX - 5).iter().all(|it| *it == "missing"));
    assert_eq!(with(manifest::FILES_MAX - 4), ["manifest_malformed"]);
}

#[test]
fn each_claim_of_a_signature_is_asked_for_itself() {
    let keys = keys();
    let with = |change: &dyn Fn(&mut Value), kid: Option<&str>| {
        let mut folder = signed(&keys);
        edit(&mut folder, "manifest.json", |it| {
            let read = jws::read::<manifest::Claims>(it["signer"]["jws"].as_str().unwrap(), Typ::Episode).unwrap();
            let mut claims = json!(read.claims_unverified());
            change(&mut claims);
            it["signer"]["jws"] = jws::sign(keys.signing(KeyUse::Chain), Typ::Episode, &claims).into();
            if let Some(kid) = kid {
                it["signer"]["kid"] = kid.into();
            }
        });
        codes_by(&folder, &keys)
    };
    assert_eq!(with(&|_| {}, None), [""; 0]);
    assert_eq!(with(&|it| it["episode"] = "order-18".into(), None), ["signature"]);
    assert_eq!(with(&|it| it["manifest"] = json!(Digest::of_file(b"")), None), ["signature"]);
    assert_eq!(with(&|it| it["iss"] = "https://b.example".into(), None), ["signature"]);
    assert_eq!(with(&|_| {}, Some("another")), ["signature"], "the manifest names the key that signed");
    // Keys that name no issuer still do not believe one that is empty.
    let mut nameless = keys.trusted().jwks();
    drop(nameless.as_object_mut().unwrap().remove("issuer"));
    let nameless = PublicKeys::from_jwks(&nameless).unwrap();
    let mut empty = signed(&keys);
    edit(&mut empty, "manifest.json", |it| {
        let read = jws::read::<manifest::Claims>(it["signer"]["jws"].as_str().unwrap(), Typ::Episode).unwrap();
        let claims = manifest::Claims { iss: String::new(), ..read.claims_unverified().clone() };
        it["signer"]["jws"] = jws::sign(keys.signing(KeyUse::Chain), Typ::Episode, &claims).into();
    });
    let (_, report) = verify(&empty, Signature::By(&nameless));
    assert_eq!(report.findings.iter().map(|it| it.code).collect::<Vec<_>>(), [Code::Signature]);
}

#[test]
fn a_folder_with_everything_wrong_is_told_a_bounded_number_of_things() {
    let mut folder = folder(happened("ok"));
    for at in 0..2 * FINDINGS_MAX {
        folder.entries.push((format!("more-{at}"), Content::NotAFile));
    }
    let (_, report) = verify(&folder, Signature::Unchecked);
    assert_eq!(report.findings.len(), FINDINGS_MAX);
    assert!(report.omitted > 0);
}

#[test]
fn codes_are_told_apart() {
    let all = || Code::ALL.iter().map(|it| it.as_str()).chain(Note::ALL.iter().map(|it| it.as_str()));
    let apart: std::collections::BTreeSet<_> = all().collect();
    assert_eq!(apart.len(), all().count());
}
