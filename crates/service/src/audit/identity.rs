//! Checks accounts, tokens, sessions, links, flows and the gateway row against their events.
//!
//! The revision of a row counts its changes, and each change has an event. A row that was replaced by an older copy
//! with a valid seal therefore has a revision that is too low.

use std::collections::{BTreeMap, BTreeSet};

use countersign_domain::identity::account::OneTimeLink;
use countersign_domain::interrupts::signed_post::SigningSecretRef;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::primitives::time::Timestamp;
use countersign_store::records::{GATEWAY_ID, READY};
use countersign_store::row::Table;
use serde_json::{Value, json};

use super::AuditRun;
use crate::identity::oidc_sign_in::added_data;
use crate::policy_changes::activate::activation_data;

/// The event that created a row, and the number of changes since then.
#[derive(Default)]
pub(super) struct RowHistory<'a> {
    pub(super) made: Option<&'a Event>,
    changes: i64,
}

pub(super) type RowHistories<'a> = BTreeMap<&'a str, RowHistory<'a>>;

pub(super) fn text<'a>(event: &'a Event, name: &str) -> Option<&'a str> {
    event.data.get(name).and_then(Value::as_str)
}

pub(super) fn made<'a>(lives: &mut RowHistories<'a>, id: Option<&'a str>, event: &'a Event) {
    if let Some(id) = id {
        lives.entry(id).or_default().made = Some(event);
    }
}

pub(super) fn changed<'a>(lives: &mut RowHistories<'a>, id: Option<&'a str>) {
    if let Some(id) = id {
        lives.entry(id).or_default().changes += 1;
    }
}

/// Sorts events outside threads by time. Their order is unknown because clocks can stop and go back.
pub(super) fn in_any_order(told: impl Iterator<Item = (Timestamp, Value)>) -> Vec<(Timestamp, String)> {
    let mut told: Vec<(Timestamp, String)> = told.map(|it| (it.0, it.1.to_string())).collect();
    told.sort();
    told
}

impl AuditRun<'_> {
    pub(super) fn check_access(&mut self) {
        let outside: Vec<&Event> =
            self.all.events.values().map(|it| &it.record).filter(|it| it.thread.is_none()).collect();
        self.check_accounts(&outside);
        self.check_tokens(&outside);
        self.check_sessions(&outside);
        self.check_links_made(&outside);
        self.check_flows(&outside);
        self.check_policy_changes(&outside);
        self.check_interrupts(&outside);
        self.check_imports(&outside);
        self.check_gateway(&outside);
        self.check_delegations(&outside);
        self.check_endpoints(&outside);
        self.check_seen();
    }

    /// Checks failed sign-ins and last-seen times. No event counts them and nothing signed depends on them, so only
    /// their subject can be checked.
    fn check_seen(&mut self) {
        for asker in self.all.tries.keys() {
            let of = asker.split_once('/');
            let known = of.is_some_and(|(kind, id)| match kind {
                "account" | "own" => self.all.accounts.contains_key(id),
                // A keyed hash selects these counters, so they cannot be traced back to a name.
                "name" | "address" | "device" => true,
                _ => false,
            });
            self.expect(
                known,
                Table::Tries,
                asker,
                "the failed sign-ins belong to no account, name, address or device",
            );
        }
        for of in self.all.sightings.keys() {
            let known = of.split_once('/').is_some_and(|(kind, id)| match kind {
                "account" => self.all.accounts.contains_key(id),
                "token" => self.all.tokens.contains_key(id),
                "session" => self.all.sessions.contains_key(id),
                _ => of == READY,
            });
            self.expect(known, Table::Sightings, of, "the last-seen time belongs to no account, token or session");
        }
    }

    fn check_accounts(&mut self, outside: &[&Event]) {
        let mut lives = RowHistories::new();
        let mut admissions: BTreeMap<(&str, i64), EventType> = BTreeMap::new();
        let mut changes: BTreeMap<(&str, i64), &Event> = BTreeMap::new();
        let mut hands: BTreeMap<(&str, i64), Value> = BTreeMap::new();
        for event in outside {
            let revision = event.data.get("revision").and_then(Value::as_i64);
            let at = text(event, "account").zip(revision);
            match event.kind {
                EventType::AccountAdded => made(&mut lives, text(event, "account"), event),
                // An account from an invitation names the maker of the link as the author of its last change.
                EventType::SetupLinkUsed => {
                    let made = text(event, "account").map(|it| (it, 1));
                    hands.extend(made.zip(author_of_change(event, event.data.get("at"))));
                    continue;
                }
                EventType::AccountDisabled | EventType::AccountEnabled => {
                    admissions.extend(at.map(|it| (it, event.kind)));
                }
                EventType::AccountChanged => changes.extend(at.map(|it| (it, *event))),
                EventType::PasswordChanged | EventType::PasswordReset => {}
                _ => continue,
            }
            if event.kind != EventType::AccountAdded {
                changed(&mut lives, text(event, "account"));
                hands.extend(at.zip(author_of_change(event, None)));
            }
        }
        for (id, stored) in &self.all.accounts {
            let account = &stored.record;
            let life = lives.get(id.as_str());
            let all = (id.as_str(), 0)..=(id.as_str(), i64::MAX);
            let mut said = life.and_then(|it| it.made).map(|it| it.data.clone());
            if let (Some(said), Some((_, last))) = (&mut said, changes.range(all.clone()).next_back()) {
                // Role and groups come from the latest change. All other members come from the first event.
                said["role"] = last.data["role"].clone();
                said["groups"] = last.data["groups"].clone();
            }
            self.expect(said == Some(added_data(account)), Table::Accounts, id, "the account differs from its events");
            self.expect_revision(Table::Accounts, id, stored.revision, life);
            let disabled =
                admissions.range(all.clone()).next_back().map(|it| *it.1) == Some(EventType::AccountDisabled);
            let same = account.disabled == disabled;
            self.expect(
                same,
                Table::Accounts,
                id,
                "the row and its events disagree on whether the account is disabled",
            );
            let hand = hands.range(all).next_back().map(|it| it.1);
            let same = serde_json::to_value(&account.changed).ok().as_ref() == Some(hand.unwrap_or(&Value::Null));
            self.expect(same, Table::Accounts, id, "the last change of the account differs from its events");
        }
        self.expect_all(Table::Accounts, &lives, &self.all.accounts.keys().map(String::as_str).collect());
    }

    fn check_tokens(&mut self, outside: &[&Event]) {
        let mut lives = RowHistories::new();
        let (mut revoked, mut secrets) = (BTreeSet::new(), BTreeMap::<&str, BTreeSet<SigningSecretRef>>::new());
        for event in outside {
            let token = text(event, "token");
            match event.kind {
                EventType::TokenAdded => made(&mut lives, token, event),
                EventType::TokenRevoked => {
                    changed(&mut lives, token);
                    revoked.extend(token);
                }
                EventType::PostSecretMade => {
                    changed(&mut lives, token);
                    let generation = event.data.get("generation").and_then(Value::as_u64);
                    let generation = generation.and_then(|it| u32::try_from(it).ok()).unwrap_or_default();
                    secrets
                        .entry(token.unwrap_or_default())
                        .or_default()
                        .insert(SigningSecretRef { generation, since: event.at });
                }
                _ => {}
            }
        }
        for (id, stored) in &self.all.tokens {
            let token = &stored.record;
            let life = lives.get(id.as_str());
            let mut as_made = json!({
                "token": token.id, "name": token.name, "role": token.role, "owner": token.owner,
                "flow": token.flow, "nodes": token.nodes,
            });
            if let Some(end) = token.expires_at {
                as_made["expires_at"] = json!(end);
            }
            let mut said = life.and_then(|it| it.made).map(|it| it.data.clone());
            if let Some(Value::Object(said)) = &mut said {
                // Only the event names the person who added the token.
                said.remove("by");
            }
            self.expect(said == Some(as_made), Table::Tokens, id, "the token differs from the event that added it");
            self.expect_revision(Table::Tokens, id, stored.revision, life);
            let made = secrets.get(id.as_str());
            // Generations count from 1, so a missing event is found.
            let dense = made.is_none_or(|it| (1..).zip(it).all(|(number, it)| it.generation == number));
            let last = made.and_then(|it| it.last()).copied();
            let same = dense && token.signing == last;
            self.expect(same, Table::Tokens, id, "the row and its events disagree on the signing secret of the token");
            self.expect(
                token.revoked == revoked.contains(id.as_str()),
                Table::Tokens,
                id,
                "the row and its events disagree on whether the token is revoked",
            );
        }
        self.expect_all(Table::Tokens, &lives, &self.all.tokens.keys().map(String::as_str).collect());
    }

    fn check_sessions(&mut self, outside: &[&Event]) {
        let mut lives = RowHistories::new();
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
            let by = life.and_then(|it| it.made).and_then(|it| text(it, "passkey"));
            let same_key = by == session.passkey.as_ref().map(|it| it.id.as_str());
            let same = whose == Some(session.account.as_str()) && same_key;
            self.expect(same, Table::Sessions, id, "no sign-in event matches the session");
            self.expect_revision(Table::Sessions, id, stored.revision, life);
            // A session changes only once, when it ends.
            let ended = life.is_some_and(|it| it.changes > 0);
            self.expect(
                session.ended == ended,
                Table::Sessions,
                id,
                "the row and its events disagree on whether the session ended",
            );
        }
        self.expect_all(Table::Sessions, &lives, &self.all.sessions.keys().map(String::as_str).collect());
    }

    fn check_links_made(&mut self, outside: &[&Event]) {
        let mut lives = RowHistories::new();
        for event in outside {
            match event.kind {
                EventType::SetupLinkMade | EventType::ProviderAsked | EventType::Invited | EventType::ResetLinkMade => {
                    made(&mut lives, text(event, "link"), event);
                }
                EventType::SetupLinkUsed
                | EventType::SignedIn
                | EventType::SignInFailed
                | EventType::PasswordReset
                | EventType::LinkWithdrawn => changed(&mut lives, text(event, "link")),
                _ => {}
            }
        }
        for (id, stored) in &self.all.links {
            let life = lives.get(id.as_str());
            let until: Option<Timestamp> = life
                .and_then(|it| it.made)
                .and_then(|it| serde_json::from_value(it.data.get("expires_at")?.clone()).ok());
            self.expect(
                until == Some(stored.record.expires_at) && is_for(life.and_then(|it| it.made), &stored.record),
                Table::Links,
                id,
                "the link differs from the event that created it",
            );
            self.expect_revision(Table::Links, id, stored.revision, life);
            // A link changes only once, when it is used or withdrawn.
            let used = life.is_some_and(|it| it.changes > 0);
            self.expect(
                stored.record.used == used,
                Table::Links,
                id,
                "the row and its events disagree on whether the link was used",
            );
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
            self.expect(same, Table::Flows, id, "the policy of the flow is not the one that was activated last");
            self.check_halt(Table::Flows, id, &flow.halt, flow.stops.as_ref(), &about);
            let of_flow = outside.iter().filter(|it| it.flow.as_ref() == Some(&flow.id));
            // Each revision must come from exactly one event. A restored row repeats or skips one.
            let dense = revisions_of(of_flow).into_iter().eq(1..=stored.revision);
            self.expect(
                dense,
                Table::Flows,
                id,
                "the revision of the row differs from the changes that its events record",
            );
            for digest in flow.accepted() {
                let known = self.all.policies.contains_key(&digest.to_string());
                self.expect(known, Table::Policies, digest, "the policy is missing, but a flow accepts it");
            }
        }
        for flow in named.iter().filter(|it| !self.all.flows.contains_key(**it)).collect::<Vec<_>>() {
            self.note(Table::Flows, flow, "the row of the flow is missing, but an event activated a policy for it");
        }
        let proposed = outside.iter().filter(|it| it.kind == EventType::PolicyProposed);
        let known: BTreeSet<&str> = proposed.filter_map(|it| text(it, "policy")).chain(activated).collect();
        for digest in known.iter().filter(|it| !self.all.policies.contains_key(**it)).collect::<Vec<_>>() {
            self.note(Table::Policies, digest, "the policy is missing, but an event activated or proposed it");
        }
        for id in self.all.policies.keys().filter(|it| !known.contains(it.as_str())).collect::<Vec<_>>() {
            self.note(Table::Policies, id, "no event activated or proposed the policy");
        }
    }

    fn check_gateway(&mut self, outside: &[&Event]) {
        let Some(stored) = self.all.gateway.get(GATEWAY_ID) else {
            self.note(Table::Gateway, GATEWAY_ID, "the row of the gateway itself is missing");
            return;
        };
        let about = changes_of(outside.iter().filter(|it| it.flow.is_none()));
        let ours = stored.record.issuer == self.keys.issuer();
        self.expect(ours, Table::Gateway, GATEWAY_ID, "the issuer of the gateway is not the issuer of the keyring");
        let row = &stored.record;
        self.check_halt(Table::Gateway, GATEWAY_ID, &row.halt, row.stops.as_ref(), &about);
        let all = revisions_of(outside.iter().filter(|it| it.flow.is_none()));
        // The first revision of the gateway row has no event.
        let dense = all.into_iter().eq(2..=stored.revision);
        self.expect(
            dense,
            Table::Gateway,
            GATEWAY_ID,
            "the revision of the row differs from the changes that its events record",
        );
    }

    pub(super) fn expect_revision(&mut self, table: Table, id: &str, revision: i64, life: Option<&RowHistory<'_>>) {
        let expected = 1 + life.map_or(0, |it| it.changes);
        self.expect(
            revision == expected,
            table,
            id,
            format!("the row has revision {revision}, but its events lead to revision {expected}"),
        );
    }

    /// Reports rows that an event created and that are missing.
    pub(super) fn expect_all(&mut self, table: Table, lives: &RowHistories<'_>, kept: &BTreeSet<&str>) {
        for id in lives.keys().filter(|it| !kept.contains(**it)) {
            self.note(table, id, "the row is missing, but an event records it");
        }
    }
}

/// Returns the person who made the change in an event, and its time.
fn author_of_change(event: &Event, at: Option<&Value>) -> Option<Value> {
    let (by, name) = (text(event, "by")?, text(event, "by_name")?);
    let at = at.cloned().unwrap_or_else(|| json!(event.at));
    Some(json!({"by": by, "name": name, "at": at}))
}

/// Returns true if the link has the purpose in its event. Events of older versions have no purpose.
fn is_for(made: Option<&Event>, link: &OneTimeLink) -> bool {
    made.and_then(|it| it.data.get("for"))
        .is_none_or(|it| serde_json::to_value(&link.purpose).ok().as_ref() == Some(it))
}

const fn is_halt(kind: EventType) -> bool {
    matches!(kind, EventType::Halted | EventType::HaltLifting | EventType::HaltLifted)
}

fn changes<'a>(about: impl Iterator<Item = &'a &'a Event>) -> impl Iterator<Item = (i64, &'a Event)> {
    let changes = about.filter(|it| it.kind == EventType::PolicyActivated || is_halt(it.kind));
    changes.filter_map(|it| Some((it.data.get("revision")?.as_i64()?, *it)))
}

/// Returns activations and halts by the revision of the row that each made. Their times may be equal.
fn changes_of<'a>(about: impl Iterator<Item = &'a &'a Event>) -> BTreeMap<i64, &'a Event> {
    changes(about).collect()
}

/// Returns the revisions that events made, with repetitions. A row that was replaced by an older copy makes a revision
/// twice.
fn revisions_of<'a>(about: impl Iterator<Item = &'a &'a Event>) -> Vec<i64> {
    let mut revisions: Vec<i64> = changes(about).map(|it| it.0).collect();
    revisions.sort_unstable();
    revisions
}
