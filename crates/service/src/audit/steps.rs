//! Checks steps against the events of their attempts. A step row that is missing or incomplete would allow a step to
//! run twice.

use std::collections::{BTreeMap, BTreeSet};

use countersign_domain::chain::hash::Digest;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::threads::rejected_request::RejectedRequest;
use countersign_domain::threads::step::{StepAttemptResult, content_of};
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{Transition, ValueLocation};
use countersign_store::row::Table;

use super::AuditRun;
use super::event_replay::said;
use super::load::ThreadRows;

impl AuditRun<'_> {
    /// Compares the steps of one thread with its events.
    pub(super) fn check_steps(&mut self, thread: &Thread, own: &ThreadRows<'_>) {
        let mut told: BTreeMap<String, Vec<StepAttemptResult>> = BTreeMap::new();
        let mut events: Vec<&Event> = own.events.iter().copied().filter(|it| !said(it, "step").is_empty()).collect();
        events.sort_by_key(|it| it.seq);
        for event in events {
            let id = format!("{}/{}/{}", thread.id, said(event, "node"), said(event, "step"));
            let Some(tried) = self.tried(event, &id) else { continue };
            let tries = told.entry(id).or_default();
            // A held transition has a second event when it is committed.
            if !tries.contains(&tried) {
                tries.push(tried);
            }
        }
        for (id, tries) in &told {
            let Some(row) = self.all.steps.get(id) else {
                self.note(Table::Steps, id, "the row is missing, but events record it");
                continue;
            };
            self.expect(
                row.record.tries == *tries,
                Table::Steps,
                id,
                "the attempts of the step differ from its events",
            );
            let written = u64::try_from(row.revision).is_ok_and(|it| it == tries.len() as u64);
            self.expect(written, Table::Steps, id, "the step was not written once for each attempt");
        }
        let rows = self.all.steps.iter().filter(|it| it.1.record.thread == thread.id);
        for id in rows.map(|it| it.0).filter(|it| !told.contains_key(*it)).collect::<Vec<_>>() {
            self.note(Table::Steps, id, "no event records the step");
        }
    }

    /// Reports steps of threads that do not exist.
    pub(super) fn check_orphan_steps(&mut self) {
        let threads: BTreeSet<&str> = self.all.threads.keys().map(String::as_str).collect();
        for id in self.all.steps.iter().filter(|it| !threads.contains(it.1.record.thread.as_str())).map(|it| it.0) {
            self.note(Table::Steps, id, "the step belongs to a thread that does not exist");
        }
    }

    /// Returns the attempt that an event records. Rejections that are not counted are no attempts. The content is
    /// checked only while it is stored.
    fn tried(&self, event: &Event, id: &str) -> Option<StepAttemptResult> {
        let digest = |name: &str| Digest::try_from(said(event, name).to_owned()).ok();
        match event.kind {
            EventType::TransitionCommitted | EventType::TransitionHeld => {
                let transition = digest("transition")?;
                let row = &self.all.transitions.get(&transition.to_string())?.record;
                let same = |it: &&StepAttemptResult| it.transition() == Some(transition);
                // If the values are archived, the content cannot be computed again, so the stored attempt is taken.
                let known = self.all.steps.get(id).and_then(|it| it.record.tries.iter().find(same).copied());
                match (row.values, known) {
                    (ValueLocation::Archived, Some(known)) => Some(known),
                    _ => Some(StepAttemptResult::Stated {
                        content: content_of(&self.secret_of(row), &request_of(row)),
                        transition,
                    }),
                }
            }
            EventType::TransitionRejected if event.data.get("counted")? == true => {
                Some(StepAttemptResult::Rejected { identity: digest("identity")? })
            }
            _ => None,
        }
    }
}

fn request_of(transition: &Transition) -> RejectedRequest {
    RejectedRequest {
        kind: transition.statement.kind,
        format: transition.format,
        content: transition.patch.clone(),
        attempt: transition.statement.attempt.unwrap_or(1),
        tool: transition.tool.clone(),
        usage: None,
        step: transition.step.clone(),
        join: None,
    }
}
