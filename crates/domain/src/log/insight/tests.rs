use serde_json::{Value, json};

use super::*;
use crate::reviews::{HoldReason, HoldState};

const NOON: i64 = 1_795_262_400_000;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(NOON + secs * 1_000)
}

fn flow(name: &str) -> FlowId {
    FlowId::try_from(name).unwrap()
}

fn event(kind: EventType, at: Timestamp, of: &str, data: Value) -> Event {
    let id = "e".try_into().unwrap();
    Event { id, kind, at, flow: Some(flow(of)), thread: None, seq: None, previous: None, data }
}

fn hold(opened_at: Timestamp, reasons: &[&str]) -> Hold {
    let reason = |it: &&str| HoldReason {
        code: "protected".to_owned(),
        pointer: None,
        text: (*it).to_owned(),
        for_reviewers_only: false,
    };
    let digest = crate::chain::hash::Digest::of(crate::chain::hash::Tag::Patch, &[b""]);
    Hold {
        id: "r".try_into().unwrap(),
        transition: digest,
        thread: "t".try_into().unwrap(),
        flow: flow("f"),
        policy: digest,
        node: "n".try_into().unwrap(),
        proposer: "p".try_into().unwrap(),
        context: Default::default(),
        reasons: reasons.iter().map(reason).collect(),
        excluded: Default::default(),
        effect: None,
        stages: Vec::new(),
        denials_needed: 1,
        opened_at,
        expires_at: opened_at,
        votes: Vec::new(),
        comments: Vec::new(),
        extensions: Vec::new(),
        notices: Default::default(),
        reveals: Vec::new(),
        state: HoldState::Open {},
    }
}

fn review() -> Value {
    json!({"review": "r"})
}

/// Counts events in order, each with its review.
fn counted(events: &[(Event, Option<Hold>)]) -> (CountProgress, InsightRows) {
    let (mut counted, mut sheet) = (CountProgress::default(), InsightRows::new());
    for (index, (event, hold)) in (1..).zip(events) {
        counted.count(&mut sheet, index, event, hold.as_ref());
    }
    (counted, sheet)
}

#[test]
fn a_quantile_is_off_by_a_sixteenth_at_most() {
    for millis in (0..60).map(|it| 7_u64.pow(it % 13) + u64::from(it)) {
        let mut times = Histogram::default();
        times.add(Duration::from_millis(millis));
        let told = u64::try_from(times.quantile(50).unwrap().as_millis()).unwrap();
        assert!(told.abs_diff(millis) * 16 <= millis, "{millis} is told as {told}");
    }
}

#[test]
fn buckets_follow_one_another_without_a_gap() {
    let mut times = Histogram::default();
    assert_eq!(times.quantile(50), None);
    for millis in 0..5_000 {
        times.add(Duration::from_millis(millis));
    }
    times.add(Duration::MAX);
    assert_eq!(times.count(), 5_001);
    let median = times.quantile(50).unwrap().as_millis();
    assert!((2_340..2_660).contains(&median), "{median}");
    assert!(times.quantile(100).unwrap().as_secs() > 3_600 * 24 * 365 * 100);
}

#[test]
fn merged_histograms_equal_one_of_all() {
    let (mut one, mut other, mut all) = Default::default();
    for secs in 0..100 {
        let took = Duration::from_secs(secs);
        Histogram::add(if secs % 3 == 0 { &mut one } else { &mut other }, took);
        Histogram::add(&mut all, took);
    }
    one.merge(&other);
    assert_eq!(one, all);
}

#[test]
fn an_hour_and_a_day_have_names_in_the_order_of_time() {
    let hour = Period::of(BucketWidth::Hour, at(3_599));
    assert_eq!((hour.name().as_str(), hour.begins), ("hour/2026-11-21T12", at(0)));
    assert_eq!(Period::of(BucketWidth::Hour, at(3_600)).previous(), hour);
    assert_eq!(Period::of(BucketWidth::Day, at(0)).name(), "day/2026-11-21");
    assert_eq!(Period::of(BucketWidth::Hour, Timestamp::from_millis(-1)).name(), "hour/1969-12-31T23");
}

#[test]
fn only_decided_reviews_have_a_time() {
    let kinds = [
        (EventType::TransitionApproved, HoldOutcome::Approved, 1),
        (EventType::TransitionDenied, HoldOutcome::Denied, 1),
        (EventType::TransitionExpired, HoldOutcome::Expired, 0),
        (EventType::TransitionCancelled, HoldOutcome::Cancelled, 0),
        (EventType::TransitionSuperseded, HoldOutcome::Superseded, 0),
    ];
    for (kind, ending, times) in kinds {
        let opened = event(EventType::TransitionHeld, at(0), "f", review());
        let ended = event(kind, at(60), "f", review());
        let (counted, sheet) = counted(&[(opened, Some(hold(at(0), &["why"]))), (ended, Some(hold(at(0), &["why"])))]);
        let flow = &sheet[&Period::of(BucketWidth::Hour, at(0))].flows[&flow("f")];
        for counts in [&flow.all, &flow.reasons["why"]] {
            assert_eq!((counts.opened, counts.ended_so(ending), counts.ended()), (1, 1, 1), "{kind:?}");
            assert_eq!(counts.times.count(), times, "{kind:?}");
        }
        assert_eq!(counted.open_reviews(None), 0, "{kind:?}");
    }
}

#[test]
fn a_threads_beginning_an_approval_and_a_writers_report_are_no_proposals() {
    let committed = |version: u64, gate: &str| {
        let data = json!({"version": version, "gate": {"kind": gate}});
        (event(EventType::TransitionCommitted, at(0), "f", data), None)
    };
    let (_, sheet) = counted(&[
        committed(0, "auto"),
        committed(1, "auto"),
        committed(2, "observed"),
        committed(3, "approved"),
        committed(4, "written"),
        (event(EventType::TransitionRejected, at(0), "f", json!({})), None),
        (event(EventType::ReviewVote, at(0), "f", review()), None),
    ]);
    let all = &sheet[&Period::of(BucketWidth::Day, at(0))].flows[&flow("f")].all;
    assert_eq!(all, &Counts { committed: 1, observed: 1, rejected: 1, ..Counts::default() });
}

#[test]
fn flows_beyond_the_limit_are_counted_together() {
    let mut events = Vec::new();
    for number in 0..FLOWS_MAX + 2 {
        let name = format!("f{number:03}");
        events.push((event(EventType::TransitionHeld, at(0), &name, review()), Some(hold(at(0), &[]))));
    }
    let name = format!("f{FLOWS_MAX:03}");
    events.push((event(EventType::TransitionDenied, at(1), &name, review()), Some(hold(at(0), &[]))));
    let (counted, sheet) = counted(&events);
    let hour = &sheet[&Period::of(BucketWidth::Hour, at(0))];
    let others = &hour.other_flows.as_ref().unwrap().all;
    assert_eq!((hour.flows.len(), others.opened, others.denied), (FLOWS_MAX, 2, 1));
    assert_eq!(counted.open_reviews(None), FLOWS_MAX as u64 + 1);
    assert_eq!(counted.open_reviews(Some(&flow(&name))), 0);
}

#[test]
fn a_review_counts_once_under_each_of_its_reasons_and_few_are_named() {
    let many: Vec<String> = (0..REASONS_MAX + 3).map(|it| format!("reason {it:02}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).chain(["reason 00"]).collect();
    let opened = event(EventType::TransitionHeld, at(0), "f", review());
    let (_, sheet) = counted(&[(opened, Some(hold(at(0), &many)))]);
    let counts = &sheet[&Period::of(BucketWidth::Hour, at(0))].flows[&flow("f")];
    assert_eq!((counts.all.opened, counts.reasons.len()), (1, REASONS_MAX));
    assert_eq!((counts.reasons["reason 00"].opened, counts.other_reasons.as_ref().unwrap().opened), (1, 3));
}

#[test]
fn reasons_of_an_earlier_release_are_in_the_same_group() {
    let (former, current) =
        ("limit is protected: people decide about it", "`limit` is protected and requires approval");
    let opened = || event(EventType::TransitionHeld, at(0), "f", review());
    let (_, sheet) = counted(&[(opened(), Some(hold(at(0), &[former]))), (opened(), Some(hold(at(0), &[current])))]);
    let stored = &sheet[&Period::of(BucketWidth::Hour, at(0))].flows[&flow("f")];
    assert_eq!(stored.reasons.keys().collect::<Vec<_>>(), [current, former], "rows have the text of the review");
    let mut shown = FlowCounts::default();
    shown.merge(stored);
    assert_eq!((shown.reasons.len(), shown.reasons[current].opened), (1, 2));
}

#[test]
fn a_row_is_read_as_it_was_written() {
    let opened = event(EventType::TransitionHeld, at(0), "f", review());
    let ended = event(EventType::TransitionDenied, at(90), "f", review());
    let hold = Some(hold(at(0), &["why"]));
    let (counted, sheet) = counted(&[(opened, hold.clone()), (ended, hold)]);
    let text = serde_json::to_string(&counted).unwrap();
    assert_eq!(serde_json::from_str::<CountProgress>(&text).unwrap(), counted);
    for figures in sheet.into_values() {
        let text = serde_json::to_string(&figures).unwrap();
        assert_eq!(serde_json::from_str::<PeriodFigures>(&text).unwrap(), figures, "{text}");
    }
}
