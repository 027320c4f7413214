//! What a run says, and its folder: as we write it, as somebody changed it, and as whatever bytes there are.

use std::sync::LazyLock;

use countersign_domain::chain::hash::Digest;
use countersign_domain::episode::artefacts::Timeline;
use countersign_domain::episode::event_line::{EventRecord, phase};
use countersign_domain::episode::imported::{RunImport, RunSigner, check as checked};
use countersign_domain::episode::verify::{
    FINDINGS_MAX, FileContent, Folder, RunReport, RunVerification, SignatureRequirement, verify,
};
use countersign_domain::episode::{Artefact, manifest};
use countersign_domain::json::canonical::canonical;
use countersign_domain::keys::{KeyUse, Keys};
use countersign_domain::primitives::id::{PrincipalId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use serde_json::{Map, Value};

/// Events of one input: what goes wrong with these goes wrong with more.
const EVENTS_MAX: usize = 40;
/// Places of one input that are changed.
const CHANGES: u64 = 16;

const RUN: &str = "order-17";
/// 2026-11-22, in seconds.
const NOW: i64 = 1_795_305_600;

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let mut next = 0_u64;
    let mut fill = |bytes: &mut [u8]| {
        for byte in bytes {
            next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = next.to_be_bytes()[0];
        }
    };
    Keys::generate("https://a.example", Timestamp::from_millis(NOW * 1000), &mut fill).expect("keys of any bytes")
});

/// Whatever bytes there are: a folder of them is looked at, a run that says them leaves a folder that verifies, and that
/// folder with anything changed does not.
pub fn check(text: &[u8]) {
    looked_at(text);
    let happened = happened(super::parts(text)[0]);
    let timeline = Timeline::of(happened);
    let good = folder(&timeline);
    let report = by_keys(&good);
    let expected = if timeline.is_finished() { RunVerification::Verified } else { RunVerification::CouldNotTell };
    assert_eq!(report.verdict(), expected, "{report:?}");
    if timeline.is_finished() {
        kept(&good);
        changed(&good, text);
    }
}

/// The bytes as files: nothing panics, the same is said each time, and no more than there is room for.
fn looked_at(text: &[u8]) {
    let files = [Artefact::Events, Artefact::State, Artefact::Manifest, Artefact::Summary, Artefact::Learn];
    let parts = super::parts(text);
    let files =
        files.into_iter().zip(&parts).map(|(it, bytes)| (it.file().to_owned(), FileContent::Bytes(bytes.to_vec())));
    let mut folder = Folder { entries: files.collect() };
    let report = by_keys(&folder);
    assert_eq!(by_keys(&folder), report);
    assert!(report.findings.len() <= FINDINGS_MAX);
    assert_ne!(report.verdict(), RunVerification::Verified, "nobody signed it");
    let said = verify(&folder, SignatureRequirement::Unchecked).1.verdict();
    folder.entries.reverse();
    assert_eq!(verify(&folder, SignatureRequirement::Unchecked).1.verdict(), said, "a folder has no order");
    if said == RunVerification::Verified {
        kept(&folder);
    }
}

fn by_keys(folder: &Folder) -> RunReport {
    verify(folder, SignatureRequirement::By(KEYS.trusted())).1
}

/// What a run says: each line's phase, type and payload; names, moments and links are the gateway's to give.
fn happened(text: &[u8]) -> Vec<EventRecord> {
    let lines = text.split(|it| *it == b'\n').take(EVENTS_MAX).filter_map(|it| super::value(Some(&it)));
    let mut happened = vec![record(0, phase::START, None, Map::new())];
    for (said, at) in lines.zip(1..) {
        let word = said.get("phase").and_then(Value::as_str).unwrap_or(phase::OBSERVE);
        let kind = said.get("event_type").and_then(Value::as_str).map(str::to_owned);
        let payload = said.get("payload").and_then(Value::as_object).cloned().unwrap_or_default();
        // What the gateway alone says, of its own state.
        let projects = kind.as_deref() == Some("run.state_projection");
        if word != phase::START && !projects {
            happened.push(record(at, word, kind, payload));
        }
    }
    happened
}

fn record(at: i64, phase: &str, event_type: Option<String>, payload: Map<String, Value>) -> EventRecord {
    EventRecord {
        agent_id: "planner".to_owned(),
        caused_by: None,
        episode_id: RUN.to_owned(),
        event_type,
        evidence_ids: Vec::new(),
        id: Some(format!("e{at}")),
        payload,
        phase: phase.to_owned(),
        timestamp: Timestamp::from_millis((NOW + at) * 1000).to_string(),
        previous: None,
    }
}

fn folder(timeline: &Timeline) -> Folder {
    let run = ThreadId::try_from(RUN).expect("a literal name is a name");
    let sign = |it| manifest::signed(it, &run, KEYS.signing(KeyUse::Chain), KEYS.issuer(), 1);
    let mut files = timeline.files();
    files.extend(timeline.manifest(sign).map(|bytes| (Artefact::Manifest, bytes)));
    let entries = files.into_iter().map(|(it, bytes)| (it.file().to_owned(), FileContent::Bytes(bytes)));
    Folder { entries: entries.collect() }
}

/// What is imported comes back to the byte.
fn kept(folder: &Folder) {
    let read = checked(folder, KEYS.trusted(), None);
    let by = PrincipalId::try_from("somebody").expect("a literal name is a name");
    let made = RunImport::of(folder, &read.run, RunSigner::Nobody {}, by, Timestamp::from_millis(0));
    let Ok((import, pieces)) = made else { return };
    let mut sorted = folder.clone();
    sorted.entries.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(import.folder(&pieces), Some(sorted));
}

/// A bit that is turned, a file that is gone, and one that is new are found, wherever that is.
fn changed(good: &Folder, text: &[u8]) {
    let seed = u64::from_be_bytes(*Digest::of_file(text).bytes().first_chunk().expect("a digest has 32 bytes"));
    for turn in 0..CHANGES {
        let place = seed.rotate_left(u32::try_from(turn * 4).unwrap_or_default()) ^ turn;
        let mut bad = good.clone();
        let files = bad.entries.len() as u64;
        let (name, content) = &mut bad.entries[usize::try_from(place % files).unwrap_or_default()];
        let FileContent::Bytes(bytes) = content else { continue };
        let Some(at) = (place / files).checked_rem(bytes.len() as u64) else { continue };
        let before = bytes.clone();
        bytes[usize::try_from(at).unwrap_or_default()] ^= 1 << (place % 8);
        // A manifest is what it says, however that is written: its signature is over its canonical form.
        let says = |bytes: &[u8]| super::value(Some(&bytes)).map(|it| canonical(&it));
        if name == Artefact::Manifest.file() && says(&before) == says(bytes) {
            continue;
        }
        let (name, report) = (name.clone(), by_keys(&bad));
        assert_eq!(report.verdict(), RunVerification::Refused, "{name} at {at}");
    }
    for at in 0..good.entries.len() {
        let mut less = good.clone();
        let gone = less.entries.remove(at).0;
        assert_eq!(by_keys(&less).verdict(), RunVerification::Refused, "without {gone}");
    }
    let mut more = good.clone();
    more.entries.push(("more.json".to_owned(), FileContent::Bytes(text.to_vec())));
    assert_eq!(by_keys(&more).verdict(), RunVerification::Refused);
}
