//! Sample pages of endpoints.

use countersign_domain::delivery::failure::FailureCode;
use countersign_domain::delivery::preflight::PreflightResult;

use super::sample::{line, moment, shell};
use crate::pages::delivery::endpoints_view::{
    AttemptRow, DeliveryPage, DeliveryRow, EndpointFacts, EndpointFormInput, EndpointPage, EndpointRow, EndpointTab,
    EndpointsPage, HealthBadge,
};
use crate::pages::shared::layout::{TimestampView, Tone};

fn ago(words: &str) -> TimestampView {
    moment("2026-11-03T12:00:00.000Z", "3 Nov 2026, 12:00 UTC", words)
}

fn row(name: &str, tone: Tone, word: &'static str) -> EndpointRow {
    EndpointRow {
        url: "/endpoints/0192f0c1".to_owned(),
        name: line(name),
        kind: "Webhook",
        origin: line("https://hooks.example"),
        events: line("transition.*, review.vote"),
        health: HealthBadge { tone, word },
        ahead: 3,
        arrived: Some(ago("5 min ago")),
        failed: None,
    }
}

fn typed() -> EndpointFormInput {
    EndpointFormInput {
        events: "*".to_owned(),
        url: "https://hooks.example/x".to_owned(),
        ..EndpointFormInput::default()
    }
}

pub fn endpoints() -> EndpointsPage {
    EndpointsPage {
        shell: shell(2),
        csrf: "csrf-1".to_owned(),
        endpoints: vec![row("ops\u{202e}", Tone::Good, "Enabled"), row("chat", Tone::Bad, "Disabled")],
        may_change: true,
        typed: typed(),
        kinds: vec!["thread.created", "transition.held"],
    }
}

pub fn endpoints_empty() -> EndpointsPage {
    EndpointsPage { endpoints: vec![], may_change: false, ..endpoints() }
}

fn answered() -> AttemptRow {
    AttemptRow {
        at: ago("5 min ago"),
        seconds: 1_793_707_200,
        took_ms: 12,
        tone: Tone::Bad,
        words: "Answered 500".to_owned(),
        why: None,
        answer: vec![line("<script>alert(1)</script>\u{202e}"), line("so?")],
        cut: true,
    }
}

fn unanswered() -> AttemptRow {
    AttemptRow {
        words: "No answer".to_owned(),
        why: Some(FailureCode::Refused.sentence()),
        answer: vec![],
        cut: false,
        ..answered()
    }
}

fn delivery_row() -> DeliveryRow {
    DeliveryRow {
        url: "/endpoints/0192f0c1/deliveries/12".to_owned(),
        words: "Proposal held for approval",
        name: "transition.held",
        index: 12,
        thread: Some((line("order-8812"), "/threads/order-8812".to_owned())),
        health: HealthBadge { tone: Tone::Care, word: "Retry scheduled" },
        due: Some(ago("in 5 min")),
        last: Some(answered()),
    }
}

pub fn endpoint() -> EndpointPage {
    let tab = |label, here| EndpointTab { url: "/endpoints/0192f0c1".to_owned(), label, here };
    EndpointPage {
        shell: shell(2),
        csrf: "csrf-1".to_owned(),
        row: row("ops", Tone::Care, "Failing"),
        standing: vec!["All deliveries have failed since 3 Nov 2026, 12:00 UTC.".to_owned()],
        served: true,
        facts: EndpointFacts {
            flows: vec![line("payments")],
            ordered: true,
            payload: line("1: type, timestamp and data"),
            signed: true,
            resumes: false,
            template: vec![],
            headers: vec![line("authorization")],
            public_keys: vec!["whpk_AAAA".to_owned()],
            secret_made: ago("20 days ago"),
            secret_before: Some(ago("in 2 h")),
            reached: 12,
            created: ago("20 days ago"),
        },
        may_change: true,
        typed: typed(),
        kinds: vec!["thread.created"],
        tabs: vec![tab("All", true), tab("Failed", false)],
        deliveries: vec![delivery_row()],
        next_url: Some("/endpoints/0192f0c1?list=&after=0.1".to_owned()),
        test: Some(unanswered()),
    }
}

pub fn endpoint_resuming() -> EndpointPage {
    let facts = EndpointFacts { signed: false, resumes: true, template: vec![line("{\"a\": 1}")], ..endpoint().facts };
    let looked = AttemptRow {
        words: "Preflight answered 200".to_owned(),
        why: Some(PreflightResult::Busy.sentence()),
        ..unanswered()
    };
    let row = EndpointRow { kind: "LangGraph", ..endpoint().row };
    EndpointPage { row, facts, test: Some(looked), ..endpoint() }
}

pub fn endpoint_disabled() -> EndpointPage {
    EndpointPage {
        row: row("ops", Tone::Bad, "Disabled"),
        served: false,
        deliveries: vec![],
        next_url: None,
        test: None,
        ..endpoint()
    }
}

pub fn delivery() -> DeliveryPage {
    DeliveryPage {
        shell: shell(2),
        csrf: "csrf-1".to_owned(),
        endpoint_url: "/endpoints/0192f0c1".to_owned(),
        endpoint: line("ops"),
        row: delivery_row(),
        event: "0192f0c1".to_owned(),
        signed: true,
        headers: vec![line("authorization")],
        body: vec![line("{\"type\":\"transition.held\"}")],
        attempts: vec![answered(), unanswered()],
        may_change: true,
    }
}
