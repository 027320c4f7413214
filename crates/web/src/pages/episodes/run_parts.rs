//! Parts of the episode page that own and imported episodes share.

use countersign_domain::episode::Artefact;
use countersign_domain::episode::event_line::EventRecord;
use countersign_domain::episode::goal::Episode;
use countersign_domain::episode::imported::cut;
use countersign_domain::episode::state::{self, RunStatus};
use countersign_domain::json::canonical::canonical;
use countersign_domain::primitives::id::ThreadId;
use serde_json::Value;

use super::episode_view::{FileRow, NamedValueRow, PlanHeader, PlanStepRow, StatusBadge};
use crate::pages::shared::layout::Tone;
use crate::pages::shared::safe_text::{SafeJson, SafeLine, SafeText};

/// Maximum number of events on a page. The file has all events.
pub(super) const EVENTS_SHOWN: usize = 300;
/// Maximum number of plan steps on a page. Own plans have at most as many. Imported files may have more.
const STEPS_SHOWN: usize = 100;
/// Maximum number of metrics and artifacts on a page.
const FACTS_SHOWN: usize = 200;
/// Maximum length of one text. Imported files have no limit, and own events have a limit four times as high.
pub(super) const TEXT_CHARS_SHOWN: usize = 4_000;

/// Returns the status of a finished episode.
pub(in crate::pages) fn ended(status: RunStatus) -> StatusBadge {
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
    // A run without a plan still has the member, so its placeholder is filtered out.
    let source = plan["source"].as_str().filter(|it| *it != state::NO_PLAN)?;
    let rationale = plan["rationale"].is_string().then(|| SafeText::new(shown(&plan["rationale"])));
    Some(PlanHeader { source: SafeLine::new(cut(source, TEXT_CHARS_SHOWN)), rationale })
}

pub(super) fn steps(state: &Value) -> Vec<PlanStepRow> {
    state["plan"]["steps"].as_array().into_iter().flatten().take(STEPS_SHOWN).map(step).collect()
}

fn step(step: &Value) -> PlanStepRow {
    let (words, tone) = match step["status"].as_str().unwrap_or_default() {
        "running" => ("running", Tone::Care),
        "done" => ("done", Tone::Good),
        "skipped" => ("skipped", Tone::Plain),
        "failed" => ("failed", Tone::Bad),
        "vetoed" => ("denied", Tone::Bad),
        "blocked" => ("blocked", Tone::Bad),
        // Imported files can contain any status, so an unknown one makes no claim about progress.
        _ => ("planned", Tone::Plain),
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
        // Both forms occur: the text of the format has file names here, its schema has objects.
        true => NamedValueRow { name: SafeLine::new("artifact"), value: value(it) },
        false => NamedValueRow { name: SafeLine::new(shown(&it["type"])), value: value(&it["uri"]) },
    });
    // The limit covers the whole list, because an imported file may have any number of entries.
    metrics.map(fact).chain(gateway.map(fact)).chain(made).take(FACTS_SHOWN).collect()
}

pub(super) fn file(thread: &ThreadId, name: &str) -> FileRow {
    let words = match Artefact::of_file(name) {
        Some(Artefact::Events) => "events, one per line",
        Some(Artefact::Learn) => "lessons of the episode",
        Some(Artefact::State) => "state computed from the events",
        Some(Artefact::Summary) => "metrics of the episode",
        Some(Artefact::Final) => "final status of the episode",
        Some(Artefact::Manifest) => "names, hashes and sizes of the other files",
        // The names of other artifacts are free, so they share one description.
        None => "artifact of the episode",
    };
    FileRow { name: SafeLine::new(name), url: format!("/threads/{thread}/episode/{name}"), words }
}

pub(super) fn standing(status: RunStatus, held: bool, episode: Option<&Episode>) -> StatusBadge {
    let over = episode.is_some_and(|it| it.ended.is_some());
    let (words, tone) = match status {
        RunStatus::Ok => ("Done", Tone::Good),
        RunStatus::Error => ("Failed", Tone::Bad),
        RunStatus::Vetoed => ("Denied", Tone::Bad),
        RunStatus::Aborted => ("Aborted", Tone::Care),
        RunStatus::Partial => ("Partly done", Tone::Care),
        // A pending review of the thread concerns the episode only while the episode runs.
        RunStatus::Pending if held && !over => ("Waiting for a decision", Tone::Care),
        RunStatus::Pending => ("Running", Tone::Plain),
    };
    StatusBadge { words, tone }
}
