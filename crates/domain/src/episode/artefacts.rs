//! Builds the files of an episode from its events: adds projections, links the lines, and writes each file's bytes.

use serde_json::Value;

use super::Artefact;
use super::event_line::{EventRecord, phase};
use super::manifest;
use super::state::{self, OutcomeDetail, PROJECTOR, status};
use crate::chain::hash::Digest;
use crate::json::canonical::canonical;

/// Gateway events after which an episode waits and its state is written.
const PAUSES: [&str; 1] = ["transition.held"];
/// Number of pauses that get a projection of their own. Each projection covers everything before it, and an episode may
/// be held thousands of times.
pub const PAUSES_TOLD_MAX: usize = 100;

/// Complete timeline of an episode: each event with its link, and a projection wherever the state was written.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    events: Vec<EventRecord>,
    lines: Vec<u8>,
}

impl Timeline {
    /// Builds the timeline. A projection follows each of the first pauses, the end, and the last event. So an export at
    /// one pause is the beginning of a later export.
    pub fn of(happened: Vec<EventRecord>) -> Self {
        let mut timeline = Self { events: Vec::with_capacity(happened.len() + 1), lines: Vec::new() };
        let last = happened.len().saturating_sub(1);
        let (mut before, mut pauses) = (Value::Null, 0);
        for (at, event) in happened.into_iter().enumerate() {
            let is_pause = is_pause(&event);
            pauses += usize::from(is_pause);
            // Each projection repeats the state, so their number is limited.
            let told = is_pause && pauses <= PAUSES_TOLD_MAX;
            let writes = at == last || told || event.is(phase::TERMINATE);
            timeline.push(event, &mut before);
            if writes {
                let projection =
                    projection(&timeline.events, if told { OutcomeDetail::Short } else { OutcomeDetail::Whole });
                timeline.push(projection, &mut before);
            }
        }
        timeline
    }

    fn push(&mut self, mut event: EventRecord, before: &mut Value) {
        // Each line contains the hash of the previous one, so a removed or changed line is detected.
        event.previous = Some(before.take());
        let line = event.line();
        *before = Digest::of_file(line.as_bytes()).to_string().into();
        self.lines.extend_from_slice(line.as_bytes());
        self.lines.push(b'\n');
        self.events.push(event);
    }

    pub fn events(&self) -> &[EventRecord] {
        &self.events
    }

    /// Returns whether the episode is finished.
    pub fn is_finished(&self) -> bool {
        status(&self.events).is_final()
    }

    /// Returns the bytes of a file, or `None` if the episode does not have it yet. [`Self::manifest`] builds the
    /// manifest from all other files.
    pub fn bytes(&self, artefact: Artefact) -> Option<Vec<u8>> {
        // An unfinished run would need another file after its next event.
        if artefact.is_of_finished_runs() && !self.is_finished() {
            return None;
        }
        let one = |value: &Value| (canonical(value) + "\n").into_bytes();
        match artefact {
            Artefact::Events => Some(self.lines.clone()),
            Artefact::Learn => Some(state::learn(&self.events).iter().flat_map(one).collect()),
            Artefact::State => Some(one(&state::state(&self.events))),
            Artefact::Summary => Some(one(&state::summary(&self.events))),
            Artefact::Final => Some(one(&state::final_marker(&self.events))),
            // The manifest contains the hashes of the other files and is built from them.
            Artefact::Manifest => None,
        }
    }

    /// Returns every existing file except the manifest.
    pub fn files(&self) -> Vec<(Artefact, Vec<u8>)> {
        Artefact::ALL.into_iter().filter_map(|it| Some((it, self.bytes(it)?))).collect()
    }

    /// Builds the manifest of a finished episode. `sign` receives it without a signature and returns it signed.
    pub fn manifest(&self, sign: impl FnOnce(Value) -> Value) -> Option<Vec<u8>> {
        let last = self.events.last().filter(|_| self.is_finished())?;
        let files = self.files();
        let named: Vec<(Artefact, &[u8])> = files.iter().map(|(it, bytes)| (*it, bytes.as_slice())).collect();
        let made = manifest::make(&last.episode_id, &last.timestamp, &named);
        Some((canonical(&sign(made)) + "\n").into_bytes())
    }
}

fn is_pause(event: &EventRecord) -> bool {
    event.is(phase::RUNTIME) && event.event_type.as_deref().is_some_and(|it| PAUSES.contains(&it))
}

fn projection(events: &[EventRecord], evidence: OutcomeDetail) -> EventRecord {
    let last = events.last().expect("a projection follows an event");
    EventRecord {
        agent_id: PROJECTOR.to_owned(),
        caused_by: last.id.clone(),
        episode_id: last.episode_id.clone(),
        event_type: Some(state::projection_type().to_owned()),
        evidence_ids: Vec::new(),
        id: last.id.as_ref().map(|it| format!("{it}.state")),
        payload: state::projection(events, evidence),
        phase: phase::RUNTIME.to_owned(),
        timestamp: last.timestamp.clone(),
        previous: None,
    }
}
