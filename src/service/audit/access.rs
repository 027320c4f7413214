//! Accounts, tokens, sessions, links, flows and the gateway: each row against the events about it.
//!
//! A row's revision counts its changes, and each change has its event: a row that was put back to what it once
//! said, seal and all, has too low a revision.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Audit;
use crate::domain::event::{Event, EventType};
use crate::domain::time::Timestamp;
use crate::service::policies::activation_data;
use crate::store::records::GATEWAY_ID;
use crate::store::row::Table;

/// How many changes a row had, and what made it.
#[derive(Default)]
struct Life<'a> {
    made: Option<&'a Event>,
    changes: i64,
}

type Lives<'a> = BTreeMap<&'a str, Life<'a>>;

fn text<'a>(event: &'a Event, name: &str) -> Option<&'a str> {
    event.data.get(name).and_then(Value::as_str)
}

fn made<'a>(lives: &mut Lives<'a>, id: Option<&'a str>, event: &'a Event) {
    if let Some(id) = id {
        lives.entry(id).or_default().made = Some(event);
    }
}

fn changed<'a>(lives: &mut Lives<'a>, id: Option<&'a str>) {
    if let Some(id) = id {
        lives.entry(id).or_default().changes += 1;
    }
}

impl Audit<'_> {
    pub(super) fn check_access(&mut self) {
        let outside: Vec<&Event> =
            self.all.events.values().map(|it| &it.record).filter(|it| it.thread.is_none()).collect();
        self.check_accounts(&outside);
        self.check_tokens(&outside);
        self.check_sessions(&outside);
        self.check_links_made(&outside);
        self.check_flows(&outside);
        self.check_amendments(&outside);
        self.check_gateway(&outside);
    }

    fn check_accounts(&mut self, outside: &[&Event]) {
        let mut lives = Lives::new();
        let mut admissions: BTreeMap<(&str, i64), EventType> = BTreeMap::new();
        for event in outside {
            match event.kind {
                EventType::AccountAdded => made(&mut lives, text(event, "account"), event),
                EventType::AccountDisabled | EventType::AccountEnabled => {
                    changed(&mut lives, text(event, "account"));
                    let revision = event.data.get("revision").and_then(Value::as_i64);
                    admissions.extend(text(event, "account").zip(revision).map(|it| (it, event.kind)));
                }
                _ => {}
            }
        }
        for (id, stored) in &self.all.accounts {
            let account = &stored.record;
            let life = lives.get(id.as_str());
            let said = life.and_then(|it| it.made).map(|it| &it.data);
            let as_made =
                json!({"account": account.id, "name": account.name, "role": account.role, "groups": account.groups});
            self.expect(said == Some(&as_made), Table::Accounts, id, "it is not the account that an event made");
            self.expect_revision(Table::Accounts, id, stored.revision, life);
            let last = admissions.get(&(id.as_str(), stored.revision));
            let disabled = last == Some(&EventType::AccountDisabled);
            self.expect(
                account.disabled == disabled,
                Table::Accounts,
                id,
                "events and row disagree on whether it is disabled",
            );
        }
        self.expect_all(Table::Accounts, &lives, &self.all.accounts.keys().map(String::as_str).collect());
    }

    fn check_tokens(&mut self, outside: &[&Event]) {
        let mut lives = Lives::new();
        for event in outside {
            match event.kind {
                EventType::TokenAdded => made(&mut lives, text(event, "token"), event),
                EventType::TokenRevoked => changed(&mut lives, text(event, "token")),
                _ => {}
            }
        }
        for (id, stored) in &self.all.tokens {
            let token = &stored.record;
            let life = lives.get(id.as_str());
            let as_made = json!({
                "token": token.id, "name": token.name, "role": token.role, "owner": token.owner,
                "flow": token.flow, "nodes": token.nodes,
            });
            let said = life.and_then(|it| it.made).map(|it| &it.data);
            self.expect(said == Some(&as_made), Table::Tokens, id, "it is not the token that an event made");
            self.expect_revision(Table::Tokens, id, stored.revision, life);
            let revoked = life.is_some_and(|it| it.changes > 0);
            self.expect(
                token.revoked == revoked,
                Table::Tokens,
                id,
                "events and row disagree on whether it is revoked",
            );
        }
        self.expect_all(Table::Tokens, &lives, &self.all.tokens.keys().map(String::as_str).collect());
    }

    fn check_sessions(&mut self, outside: &[&Event]) {
        let mut lives = Lives::new();
        for event in outside {
            match event.kind {
                EventType::SignedIn => made(&mut lives, text(event, "session"), event),
                EventType::SignedOut => changed(&mut lives, text(event, "session")),
                _ => {}
            }
        }
        for (id, stored) in &self.all.sessions {
            let session = &stored.record;
            let life = lives.get(id.as_str());
            let whose = life.and_then(|it| it.made).and_then(|it| text(it, "account"));
            self.expect(whose == Some(session.account.as_str()), Table::Sessions, id, "nobody signed in by it");
            self.expect_revision(Table::Sessions, id, stored.revision, life);
            let ended = life.is_some_and(|it| it.changes > 0);
            self.expect(session.ended == ended, Table::Sessions, id, "events and row disagree on whether it ended");
        }
        self.expect_all(Table::Sessions, &lives, &self.all.sessions.keys().map(String::as_str).collect());
    }

    fn check_links_made(&mut self, outside: &[&Event]) {
        let mut lives = Lives::new();
        for event in outside {
            match event.kind {
                EventType::SetupLinkMade => made(&mut lives, text(event, "link"), event),
                EventType::SetupLinkUsed | EventType::SignedIn => changed(&mut lives, text(event, "link")),
                _ => {}
            }
        }
        for (id, stored) in &self.all.links {
            let life = lives.get(id.as_str());
            let until: Option<Timestamp> = life
                .and_then(|it| it.made)
                .and_then(|it| serde_json::from_value(it.data.get("expires_at")?.clone()).ok());
            self.expect(
                until == Some(stored.record.expires_at),
                Table::Links,
                id,
                "it is not the link that an event made",
            );
            self.expect_revision(Table::Links, id, stored.revision, life);
            let used = life.is_some_and(|it| it.changes > 0);
            self.expect(stored.record.used == used, Table::Links, id, "events and row disagree on whether it was used");
        }
        self.expect_all(Table::Links, &lives, &self.all.links.keys().map(String::as_str).collect());
    }

    fn check_flows(&mut self, outside: &[&Event]) {
        let mut named: BTreeSet<&str> = BTreeSet::new();
        let mut activated: BTreeSet<&str> = BTreeSet::new();
        for event in outside.iter().filter(|it| it.kind == EventType::PolicyActivated) {
            named.extend(event.flow.as_ref().map(|it| it.as_str()));
            activated.extend(text(event, "policy"));
        }
        for (id, stored) in &self.all.flows {
            let flow = &stored.record;
            let about = changes_of(outside.iter().filter(|it| it.flow.as_ref() == Some(&flow.id)));
            let last = about.iter().rev().find(|(_, it)| it.kind == EventType::PolicyActivated);
            let same = last.is_some_and(|(revision, it)| {
                it.data == activation_data(flow, *revision) && it.at == flow.activated_at
            });
            self.expect(same, Table::Flows, id, "its policy is not the one activated last");
            self.check_halt(Table::Flows, id, (&flow.halt, flow.stops.as_ref()), &about);
            let of_flow = outside.iter().filter(|it| it.flow.as_ref() == Some(&flow.id));
            let dense = revisions_of(of_flow).into_iter().eq(1..=stored.revision);
            self.expect(dense, Table::Flows, id, "its revision is not the one that its events lead to");
            for digest in flow.accepted() {
                let known = self.all.policies.contains_key(&digest.to_string());
                self.expect(known, Table::Policies, digest, "a flow's policy is gone");
            }
        }
        for flow in named.iter().filter(|it| !self.all.flows.contains_key(**it)).collect::<Vec<_>>() {
            self.note(Table::Flows, flow, "a policy was activated for it, and its row is gone");
        }
        let proposed = outside.iter().filter(|it| it.kind == EventType::PolicyProposed);
        let known: BTreeSet<&str> = proposed.filter_map(|it| text(it, "policy")).chain(activated).collect();
        for digest in known.iter().filter(|it| !self.all.policies.contains_key(**it)).collect::<Vec<_>>() {
            self.note(Table::Policies, digest, "it was activated or proposed, and its row is gone");
        }
        for id in self.all.policies.keys().filter(|it| !known.contains(it.as_str())).collect::<Vec<_>>() {
            self.note(Table::Policies, id, "no event activated or proposed it");
        }
    }

    fn check_gateway(&mut self, outside: &[&Event]) {
        let Some(stored) = self.all.gateway.get(GATEWAY_ID) else {
            self.note(Table::Gateway, GATEWAY_ID, "the gateway's own row is gone");
            return;
        };
        let about = changes_of(outside.iter().filter(|it| it.flow.is_none()));
        let ours = stored.record.issuer == self.keys.issuer();
        self.expect(ours, Table::Gateway, GATEWAY_ID, "its issuer is not the keyring's");
        let row = &stored.record;
        self.check_halt(Table::Gateway, GATEWAY_ID, (&row.halt, row.stops.as_ref()), &about);
        let all = revisions_of(outside.iter().filter(|it| it.flow.is_none()));
        let dense = all.into_iter().eq(2..=stored.revision);
        self.expect(dense, Table::Gateway, GATEWAY_ID, "its revision is not the one that its events lead to");
    }

    fn expect_revision(&mut self, table: Table, id: &str, revision: i64, life: Option<&Life<'_>>) {
        let expected = 1 + life.map_or(0, |it| it.changes);
        self.expect(
            revision == expected,
            table,
            id,
            format!("it stands at revision {revision}, its events lead to {expected}"),
        );
    }

    /// What an event made is there.
    fn expect_all(&mut self, table: Table, lives: &Lives<'_>, kept: &BTreeSet<&str>) {
        for id in lives.keys().filter(|it| !kept.contains(**it)) {
            self.note(table, id, "an event made it, and its row is gone");
        }
    }
}

const fn is_halt(kind: EventType) -> bool {
    matches!(kind, EventType::Halted | EventType::HaltLifting | EventType::HaltLifted)
}

fn changes<'a>(about: impl Iterator<Item = &'a &'a Event>) -> impl Iterator<Item = (i64, &'a Event)> {
    let changes = about.filter(|it| it.kind == EventType::PolicyActivated || is_halt(it.kind));
    changes.filter_map(|it| Some((it.data.get("revision")?.as_i64()?, *it)))
}

/// Activations and halts by the revision of the row that each made. Their moments may be the same.
fn changes_of<'a>(about: impl Iterator<Item = &'a &'a Event>) -> BTreeMap<i64, &'a Event> {
    changes(about).collect()
}

/// The revisions that events made, each as often as it was made: a row that was put back makes one twice.
fn revisions_of<'a>(about: impl Iterator<Item = &'a &'a Event>) -> Vec<i64> {
    let mut revisions: Vec<i64> = changes(about).map(|it| it.0).collect();
    revisions.sort_unstable();
    revisions
}
