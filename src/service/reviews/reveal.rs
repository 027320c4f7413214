//! Looking at a hidden value: one at a time, for a reason, and written down before it is shown.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::details::ReviewFacts;
use crate::domain::chain::hash::Digest;
use crate::domain::identity::account::Account;
use crate::domain::identity::party::{Author, Party};
use crate::domain::json::pointer::Pointer;
use crate::domain::log::event::EventType;
use crate::domain::primitives::id::{AccountId, GroupName, ReviewId};
use crate::domain::reviews::{Hold, REVEAL_REASON_CHARS_MAX, Reveal, RevealRejected, groups_to_reveal_to};
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::platform::event_recorder;
use crate::service::platform::retry::retrying;
use crate::store::change::Draft;
use crate::store::record::Stored;

/// What somebody asks to look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RevealRequest {
    /// Of exactly which transition.
    pub transition: Digest,
    pub pointer: Pointer,
    pub reason: String,
}

impl ReviewFacts {
    /// What the author of the change wrote, as the viewer is shown it.
    pub fn proposed<'t>(&self, words: &'t str) -> Cow<'t, str> {
        self.texts.redaction.words(&self.texts.author, words)
    }

    /// Why it was cancelled, which its proposer wrote.
    pub fn cancelled_because<'t>(&self, words: &'t str) -> Cow<'t, str> {
        self.texts.redaction.words(&self.texts.proposer, words)
    }

    /// Why its receipt was revoked.
    pub fn revoked_because<'t>(&self, words: &'t str) -> Cow<'t, str> {
        self.texts.redaction.words(&self.texts.revoker, words)
    }

    /// What a person wrote about it, as the viewer is shown it.
    pub fn said<'t>(&self, by: &AccountId, words: &'t str) -> Cow<'t, str> {
        let author = Party::Person { id: by.clone(), name: String::new(), groups: BTreeSet::new() };
        self.texts.redaction.words(&Author::of(author), words)
    }

    /// Those of a person's groups that may look at hidden values: by the policy that people were asked by, and also by
    /// the one that judges the flow now, which may have come to hide more and to trust fewer.
    pub fn reveal_groups(&self, person: &Account) -> std::result::Result<BTreeSet<GroupName>, RevealRejected> {
        let mut each = self.texts.redaction.policies().iter().map(|it| groups_to_reveal_to(it.reveal_to(), person));
        let first = each.next().unwrap_or(Err(RevealRejected::Group))?;
        each.try_for_each(|it| it.map(drop))?;
        Ok(first)
    }
}

impl Service {
    /// Records that a person looks at a hidden value, and only then gives the review with that value open. A
    /// stopped flow, a closed thread and a review that has ended may be looked into as well: nothing is decided.
    pub async fn reveal(&self, person: &AccountId, review: &ReviewId, look: &RevealRequest) -> Result<ReviewFacts> {
        let viewer = retrying!(self.record_look(person, review, look))?;
        retrying!(self.review_once(review, &viewer, Some(&look.pointer)))
    }

    async fn record_look(&self, person: &AccountId, review: &ReviewId, look: &RevealRequest) -> Result<Account> {
        let (keys, now) = (self.keys()?, self.now());
        let person: Stored<Account> = self.fetch(&keys, person.as_str()).await?.ok_or(Error::Unauthenticated)?;
        let facts = self.review_once(review, &person.record, None).await?;
        let groups = facts.reveal_groups(&person.record)?;
        check_look(&facts, look)?;
        let hold: Stored<Hold> = self.need(&keys, review.as_str(), "review").await?;
        let stored = self.thread(&keys, &hold.record.thread).await?;
        let mut thread = stored.record.clone();
        let reveal = Reveal {
            person: person.record.id.clone(),
            name: person.record.name.clone(),
            groups,
            pointer: look.pointer.clone(),
            reason: facts.said(&person.record.id, look.reason.trim()).into_owned(),
            at: now,
        };
        let mut draft = Draft::new(keys.row(), now);
        draft.require_unchanged(&person);
        let data = look_data(&hold.record, &reveal);
        event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::ReviewRevealed, data)?;
        draft.replace(&hold, &hold.record.clone().revealed(reveal)?)?;
        draft.replace(&stored, &thread)?;
        self.commit(draft.finish()).await?;
        Ok(person.record)
    }
}

fn check_look(facts: &ReviewFacts, look: &RevealRequest) -> Result<()> {
    let reason = look.reason.trim();
    if reason.is_empty() || reason.chars().count() > REVEAL_REASON_CHARS_MAX {
        return Err(Error::invalid("/reason", format!("say why, in at most {REVEAL_REASON_CHARS_MAX} characters")));
    }
    if look.transition != facts.hold.transition {
        return Err(Error::WrongState("the digest is not the one that is held"));
    }
    let place = facts.hidden.iter().find(|it| it.pointer == look.pointer).ok_or(Error::NotFound("hidden value"))?;
    if !place.is_one_value() {
        return Err(Error::WrongState("what is hidden there has parts, and only single values are shown"));
    }
    Ok(())
}

/// What the event of a look tells: all of it but the name, which is the account's.
pub(in crate::service) fn look_data(hold: &Hold, reveal: &Reveal) -> Value {
    json!({
        "review": hold.id, "transition": hold.transition, "person": reveal.person, "groups": reveal.groups,
        "pointer": reveal.pointer, "reason": reveal.reason,
    })
}

impl From<RevealRejected> for Error {
    fn from(refused: RevealRejected) -> Self {
        match refused {
            RevealRejected::Disabled => Self::Forbidden("the account is disabled"),
            RevealRejected::Group => Self::Forbidden("the policy lets none of your groups look at hidden values"),
            RevealRejected::TooMany => {
                Self::WrongState("this review was looked into so often that no more can be recorded")
            }
        }
    }
}
