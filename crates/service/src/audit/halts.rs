//! Checks halts against the events that set, lifted or requested to lift them. A lift that requires two people must
//! have its second person.

use std::collections::BTreeMap;

use countersign_domain::log::event::{Event, EventType};
use countersign_domain::operations::halt::{ActiveHalts, Halt, HaltRecord, LiftQuorum, LiftRequest, lifts};
use countersign_domain::primitives::id::{AccountId, PrincipalId};
use countersign_domain::primitives::time::Timestamp;
use countersign_store::row::Table;
use serde_json::Value;

use super::AuditRun;
use crate::identity::actor::OPERATOR;

/// A halt, rebuilt from its events.
#[derive(Default)]
struct HaltEvents {
    halt: Halt,
    stops: Option<ActiveHalts>,
}

fn text<'a>(event: &'a Event, name: &str) -> Option<&'a str> {
    event.data.get(name).and_then(Value::as_str)
}

fn flag(event: &Event, name: &str) -> bool {
    event.data.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn principal(event: &Event) -> Option<PrincipalId> {
    text(event, "by").and_then(|it| PrincipalId::try_from(it).ok())
}

impl AuditRun<'_> {
    /// Replays the events of one scope in the order of the revisions that they made.
    pub(super) fn check_halt(
        &mut self,
        table: Table,
        id: &str,
        halt: &Halt,
        stops: Option<&ActiveHalts>,
        about: &BTreeMap<i64, &Event>,
    ) {
        let mut told = HaltEvents::default();
        for event in about.values() {
            match event.kind {
                EventType::HaltLifting => {
                    let lifting = lifting_of(event);
                    told.stops = lifting.map(|it| ActiveHalts::asked(told.stops.as_ref(), &told.halt, it));
                }
                EventType::Halted | EventType::HaltLifted => {
                    let next = halt_of(event);
                    // Setting a halt requires one person only. Lifting it may require two.
                    let fits = !lifts(&told.halt, &next) || self.has_lift_quorum(told.stops.as_ref(), &next, event);
                    self.expect(fits, table, id, "a halt was lifted without its second person");
                    told = HaltEvents { stops: stops_of(&told, &next, event), halt: next };
                }
                _ => {}
            }
        }
        self.expect(told.halt == *halt, table, id, "the halt differs from the one that the events set last");
        self.expect(
            told.stops.as_ref() == stops,
            table,
            id,
            "the record of who set and who lifts the halt differs from its events",
        );
    }

    /// Returns true if enough people lifted the halt. If two are required, the event names both, and the first must
    /// have requested the same lift.
    fn has_lift_quorum(&self, stops: Option<&ActiveHalts>, next: &Halt, event: &Event) -> bool {
        // A halt keeps the number of people that applied when it was set, even if the setting is lowered later.
        let needs = needs_of(event).unwrap_or_default().max(stops.map_or(LiftQuorum::One, |it| it.lift_needs));
        // An operator with the keyring may always lift a halt.
        if needs == LiftQuorum::One || text(event, "by") == Some(OPERATOR) {
            return true;
        }
        let Some(asked) = stops.and_then(|it| it.lifting.as_ref()) else { return false };
        let first = event.data.get("confirms");
        let first = |name: &str| first.and_then(|it| it.get(name)).and_then(Value::as_str);
        let same = first("by") == Some(asked.by.as_str())
            && first("person") == Some(asked.person.as_str())
            && first("at") == Some(asked.at.to_string().as_str())
            && (asked.proposing, asked.verifying) == (next.proposing, next.verifying);
        let second = text(event, "person").and_then(|it| AccountId::try_from(it).ok());
        same && second.is_some_and(|second| {
            // Two requests of the same person are no quorum.
            second != asked.person
                && principal(event).is_some_and(|it| self.is_the_same(&it, &second))
                && self.is_the_same(&asked.by, &asked.person)
        })
    }

    /// Returns true if the principal is that person, or a token that the person owns.
    fn is_the_same(&self, by: &PrincipalId, person: &AccountId) -> bool {
        let Some(account) = self.all.accounts.get(person.as_str()) else { return false };
        let token = self.all.tokens.get(by.as_str());
        *by == PrincipalId::from(person) || token.is_some_and(|it| it.record.owner == account.record.name)
    }
}

fn needs_of(event: &Event) -> Option<LiftQuorum> {
    event.data.get("lift_needs").and_then(Value::as_u64).and_then(|it| LiftQuorum::try_from(it).ok())
}

fn halt_of(event: &Event) -> Halt {
    Halt {
        proposing: flag(event, "proposing"),
        verifying: flag(event, "verifying"),
        reason: text(event, "reason").unwrap_or_default().to_owned(),
    }
}

/// Returns the expected record of active halts. Events of older versions do not set how many people lift a halt, and
/// their rows do not name who set it.
fn stops_of(told: &HaltEvents, next: &Halt, event: &Event) -> Option<ActiveHalts> {
    let stop = HaltRecord {
        by: principal(event)?,
        name: text(event, "name").unwrap_or_default().to_owned(),
        at: event.at,
        reason: next.reason.clone(),
    };
    ActiveHalts::after(told.stops.as_ref(), next, &stop, needs_of(event)?)
}

fn lifting_of(event: &Event) -> Option<LiftRequest> {
    let at: Timestamp = event.at;
    Some(LiftRequest {
        by: principal(event)?,
        person: AccountId::try_from(text(event, "person")?).ok()?,
        name: text(event, "name")?.to_owned(),
        at,
        reason: text(event, "reason")?.to_owned(),
        proposing: flag(event, "proposing"),
        verifying: flag(event, "verifying"),
    })
}
