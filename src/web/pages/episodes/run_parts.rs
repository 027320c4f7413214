//! Parts of a run's page that runs of this gateway and imported runs share.

use serde_json::Value;

use super::episode_view::{FileRow, NamedValueRow, PlanHeader, PlanStepRow, StatusBadge};
use crate::domain::episode::Artefact;
use crate::domain::episode::event_line::EventRecord;
use crate::domain::episode::goal::Episode;
use crate::domain::episode::imported::cut;
use crate::domain::episode::state::{self, RunStatus};
use crate::domain::json::canonical::canonical;
use crate::domain::primitives::id::ThreadId;
use crate::web::pages::shared::layout::Tone;
use crate::web::pages::shared::safe_text::{SafeJson, SafeLine, SafeText};

/// Events that one page lists; the file has all.
pub(super) const EVENTS_SHOWN: usize = 300;
/// Steps of a plan that one page lists: ours have as many at most, of others' the file has all.
const STEPS_SHOWN: usize = 100;
/// Numbers, and things that a run made, that one page lists.
const FACTS_SHOWN: usize = 200;
/// Characters of one text: an event of ours has four times as many at most, of an imported one any number.
pub(super) const TEXT_CHARS_SHOWN: usize = 4_000;

/// How a run that is over ended.
pub(in crate::web::pages) fn ended(status: RunStatus) -> StatusBadge {
    standing(status, false, None)
}

pub(super) fn shown(text: &Value) -> String {
    cut(text.as_str().unwrap_or_default(), TEXT_CHARS_SHOWN)
}

pub(super) fn summary(state: &Value) -> Option<SafeText> {
    state["outcomes"]["summary"].is_string().then(|| SafeText::new(shown(&state["outcomes"]["summary"])))
}

pub(super) fn plan(state: &Value) -> Option<PlanHeader> {
    let plan = &state["plan"];
    let source = plan["source"].as_str().filter(|it| *it != state::NO_PLAN)?;
    let rationale = plan["rationale"].is_string().then(|| SafeText::new(shown(&plan["rationale"])));
    Some(PlanHeader { source: SafeLine::new(cut(source, TEXT_CHARS_SHOWN)), rationale })
}

pub(super) fn steps(state: &Value) -> Vec<PlanStepRow> {
    state["plan"]["steps"].as_array().into_iter().flatten().take(STEPS_SHOWN).map(step).collect()
}

fn step(step: &Value) -> PlanStepRow {
    let (words, tone) = match step["status"].as_str().unwrap_or_default() {
        "running" => ("under way", Tone::Care),
        "done" => ("done", Tone::Good),
        "skipped" => ("left out", Tone::Plain),
        "failed" => ("failed", Tone::Bad),
        "vetoed" => ("not let do it", Tone::Bad),
        "blocked" => ("blocked", Tone::Bad),
        _ => ("to do", Tone::Plain),
    };
    PlanStepRow {
        description: SafeLine::new(shown(&step["description"])),
        kind: SafeLine::new(shown(&step["kind"])),
        status: StatusBadge { words, tone },
    }
}

pub(super) fn says(record: &EventRecord) -> Option<SafeJson> {
    let text = || cut(&canonical(&Value::Object(record.payload.clone())), TEXT_CHARS_SHOWN);
    (!record.payload.is_empty()).then(|| SafeJson::new(text()))
}

pub(super) fn outcomes(outcomes: &Value) -> Vec<NamedValueRow> {
    let value = |it: &Value| SafeJson::new(cut(&canonical(it), TEXT_CHARS_SHOWN));
    let metrics = outcomes["metrics"].as_object().into_iter().flatten();
    let gateway = outcomes["x-gateway"].as_object().into_iter().flatten();
    let fact = |(name, it): (&String, &Value)| NamedValueRow {
        name: SafeLine::new(cut(name, TEXT_CHARS_SHOWN)),
        value: value(it),
    };
    let artifacts = outcomes["artifacts"].as_array().into_iter().flatten();
    let made = artifacts.map(|it| match it.is_string() {
        // The published text has names of files, where the published schema has objects.
        true => NamedValueRow { name: SafeLine::new("artifact"), value: value(it) },
        false => NamedValueRow { name: SafeLine::new(shown(&it["type"])), value: value(&it["uri"]) },
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
    FileRow { name: SafeLine::new(name), url: format!("/threads/{thread}/episode/{name}"), words }
}

pub(super) fn standing(status: RunStatus, held: bool, episode: Option<&Episode>) -> StatusBadge {
    let over = episode.is_some_and(|it| it.ended.is_some());
    let (words, tone) = match status {
        RunStatus::Ok => ("Done", Tone::Good),
        RunStatus::Error => ("Failed", Tone::Bad),
        RunStatus::Vetoed => ("Not let do it", Tone::Bad),
        RunStatus::Aborted => ("Stopped", Tone::Care),
        RunStatus::Partial => ("Done in part", Tone::Care),
        RunStatus::Pending if held && !over => ("Waits for a decision", Tone::Care),
        RunStatus::Pending => ("Goes on", Tone::Plain),
    };
    StatusBadge { words, tone }
}
