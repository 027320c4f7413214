//! Checks passkeys against their events, and verifies the signature of every vote again.

use std::collections::{BTreeMap, BTreeSet};

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::signed_vote::{SIGNATURE_TTL, Signable, VoteEvidence};
use countersign_domain::identity::passkey::Passkey;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::PasskeyId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Vote, VoteSubject, VoterProof};
use countersign_store::record::Record;
use countersign_store::row::Table;
use serde_json::json;

use super::AuditRun;
use super::delegations::counted;
use super::identity::{RowHistories, changed, made, text};
use crate::identity::passkeys::{added_data, evidence_of};

impl AuditRun<'_> {
    pub(super) fn check_passkeys(&mut self) {
        let (mut lives, mut uses) = (RowHistories::new(), BTreeMap::<&str, Timestamp>::new());
        for event in self.all.events.values().map(|it| &it.record) {
            let (passkey, by) = (text(event, "passkey"), text(event, "confirmed_by"));
            let used = match event.kind {
                EventType::PasskeyAdded => {
                    made(&mut lives, passkey, event);
                    by
                }
                EventType::PasskeyRemoved => {
                    // A passkey that confirms its own removal changes once, not twice.
                    changed(&mut lives, passkey.filter(|it| by != Some(it)));
                    by
                }
                EventType::Delegated => by,
                EventType::SignedIn => passkey,
                EventType::ReviewVote | EventType::PolicyVote | EventType::InterruptVote => {
                    passkey.filter(|_| text(event, "method") == Some("passkey"))
                }
                _ => None,
            };
            changed(&mut lives, used);
            let last = used.map(|it| uses.entry(it).or_insert(event.at));
            last.into_iter().for_each(|it| *it = event.at.max(*it));
        }
        let events = self.all.events.values().map(|it| &it.record);
        let removed: BTreeSet<_> = events
            .filter(|it| it.kind == EventType::PasskeyRemoved)
            .filter_map(|it| Some((text(it, "passkey")?, it.at)))
            .collect();
        for (id, stored) in &self.all.passkeys {
            let passkey = &stored.record;
            let life = lives.get(id.as_str());
            let said = life.and_then(|it| it.made);
            let by = said.and_then(|it| text(it, "confirmed_by")).and_then(|it| PasskeyId::try_from(it).ok());
            let same = said.is_some_and(|it| it.data == added_data(passkey, by.as_ref()) && it.at == passkey.added_at);
            self.expect(same, Table::Passkeys, id, "the passkey differs from the event that added it");
            let used = uses.get(id.as_str()).copied() == passkey.used_at;
            self.expect(used, Table::Passkeys, id, "the row and its events disagree on the last use of the passkey");
            self.expect_revision(Table::Passkeys, id, stored.revision, life);
            let told: Vec<_> = removed.iter().filter(|it| it.0 == id).map(|it| it.1).collect();
            let kept: Vec<_> = passkey.removed_at.into_iter().collect();
            self.expect(
                told == kept,
                Table::Passkeys,
                id,
                "the row and its events disagree on whether the passkey was removed",
            );
        }
        self.expect_all(Table::Passkeys, &lives, &self.all.passkeys.keys().map(String::as_str).collect());
    }

    /// Checks that every vote on a record has the passkey that its stage requires, and that its signature is valid.
    pub(super) fn check_proofs<S: VoteSubject + Record>(&mut self, subject: &S) {
        let id = Record::id(subject);
        // Every stored signature is verified again, because votes are what a receipt depends on.
        for vote in subject.quorum(Timestamp::default()).votes {
            let met = subject.quorum(vote.at).passkey_need(vote.stage).met_by(&vote.proof, vote.at).is_ok();
            self.expect(met, S::TABLE, &id, "a vote lacks the passkey that its stage requires");
            let Some(passkey) = vote.proof.passkey() else { continue };
            let passkey = self.all.passkeys.get(passkey.as_str()).map(|it| &it.record);
            let signed = |it: &Passkey| signed_by(evidence_of(self.keys.issuer(), subject, vote), it);
            let good = passkey.is_some_and(|it| self.is_proven(vote, it, &signed));
            self.expect(good, S::TABLE, &id, "a vote is not signed by a passkey of its voter");
        }
    }

    fn is_proven(&self, vote: &Vote, passkey: &Passkey, signed: &dyn Fn(&Passkey) -> Option<Digest>) -> bool {
        let theirs = passkey.account == vote.reviewer && passkey.added_at <= vote.at && counted(passkey, vote.at);
        theirs
            && match &vote.proof {
                VoterProof::Session {} => true,
                VoterProof::PasskeySession { at, .. } => *at <= vote.at && self.opened_with(passkey, vote, *at),
                VoterProof::Signature { evidence, expires_at, .. } => {
                    let in_time = vote.at < *expires_at && *expires_at <= vote.at.plus(SIGNATURE_TTL);
                    // The counter of the passkey has increased since then. The gateway checked it when the vote was
                    // signed.
                    let passkey = Passkey { counter: 0, ..passkey.clone() };
                    // The stored digest must match the evidence that is rebuilt from the vote.
                    in_time && signed(&passkey) == Some(*evidence)
                }
            }
    }

    /// Returns true if the voter signed in with the passkey at that time.
    fn opened_with(&self, passkey: &Passkey, vote: &Vote, at: Timestamp) -> bool {
        self.all.events.values().map(|it| &it.record).any(|it| {
            it.kind == EventType::SignedIn
                && it.at == at
                && it.data.get("passkey") == Some(&json!(passkey.id))
                && it.data.get("account") == Some(&json!(vote.reviewer))
        })
    }
}

/// Returns the digest of the signed evidence if this passkey signed it.
fn signed_by<S: Signable>(evidence: Option<VoteEvidence<S>>, passkey: &Passkey) -> Option<Digest> {
    evidence.filter(|it| it.check(passkey).is_ok()).map(|it| it.digest())
}
