//! Checks the events: one episode, unique ids, causes that came before, valid links.

use std::collections::BTreeSet;

use serde_json::Value;

use super::parts::{CheckExtent, RunSection};
use super::{RunFindings, RunFolder};
use crate::episode::Artefact;
use crate::episode::event_line::phase;
use crate::episode::finding::{Code, Note, RunFinding};

const FILE: &str = Artefact::Events.file();

pub(super) fn check(run: &RunFolder, found: &mut RunFindings) {
    found.part(RunSection::Events, CheckExtent::Unchecked);
    if run.lines.is_empty() {
        return;
    }
    if !run.lines[0].record.is(phase::START) {
        found.add(RunFinding::at(Code::EventStart, FILE, 1));
    }
    let mut ids = BTreeSet::new();
    // One link is enough: a run with links must have all of them, or an attacker could remove some.
    let linked = run.lines.iter().any(|it| it.record.previous.is_some());
    let mut before = Value::Null;
    for (at, line) in run.lines.iter().enumerate() {
        let record = &line.record;
        if run.episode_id.as_deref() != Some(record.episode_id.as_str()) {
            found.add(RunFinding::at(Code::Episode, FILE, at + 1));
        }
        if record.caused_by.as_ref().is_some_and(|it| !ids.contains(it.as_str())) {
            found.add(RunFinding::at(Code::EventCause, FILE, at + 1));
        }
        if record.id.as_ref().is_some_and(|it| !ids.insert(it.as_str())) {
            found.add(RunFinding::at(Code::EventId, FILE, at + 1));
        }
        if linked && record.previous.as_ref() != Some(&before) {
            found.add(RunFinding::at(Code::EventPrevious, FILE, at + 1));
        }
        // The next line must contain this hash.
        before = line.hash.to_string().into();
    }
    found.part(RunSection::Events, if linked { CheckExtent::Checked } else { CheckExtent::Partly });
    if !linked {
        found.note(Note::NoEventLinks, FILE);
    }
}
