//! Samples of a run of agents.

use super::sample::{line, moment, shell};
use crate::web::pages::view::episode::{Badge, EpisodePage, EventRow, Fact, FileRow, PlanHead, StepRow};
use crate::web::pages::view::shell::{Moment, Tone};
use crate::web::pages::view::text::{Json, Prose};

fn at(words: &str) -> Moment {
    moment("2026-11-03T12:00:00.000Z", "3 Nov 2026, 12:00 UTC", words)
}

fn step(description: &str, kind: &str, (words, tone): (&'static str, Tone)) -> StepRow {
    StepRow { description: line(description), kind: line(kind), status: Badge { words, tone } }
}

/// A run that is over.
pub fn page() -> EpisodePage {
    let did = |what: &str, tone: Tone, review: Option<&str>| EventRow {
        what: line(what),
        tone,
        who: None,
        review_url: review.map(str::to_owned),
        says: None,
        at: at("2 h ago"),
    };
    let said = |what: &str, says: &str| EventRow {
        what: line(what),
        tone: Tone::Plain,
        who: Some(line("planner")),
        review_url: None,
        says: Some(Json::new(says)),
        at: at("2 h ago"),
    };
    EpisodePage {
        shell: shell(2),
        thread: line("order-8812"),
        thread_url: "/threads/order-8812".to_owned(),
        flow: line("payments"),
        task: line("Refund order 8812"),
        status: Badge { words: "Done", tone: Tone::Good },
        summary: Some(Prose::new("Refunded 40 EUR.")),
        begun: at("3 h ago"),
        plan: Some(PlanHead { source: line("planner"), rationale: Some(Prose::new("People have to be asked.")) }),
        steps: vec![
            step("Look the order up", "detect", ("done", Tone::Good)),
            step("Refund it", "act", ("under way", Tone::Care)),
            step("Write to the customer", "act", ("left out", Tone::Plain)),
        ],
        events: vec![
            did("The run began", Tone::Plain, None),
            said("plan", "{\"rationale\":\"People have to be asked.\"}"),
            did("A proposal was held for people", Tone::Care, Some("/reviews/0192f0c1")),
            did("People approved", Tone::Good, Some("/reviews/0192f0c1")),
            said("terminate", "{\"status\":\"ok\"}"),
        ],
        earlier: 12,
        outcomes: vec![Fact { name: line("steps_total"), value: Json::new("3") }],
        files: vec![FileRow {
            name: "state.json",
            url: "/threads/order-8812/episode/state.json".to_owned(),
            words: "the state, as it follows from the events",
        }],
    }
}

/// One of which nobody has said anything yet.
pub fn begun() -> EpisodePage {
    EpisodePage {
        status: Badge { words: "Goes on", tone: Tone::Plain },
        summary: None,
        plan: None,
        steps: Vec::new(),
        events: Vec::new(),
        earlier: 0,
        outcomes: Vec::new(),
        ..page()
    }
}
