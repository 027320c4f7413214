use std::time::Duration;

use countersign_domain::log::event::EventType;
use countersign_domain::operations::halt::Halt;
use countersign_domain::primitives::id::EventId;
use serde_json::json;

use super::*;

fn rejected(flow: &str) -> Event {
    let id = EventId::try_from("018f2c1e-0000-7000-8000-000000000000".to_owned()).unwrap();
    let (at, flow) = (Timestamp::from_millis(0), Some(FlowId::try_from(flow.to_owned()).unwrap()));
    let kind = EventType::TransitionRejected;
    Event { id, kind, at, flow, thread: None, seq: None, previous: None, data: json!({}) }
}

fn line(text: &str, begins: &str) -> Option<String> {
    text.lines().find(|it| it.starts_with(begins)).and_then(|it| it.rsplit_once(' ')).map(|it| it.1.to_owned())
}

#[test]
fn gateways_in_one_process_have_separate_counters() {
    let (one, other) = (Metrics::default(), Metrics::default());
    one.denied(DenialCode::Expired);
    let expired = |it: &Metrics| line(&it.text(None, 0), "countersign_verify_denials_total{code=\"expired\"}");
    assert_eq!((expired(&one).as_deref(), expired(&other).as_deref()), (Some("1"), Some("0")));
}

#[test]
fn flows_beyond_the_bound_are_counted_together() {
    let metrics = Metrics::default();
    for number in 0..FLOWS_MAX + 5 {
        metrics.happened(&rejected(&format!("flow-{number}")), None);
    }
    metrics.happened(&rejected("flow-0"), None);
    let text = metrics.text(None, 0);
    assert_eq!(text.matches("countersign_proposals_total{").count(), FLOWS_MAX + 1);
    let of = |flow: &str| line(&text, &format!("countersign_proposals_total{{flow=\"{flow}\",outcome=\"rejected\"}}"));
    assert_eq!((of("flow-0").as_deref(), of("").as_deref()), (Some("2"), Some("5")));
}

#[test]
fn outdated_gauges_are_removed() {
    let metrics = Metrics::default();
    let flow = FlowId::try_from("payments".to_owned()).unwrap();
    let mut facts = DatabaseGauges::default();
    facts.open.insert(flow.clone(), OpenReviewGauges { count: 3, oldest: Duration::from_secs(7) });
    facts.halts.push((None, Halt { proposing: true, verifying: false, reason: String::new() }));
    let text = metrics.text(Some(&facts), 4);
    assert_eq!(line(&text, "countersign_open_review_oldest_seconds{flow=\"payments\"}").as_deref(), Some("7"));
    assert_eq!(line(&text, "countersign_halted{flow=\"\",what=\"proposing\"}").as_deref(), Some("1"));
    assert_eq!(line(&text, "countersign_store_queue").as_deref(), Some("4"));
    let text = metrics.text(Some(&DatabaseGauges::default()), 0);
    assert!(!text.contains("countersign_halted") && !text.contains("countersign_open_reviews"), "{text}");
    assert_eq!(line(&text, "countersign_store_readable").as_deref(), Some("1"));
    assert_eq!(line(&metrics.text(None, 0), "countersign_store_readable").as_deref(), Some("0"));
}

#[test]
fn a_worker_fails_until_it_works_again() {
    let metrics = Metrics::default();
    let failing = |run| {
        metrics.ran("mail", run);
        let text = metrics.text(None, 0);
        ["mail", "letters"].map(|name| line(&text, &format!("countersign_worker_failing{{worker=\"{name}\"}}")))
    };
    let both = |figure: &str| [Some(figure.to_owned()), Some(figure.to_owned())];
    assert_eq!(failing(WorkerResult::Failed), both("1"));
    assert_eq!(failing(WorkerResult::Done), both("0"));
}
