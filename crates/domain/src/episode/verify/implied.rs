//! Compares the state of another system's episode with its events. Such an episode may have no projection, or one that
//! has less than the state. Its events still contradict a state that was changed.
//!
//! Only content of the events is compared. Everything else counts as unchecked, never as correct.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::parts::{CheckExtent, RunSection};
use super::{Folder, RunFindings};
use crate::episode::Artefact;
use crate::episode::event_line::{EventRecord, phase};
use crate::episode::finding::{Code, RunFinding};
use crate::episode::state::RunStatus;
use crate::json::canonical::canonical;
use crate::json::parse::{ParseLimits, parse};
use crate::json::pointer::Pointer;

const FILE: &str = Artefact::State.file();
/// Prefix of the adapter's name in older systems, where only the state has it.
const ADAPTER: &str = "adapter:";

/// State of an episode with its events.
pub(super) struct ImpliedState<'a> {
    pub(super) state: &'a Value,
    pub(super) events: &'a [EventRecord],
    /// Last projection in the events.
    pub(super) projection: Option<&'a EventRecord>,
}

impl ImpliedState<'_> {
    pub(super) fn check(&self, found: &mut RunFindings) {
        self.episode(found);
        self.beliefs(found);
        self.memory(found);
        self.outcomes(found);
        self.actions(found);
    }

    fn of<'s>(&'s self, phase: &'s str) -> impl DoubleEndedIterator<Item = &'s EventRecord> {
        self.events.iter().filter(move |it| it.is(phase))
    }

    /// Compares one member of the state with an event. Returns whether both have it.
    fn same(&self, code: Code, place: &str, said: Option<&Value>, found: &mut RunFindings) -> bool {
        let (Some(told), Some(said)) = (self.state.pointer(place), said) else { return false };
        if !is_same(told, said) {
            found.add(RunFinding::about(code, FILE, place));
        }
        true
    }

    /// Compares the episode and its goal with the start event.
    fn episode(&self, found: &mut RunFindings) {
        let start = self.of(phase::START).next();
        let said = |name: &str| start.and_then(|it| it.payload.get(name));
        let task = self.same(Code::State, "/goal/task", said("task"), found);
        let kind = self.same(Code::State, "/goal/type", said("type"), found);
        let kinds = usize::from(self.state["goal"].get("type").is_some());
        found.part(RunSection::Goal, CheckExtent::of(usize::from(task) + usize::from(kind), 1 + kinds));
        for (place, name) in [("/episode/seed", "seed"), ("/episode/tags", "tags"), ("/process", "process")] {
            self.same(Code::State, place, said(name), found);
        }
        self.same(Code::State, "/episode/intuition_mode", said("intuition_mode"), found);
        let using = said("using").and_then(Value::as_str).zip(self.state["episode"]["using"].as_str());
        if using.is_some_and(|(said, told)| told.strip_prefix(ADAPTER).unwrap_or(told) != said && told != said) {
            found.add(RunFinding::about(Code::State, FILE, "/episode/using"));
        }
        // Other checks compare the name, and the start if the events have a projection.
        found.part(RunSection::Episode, CheckExtent::Partly);
    }

    /// Compares the beliefs in the order of the events, if any event has some.
    fn beliefs(&self, found: &mut RunFindings) {
        let lists = self.of(phase::INTERPRET).filter_map(|it| it.payload.get("beliefs")?.as_array());
        let said: Vec<String> = lists.flatten().filter_map(belief).collect();
        let told = self.state["beliefs"].as_array().into_iter().flatten();
        // Without any belief in the events there is nothing to compare with.
        if !said.is_empty() && told.filter_map(belief).collect::<Vec<_>>() != said {
            found.add(RunFinding::about(Code::State, FILE, "/beliefs"));
        }
        found.part(RunSection::Beliefs, if said.is_empty() { CheckExtent::Unchecked } else { CheckExtent::Partly });
    }

    /// Compares the facts by key and the notes, each with its last value, if any event has some.
    fn memory(&self, found: &mut RunFindings) {
        let facts = |list: &Value| -> BTreeMap<String, String> {
            list.as_array().into_iter().flatten().filter_map(fact).collect()
        };
        let mut said = BTreeMap::new();
        for event in self.of(phase::MEMORY) {
            said.extend(event.payload.get("facts").map(facts).unwrap_or_default());
        }
        if !said.is_empty() && facts(&self.state["memory"]["facts"]) != said {
            found.add(RunFinding::about(Code::State, FILE, "/memory/facts"));
        }
        let notes =
            self.of(phase::MEMORY).rev().find_map(|it| it.payload.get("scratchpad").filter(|it| it.is_string()));
        let noted = self.same(Code::State, "/memory/scratchpad", notes, found);
        let evidence = usize::from(!said.is_empty()) + usize::from(noted);
        found.part(RunSection::Memory, if evidence == 0 { CheckExtent::Unchecked } else { CheckExtent::Partly });
    }

    /// Compares the final status and the metrics.
    fn outcomes(&self, found: &mut RunFindings) {
        let end = self.of(phase::TERMINATE).next_back();
        let said = end.and_then(|it| it.payload.get("status"));
        let said = said.filter(|it| it.as_str().and_then(RunStatus::named).is_some());
        let ended = self.same(Code::Outcomes, "/outcomes/status", said, found);
        found.part(RunSection::Status, CheckExtent::of(usize::from(ended), 1));
        // A tool may write another sentence into the state than into its last event. That is no contradiction.
        let message = end.and_then(|it| it.payload.get("message"));
        let projected = self.projected("summary");
        let same = projected || message.is_some_and(|it| *it == self.state["outcomes"]["summary"]);
        found.part(RunSection::Message, CheckExtent::of(usize::from(same), 1));
        self.metrics(found);
    }

    /// Compares the metrics that both the state and an event have, each with its last value.
    fn metrics(&self, found: &mut RunFindings) {
        let insights = self.of(phase::INSIGHT).filter_map(|it| it.payload.get("metrics")?.as_object());
        // Collecting keeps the last value of each name, as the state does.
        let said: HashMap<&String, &Value> = insights.flatten().collect();
        let told = self.state["outcomes"]["metrics"].as_object();
        let (mut checked, all) = (0, told.map_or(0, Map::len));
        for (name, value) in told.into_iter().flatten() {
            let Some(said) = said.get(name) else { continue };
            checked += 1;
            if !is_same(value, said) {
                let place = Pointer::root().child("outcomes").child("metrics").child(name);
                found.add(RunFinding::about(Code::Outcomes, FILE, place.as_str()));
            }
        }
        found.part(RunSection::Metrics, CheckExtent::of(if self.projected("metrics") { all } else { checked }, all));
    }

    /// Returns whether the projection has a member of the outcomes, which was then compared before.
    fn projected(&self, name: &str) -> bool {
        self.projection.and_then(|it| it.payload.get("outcomes")?.get(name)).is_some()
    }

    /// Compares the actions, one for each act that is no summary of others.
    fn actions(&self, found: &mut RunFindings) {
        let Some(told) = self.state["outcomes"]["actions"].as_array() else {
            return found.part(RunSection::Actions, CheckExtent::Unchecked);
        };
        let acts: Vec<&EventRecord> =
            self.of(phase::ACT).filter(|it| it.payload.get("synthetic") != Some(&Value::Bool(true))).collect();
        found.part(
            RunSection::Actions,
            if self.projection.is_some() { CheckExtent::Checked } else { CheckExtent::Partly },
        );
        if acts.len() != told.len() {
            // With different numbers a comparison by index would report every later action.
            return found.add(RunFinding::about(Code::Outcomes, FILE, "/outcomes/actions"));
        }
        for (index, act) in acts.iter().enumerate() {
            let result = act.payload.get("result_status").or(act.payload.get("outcome"));
            let result = result.filter(|it| it.as_str().and_then(RunStatus::named).is_some());
            let at = |name: &str| format!("/outcomes/actions/{index}/{name}");
            self.same(Code::Outcomes, &at("result_status"), result, found);
            for name in ["tool", "kind", "input_excerpt", "step_id"] {
                self.same(Code::Outcomes, &at(name), act.payload.get(name), found);
            }
            // Episodes without a projection have the moment when the state was written instead.
            if self.projection.is_some() && self.state.pointer(&at("timestamp")).is_some_and(|it| *it != act.timestamp)
            {
                found.add(RunFinding::about(Code::Outcomes, FILE, &at("timestamp")));
            }
        }
    }
}

/// Compares the id of the episode in the files that only a finished one has. Nothing else in them follows from another
/// system's events.
pub(super) fn derived(folder: &Folder, episode: Option<&str>, found: &mut RunFindings) {
    for (artefact, part) in [(Artefact::Summary, RunSection::Summary), (Artefact::Final, RunSection::Final)] {
        let Some(bytes) = folder.bytes(artefact) else { continue };
        let name =
            parse(bytes, &ParseLimits::default()).ok().and_then(|it| it["episode_id"].as_str().map(str::to_owned));
        if name.as_deref().is_some_and(|it| Some(it) != episode) {
            found.add(RunFinding::of(Code::Episode, artefact.file()));
        }
        found.part(part, if name.is_some() { CheckExtent::Partly } else { CheckExtent::Unchecked });
    }
    if folder.bytes(Artefact::Learn).is_some() {
        found.part(RunSection::Learn, CheckExtent::Unchecked);
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    // The canonical form makes `1` and `1.0` equal.
    one == other || canonical(one) == canonical(other)
}

/// Returns a belief without its source, which the text and the schema write in two ways.
fn belief(it: &Value) -> Option<String> {
    let (statement, confidence) = (it.get("statement")?.as_str()?, it.get("confidence").filter(|it| it.is_number())?);
    Some(format!("{} {statement}", canonical(confidence)))
}

fn fact(it: &Value) -> Option<(String, String)> {
    Some((it.get("key")?.as_str()?.to_owned(), canonical(it.get("value")?)))
}
