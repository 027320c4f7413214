//! Parts of a run's page that runs of this gateway and imported runs share.

use serde_json::Value;

use super::episode_view::{Badge, Fact, FileRow, PlanHead, StepRow};
use crate::domain::episode::Artefact;
use crate::domain::episode::event_line::Record;
use crate::domain::episode::goal::Episode;
use crate::domain::episode::imported::cut;
use crate::domain::episode::state::{self, Status};
use crate::domain::json::canonical::canonical;
use crate::domain::primitives::id::ThreadId;
use crate::web::pages::shared::layout::Tone;
use crate::web::pages::shared::safe_text::{Json, Line, Prose};

/// Events that one page lists; the file has all.
pub(super) const EVENTS_SHOWN: usize = 300;
/// Steps of a plan that one page lists: ours have as many at most, of others' the file has all.
const STEPS_SHOWN: usize = 100;
/// Numbers, and things that a run made, that one page lists.
const FACTS_SHOWN: usize = 200;
/// Characters of one text: an event of ours has four times as many at most, of an imported one any number.
pub(super) const TEXT_CHARS_SHOWN: usize = 4_000;

/// How a run that is over ended.
pub(in crate::web::pages) fn ended(status: Status) -> Badge {
    standing(status, false, None)
}

pub(super) fn shown(text: &Value) -> String {
    cut(text.as_str().unwrap_or_default(), TEXT_CHARS_SHOWN)
}

pub(super) fn summary(state: &Value) -> Option<Prose> {
    state["outcomes"]["summary"].is_string().then(|| Prose::new(shown(&state["outcomes"]["summary"])))
}

pub(super) fn plan(state: &Value) -> Option<PlanHead> {
    let plan = &state["plan"];
    let source = plan["source"].as_str().filter(|it| *it != state::NO_PLAN)?;
    let rationale = plan["rationale"].is_string().then(|| Prose::new(shown(&plan["rationale"])));
    Some(PlanHead { source: Line::new(cut(source, TEXT_CHARS_SHOWN)), rationale })
}

pub(super) fn steps(state: &Value) -> Vec<StepRow> {
    state["plan"]["steps"].as_array().into_iter().flatten().take(STEPS_SHOWN).map(step).collect()
}

fn step(step: &Value) -> StepRow {
    let (words, tone) = match step["status"].as_str().unwrap_or_default() {
        "running" => ("under way", Tone::Care),
        "done" => ("done", Tone::Good),
        "skipped" => ("left out", Tone::Plain),
        "failed" => ("failed", Tone::Bad),
        "vetoed" => ("not let do it", Tone::Bad),
        "blocked" => ("blocked", Tone::Bad),
        _ => ("to do", Tone::Plain),
    };
    StepRow {
        description: Line::new(shown(&step["description"])),
        kind: Line::new(shown(&step["kind"])),
        status: Badge { words, tone },
    }
}

pub(super) fn says(record: &Record) -> Option<Json> {
    let text = || cut(&canonical(&Value::Object(record.payload.clone())), TEXT_CHARS_SHOWN);
    (!record.payload.is_empty()).then(|| Json::new(text()))
}

pub(super) fn outcomes(outcomes: &Value) -> Vec<Fact> {
    let value = |it: &Value| Json::new(cut(&canonical(it), TEXT_CHARS_SHOWN));
    let metrics = outcomes["metrics"].as_object().into_iter().flatten();
    let gateway = outcomes["x-gateway"].as_object().into_iter().flatten();
    let fact = |(name, it): (&String, &Value)| Fact { name: Line::new(cut(name, TEXT_CHARS_SHOWN)), value: value(it) };
    let artifacts = outcomes["artifacts"].as_array().into_iter().flatten();
    let made = artifacts.map(|it| match it.is_string() {
        // The published text has names of files, where the published schema has objects.
        true => Fact { name: Line::new("artifact"), value: value(it) },
        false => Fact { name: Line::new(shown(&it["type"])), value: value(&it["uri"]) },
    });
    metrics.map(fact).chain(gateway.map(fact)).chain(made).take(FACTS_SHOWN).collect()
}

pub(super) fn file(thread: &ThreadId, name: &str) -> FileRow {
    let words = match Artefact::of_file(name) {
        Some(Artefact::Events) => "what happened, line by line",
        Some(Artefact::Learn) => "what was learned",
        Some(Artefact::State) => "the state, as it follows from the events",
        Some(Artefact::Summary) => "the run in numbers",
        Some(Artefact::Final) => "that it is over, and how",
        Some(Artefact::Manifest) => "names, hashes and sizes of the others",
        None => "a file that the run made",
    };
    FileRow { name: Line::new(name), url: format!("/threads/{thread}/episode/{name}"), words }
}

pub(super) fn standing(status: Status, held: bool, episode: Option<&Episode>) -> Badge {
    let over = episode.is_some_and(|it| it.ended.is_some());
    let (words, tone) = match status {
        Status::Ok => ("Done", Tone::Good),
        Status::Error => ("Failed", Tone::Bad),
        Status::Vetoed => ("Not let do it", Tone::Bad),
        Status::Aborted => ("Stopped", Tone::Care),
        Status::Partial => ("Done in part", Tone::Care),
        Status::Pending if held && !over => ("Waits for a decision", Tone::Care),
        Status::Pending => ("Goes on", Tone::Plain),
    };
    Badge { words, tone }
}
