//! Replays the chain of a thread from version 0. Checks every link, commits to every state again, and compares the
//! result with the thread row.

use std::collections::BTreeSet;

use countersign_domain::chain::commitment::{LeafSource, Tree};
use countersign_domain::chain::entry::{CommitGate, Entry};
use countersign_domain::chain::hash::{Digest, Tag};
use countersign_domain::chain::link::{ChainLink, check_link};
use countersign_domain::chain::statement::TransitionType;
use countersign_domain::identity::account::Token;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::keys::{Keys, ThreadSecret};
use countersign_domain::primitives::id::PrincipalId;
use countersign_domain::reviews::HoldState;
use countersign_domain::threads::join_carryover::ThreadContributions;
use countersign_domain::threads::thread::{HeadUse, Thread, ThreadClosure};
use countersign_domain::threads::transition::{ProposalIdentity, StateContent, Transition, patch_digest};
use countersign_domain::threads::unapproved_policies::UnapprovedPolicies;
use countersign_domain::writes::write::WriteState;
use countersign_store::records::{version_id, write_row_id};
use countersign_store::row::Table;
use serde_json::{Value, json};

use super::AuditRun;
use super::event_replay::ThreadEvents;
use super::load::ThreadRows;
use crate::branches::fork::fork_identity;
use crate::reviews::decision::review_of;
use crate::threads::commit::head_of;

/// A version that the replay has reached.
pub(super) struct ReplayedVersion {
    pub(super) entry: Entry,
    pub(super) lineage: UnapprovedPolicies,
    /// Signed root. Unless the version is erased, the replay has checked that its state commits to this root.
    root: Digest,
    rolled: Option<ReplayedState>,
}

struct ReplayedState {
    state: Value,
    tree: Tree,
    /// Version of the last full state.
    base: u64,
}

impl AuditRun<'_> {
    /// Replays the chain up to the head in the thread row.
    pub(super) fn check_chain(&mut self, thread: &Thread, story: &ThreadEvents<'_>) {
        let secret = self.keys.salt().thread_secret(thread.id.as_str());
        let mut at: Option<ReplayedVersion> = None;
        let mut standing = Some(ThreadContributions::default());
        let mut written_version = 0;
        for version in 0..=thread.head.version {
            // After a gap, nothing above it can be checked, so the replay ends here.
            let Some(next) = self.replay(thread, story, version, &secret, at.as_ref()) else { return };
            self.versions += 1;
            standing = standing.and_then(|it| self.followed(it, &next.entry));
            if matches!(next.entry.gate, CommitGate::Written { .. }) {
                written_version = version;
            }
            at = Some(next);
        }
        let Some(head) = at else { return };
        let mut expected = head_of(&head.entry);
        // Usage is not part of the chain. `check_reservation` checks it.
        expected.usage = thread.head.usage.clone();
        self.expect(expected == thread.head, Table::Threads, &thread.id, "the head is not the last entry of the chain");
        let same = head.lineage == thread.lineage;
        self.expect(same, Table::Threads, &thread.id, "the unapproved policies of the thread differ from its chain");
        let authors = standing.as_ref().map(|it| &it.authors);
        self.expect(
            authors == Some(&thread.authors),
            Table::Threads,
            &thread.id,
            "the authors of the thread differ from its chain",
        );
        let same = standing.as_ref().map(|it| &it.committed_nodes) == Some(&thread.committed_nodes);
        self.expect(same, Table::Threads, &thread.id, "the committed nodes of the thread differ from its chain");
        let same = standing.as_ref().map(|it| &it.spent) == Some(&thread.spent);
        self.expect(same, Table::Threads, &thread.id, "the usage totals of the thread differ from its chain");
        let same = written_version == thread.written_version;
        self.expect(same, Table::Threads, &thread.id, "the last written version of the thread differs from its chain");
        self.check_beyond(thread);
    }

    fn replay(
        &mut self,
        thread: &Thread,
        story: &ThreadEvents<'_>,
        version: u64,
        secret: &ThreadSecret,
        before: Option<&ReplayedVersion>,
    ) -> Option<ReplayedVersion> {
        let id = version_id(&thread.id, version);
        let Some(row) = self.all.entries.get(&id).map(|it| &it.record) else {
            self.note(Table::Entries, id, "a version of the chain is missing");
            return None;
        };
        let Some(transition) = self.all.transitions.get(&row.transition.to_string()).map(|it| &it.record) else {
            self.note(Table::Transitions, row.transition, "a transition of the chain is missing");
            return None;
        };
        // An erased version has no state, but its signed statement still names the root.
        let erased = version < thread.gone.erased;
        let rolled = if erased { None } else { Some(self.roll_forward(&id, version, transition, secret, before)?) };
        let root = rolled.as_ref().map_or(transition.statement.to, |it| it.tree.root());
        let link = ChainLink { entry: &row.entry, statement: &transition.statement, root };
        let Ok(entry) = check_link(&link, self.keys.trusted(), self.keys.issuer()) else {
            self.note(Table::Entries, id, "the entry, the statement and the state do not form one signed link");
            return None;
        };
        let whole = self.all.entries.get(&id).is_some_and(|it| it.revision == 1)
            && self.all.states.get(&id).map_or(erased, |it| it.revision == 1 && !erased);
        self.expect(whole, Table::Entries, &id, "a row of the chain was replaced, which the gateway never does");
        let in_place = entry.version == version
            && entry.thread == thread.id
            && entry.transition == row.transition
            && entry.parent == before.map(|it| it.entry.transition)
            && transition.statement.flow == thread.flow;
        self.expect(in_place, Table::Entries, &id, "the entry is not at the position that was signed");
        self.check_statement(transition, before, secret);
        self.check_gate(&entry, transition, &row.entry);
        let state = rolled.as_ref().map(|it| &it.state);
        self.check_owes(&entry, transition, story, state, before);
        if version == 0 {
            self.check_origin(thread, transition, state);
        }
        let lineage =
            before.map_or_else(UnapprovedPolicies::default, |it| it.lineage.clone().followed(&it.entry, &entry));
        Some(ReplayedVersion { entry, lineage, root, rolled })
    }

    /// Returns the state in the row. This state must be the result of applying the transition to the state before.
    fn roll_forward(
        &mut self,
        id: &str,
        version: u64,
        transition: &Transition,
        secret: &ThreadSecret,
        before: Option<&ReplayedVersion>,
    ) -> Option<ReplayedState> {
        let Some(row) = self.all.states.get(id).map(|it| &it.record) else {
            self.note(Table::States, id, "the state of the version is missing");
            return None;
        };
        let last = before.and_then(|it| it.rolled.as_ref());
        let rolled = match (&row.content, last) {
            (StateContent::Full { state, origins }, _) => {
                let tree = Tree::restore(secret, state, origins).ok();
                tree.map(|tree| ReplayedState { state: state.clone(), tree, base: version })
            }
            (StateContent::Delta { base, proposal, delta, named }, Some(before)) if *base == before.base => {
                delta.apply(&before.state).ok().map(|after| {
                    let setting = LeafSource { proposal, named };
                    let tree = before.tree.advance(secret, &before.state, &after, &setting);
                    ReplayedState { state: after, tree, base: *base }
                })
            }
            (StateContent::Delta { .. }, _) => None,
        };
        let nothing = json!({});
        // The state before the first version that is not erased no longer exists. `check_statement` still compares its
        // root.
        let erased = before.is_some() && last.is_none();
        let effect = transition.delta.apply(last.map_or(&nothing, |it| &it.state)).ok();
        match rolled {
            Some(rolled) if erased || effect.as_ref() == Some(&rolled.state) => Some(rolled),
            Some(_) => {
                self.note(Table::States, id, "the state is not the result of its transition on the state before");
                None
            }
            None => {
                self.note(Table::States, id, "the state cannot be built from its rows");
                None
            }
        }
    }

    /// Checks the start of a statement against the state before, and then the transition itself.
    fn check_statement(&mut self, transition: &Transition, before: Option<&ReplayedVersion>, secret: &ThreadSecret) {
        let statement = &transition.statement;
        let from = match before {
            Some(before) => before.root,
            None => Tree::new(secret, &json!({}), &statement.proposal).root(),
        };
        let id = transition.digest;
        self.expect(statement.from == from, Table::Transitions, id, "it does not start from the state before");
        self.check_transition(transition);
    }

    /// Checks a transition, whether or not it is in the chain.
    pub(super) fn check_transition(&mut self, transition: &Transition) {
        let (statement, id) = (&transition.statement, transition.digest);
        self.expect(statement.digest() == id, Table::Transitions, id, "the statement does not match its digest");
        let known = self.all.policies.contains_key(&statement.policy.to_string());
        self.expect(known, Table::Policies, statement.policy, "the policy of a transition is missing");
        let token = self.all.tokens.get(statement.principal.as_str()).map(|it| &it.record);
        let allowed = match statement.kind {
            // Only reviewers edit, so the principal is an account instead of a token.
            TransitionType::Edit => self.is_edited(transition),
            _ if transition.editor.is_some() => false,
            _ => token.is_some_and(|it| speaks_for(it, transition)) || self.is_asked_by_a_person(transition),
        };
        self.expect(allowed, Table::Transitions, id, "the principal of the transition was not allowed to make it");
        self.check_context_tokens(transition);
        if self.has_values(transition) {
            self.check_values(transition);
        }
    }

    /// Compares the stored values with the signed statement.
    fn check_values(&mut self, transition: &Transition) {
        let (statement, id) = (&transition.statement, transition.digest);
        let rationale = transition.rationale.as_ref().map(|it| Digest::of(Tag::Rationale, &[it.as_bytes()]));
        self.expect(
            rationale == statement.rationale,
            Table::Transitions,
            id,
            "the rationale differs from the signed one",
        );
        let secret = self.secret_of(transition);
        let tool = transition.tool.as_ref().map(|it| it.stated(&secret, &statement.proposal));
        self.expect(tool == statement.tool, Table::Transitions, id, "the tool call differs from the signed one");
        self.check_join(transition);
        let same = identity_of(self.keys, &secret, transition) == Some(transition.identity);
        self.expect(same, Table::Transitions, id, "the identity of the transition differs from its request");
    }

    /// Returns the secret that salts the values of a transition's thread.
    pub(super) fn secret_of(&self, transition: &Transition) -> ThreadSecret {
        self.keys.salt().thread_secret(transition.statement.thread.as_str())
    }

    /// Returns true if a person, who has no token, requested the transition. Only a rollback may come from a person,
    /// and that person must be excluded from its review.
    fn is_asked_by_a_person(&self, transition: &Transition) -> bool {
        let person = transition.statement.principal.as_str();
        let review = review_of(transition).and_then(|it| self.all.holds.get(it.as_str()));
        transition.statement.kind == TransitionType::Rollback
            && self.all.accounts.contains_key(person)
            && review.is_some_and(|it| it.record.excluded.contains(person))
    }

    /// Returns true if a reviewer made this edit of a transition that was held on the same head. The editor must be
    /// excluded from the review of the edit.
    fn is_edited(&self, transition: &Transition) -> bool {
        let statement = &transition.statement;
        let Some(editor) = &transition.editor else { return false };
        let before = statement.supersedes.and_then(|it| self.all.transitions.get(&it.to_string())).map(|it| &it.record);
        let hold = |of: &Transition| Some(&self.all.holds.get(review_of(of)?.as_str())?.record);
        let ended = before.and_then(hold).map(|it| &it.state);
        self.all.accounts.contains_key(editor.as_str())
            && statement.principal == PrincipalId::from(editor)
            && before.is_some_and(|it| {
                let other = &it.statement;
                (&other.thread, other.parent, &other.node) == (&statement.thread, statement.parent, &statement.node)
            })
            && matches!(ended, Some(HoldState::Superseded { by: Some(by), .. }) if *by == transition.digest)
            && hold(transition).is_some_and(|it| it.excluded.contains(editor.as_str()))
    }

    /// Checks that no row of the thread has a version above its head.
    fn check_beyond(&mut self, thread: &Thread) {
        let beyond = version_id(&thread.id, thread.head.version + 1)..=version_id(&thread.id, u64::MAX);
        for id in self.all.entries.range(beyond.clone()).map(|it| it.0) {
            self.note(Table::Entries, id, "the version is above the head of its thread");
        }
        for id in self.all.states.range(beyond).map(|it| it.0) {
            self.note(Table::States, id, "the version is above the head of its thread");
        }
    }

    /// Compares the thread row with its events, its reviews and its writes.
    pub(super) fn check_thread(&mut self, thread: &Thread, own: &ThreadRows<'_>, story: &ThreadEvents<'_>) {
        let id = &thread.id;
        let number = story.last.map_or(0, |it| it.seq);
        let ours = thread.last_event.map_or(0, |it| it.seq);
        let detail = format!("the last event of the thread row is {ours}, but the last stored event is {number}");
        self.expect(thread.last_event == story.last, Table::Threads, id, detail);
        let first = self.all.entries.get(&version_id(id, 0)).map(|it| it.record.transition.to_string());
        self.expect(
            first.as_deref() == story.created,
            Table::Threads,
            id,
            "version 0 differs from the event that created the thread",
        );
        let committed: Vec<(u64, String)> = (1..=thread.head.version)
            .filter_map(|version| {
                Some((version, self.all.entries.get(&version_id(id, version))?.record.transition.to_string()))
            })
            .collect();
        let told: Vec<(u64, String)> =
            story.committed.iter().map(|(version, it)| (*version, (*it).to_owned())).collect();
        self.expect(committed == told, Table::Threads, id, "the chain of the thread differs from its events");
        for (transition, told) in &story.warned {
            let row = self.all.transitions.get(*transition).map(|it| it.record.warnings_shown());
            let said = row.is_some_and(|it| **told == if it.is_empty() { Value::Null } else { json!(it) });
            self.expect(said, Table::Transitions, transition, "the warnings of the transition differ from its event");
        }
        let held = own.holds.iter().find(|it| it.state == HoldState::Open {}).map(|it| &it.id);
        self.expect(held == thread.hold.as_ref(), Table::Threads, id, "the thread does not name its open review");
        let closed = story.closed.map(|it| {
            (it.at, super::event_replay::said(it, "by").to_owned(), super::event_replay::said(it, "reason").to_owned())
        });
        let row = thread.closed.as_ref().map(|ThreadClosure { by, at, reason }| (*at, by.to_string(), reason.clone()));
        self.expect(closed == row, Table::Threads, id, "the closing of the thread differs from its events");
        self.check_reservation(thread, own, story);
    }

    fn check_reservation(&mut self, thread: &Thread, own: &ThreadRows<'_>, story: &ThreadEvents<'_>) {
        let id = &thread.id;
        let writes = own.writes.iter().map(|it| &it.record);
        let (count, last) = (writes.clone().count(), writes.clone().map(|it| it.fence).max().unwrap_or_default());
        // A missing reservation could hide a write that happened.
        let dense = u64::try_from(count).is_ok_and(|it| it == last);
        self.expect(dense && last == thread.fence, Table::Threads, id, "the fence does not count the reservations");
        let current = writes.filter(|it| it.transition == thread.head.transition).max_by_key(|it| it.fence);
        let fits = match (&thread.head.usage, current) {
            (HeadUse::Unused {} | HeadUse::Revoked {}, None) => true,
            (HeadUse::Unused {}, Some(write)) => {
                matches!(write.state, WriteState::Aborted { .. }) && write.receipt.is_none()
            }
            (HeadUse::Reserved { write: key, lease_expires_at }, Some(write)) => {
                write.key == *key && write.lease_expires_at == *lease_expires_at
            }
            (HeadUse::Used {} | HeadUse::Revoked {}, Some(write)) => !write.is_open(),
            (HeadUse::Reserved { .. } | HeadUse::Used {}, None) => false,
        };
        self.expect(fits, Table::Threads, id, "the state of the head differs from its writes");
        // Events of older versions do not record this, so nothing can be compared then.
        let owed = match story.taken_back.get(&thread.head.version).and_then(|it| it.last()) {
            None => Some(false),
            Some(last) => last.owed,
        };
        self.expect(
            owed.is_none_or(|it| it == thread.rests_on_revoked_approval()),
            Table::Threads,
            id,
            "the row and its events disagree on whether the approval of the head was revoked",
        );
        let rows: BTreeSet<String> = thread.unresolved.iter().map(write_row_id).collect();
        let told: BTreeSet<String> = story.unresolved().into_iter().map(str::to_owned).collect();
        self.expect(
            told.is_subset(&rows),
            Table::Threads,
            id,
            "a write with an expired lease is not listed as unresolved",
        );
        // A lease may have expired since the audit began. The event of that moment has the later time.
        let now = story.until.map_or(self.now, |it| it.max(self.now));
        let open =
            |key: &String| self.all.writes.get(key).is_some_and(|it| it.record.is_open() && !it.record.is_live(now));
        self.expect(rows.iter().all(open), Table::Threads, id, "an unresolved write is not one whose lease expired");
    }
}

fn speaks_for(token: &Token, transition: &Transition) -> bool {
    let statement = &transition.statement;
    match &statement.node {
        Some(node) => token.acts_as(&statement.flow, node),
        None => token.of_flow(&statement.flow),
    }
}

/// Computes the identity of a request from its stored form.
fn identity_of(keys: &Keys, secret: &ThreadSecret, transition: &Transition) -> Option<Digest> {
    let statement = &transition.statement;
    let patch = match (statement.kind, &statement.write_id) {
        (TransitionType::Fork, _) => {
            let asked = |name| transition.patch == json!({"branch": name}) && transition.format == PatchFormat::Merge;
            let fork = statement.fork.as_ref().filter(|it| asked(&it.name))?;
            return Some(fork_identity(keys, fork, statement.node.as_ref()?, &statement.principal));
        }
        (TransitionType::Create, _) => patch_digest(secret, &transition.delta.apply(&json!({})).ok()?),
        (TransitionType::Confirm, Some(write_id)) => {
            patch_digest(secret, &json!({"write_id": write_id, "result": transition.patch}))
        }
        _ => patch_digest(secret, &transition.patch),
    };
    let identity = ProposalIdentity {
        thread: &statement.thread,
        parent: statement.parent,
        node: statement.node.as_ref(),
        principal: &statement.principal,
        kind: statement.kind,
        format: transition.format,
        patch,
        attempt: statement.attempt.unwrap_or(1),
        tool: transition.tool.as_ref(),
        step: transition.step.as_ref(),
    };
    Some(identity.digest(secret))
}
