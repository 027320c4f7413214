//! Reveals of redacted values: one at a time, with a reason, and recorded before the value is shown.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::Account;
use countersign_domain::identity::party::{Author, Party};
use countersign_domain::json::pointer::Pointer;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{AccountId, GroupName, ReviewId};
use countersign_domain::reviews::{Hold, REVEAL_REASON_CHARS_MAX, Reveal, RevealRejected, groups_to_reveal_to};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use super::details::ReviewFacts;
use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::reviews::Reviews;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RevealRequest {
    /// The exact transition that the person saw.
    pub transition: Digest,
    pub pointer: Pointer,
    pub reason: String,
}

impl ReviewFacts {
    /// Returns a text by the author of the change, as the viewer may see it.
    pub fn proposed<'t>(&self, words: &'t str) -> Cow<'t, str> {
        self.texts.redaction.words(&self.texts.author, words)
    }

    /// Returns the reason of a cancellation, which the proposer wrote.
    pub fn cancelled_because<'t>(&self, words: &'t str) -> Cow<'t, str> {
        self.texts.redaction.words(&self.texts.proposer, words)
    }

    pub fn revoked_because<'t>(&self, words: &'t str) -> Cow<'t, str> {
        self.texts.redaction.words(&self.texts.revoker, words)
    }

    /// Returns a text that a person wrote about the review, as the viewer may see it.
    pub fn said<'t>(&self, by: &AccountId, words: &'t str) -> Cow<'t, str> {
        let author = Party::Person { id: by.clone(), name: String::new(), groups: BTreeSet::new() };
        self.texts.redaction.words(&Author::of(author), words)
    }

    /// Returns the groups of a person that may reveal redacted values. Both the policy of the review and the
    /// active policy must allow it, because the active one may redact more and trust fewer groups.
    pub fn reveal_groups(&self, person: &Account) -> std::result::Result<BTreeSet<GroupName>, RevealRejected> {
        let mut each = self.texts.redaction.policies().iter().map(|it| groups_to_reveal_to(it.reveal_to(), person));
        let first = each.next().unwrap_or(Err(RevealRejected::Group))?;
        each.try_for_each(|it| it.map(drop))?;
        Ok(first)
    }
}

impl Reviews {
    /// Records a reveal, and then returns the review with that value open. It is also allowed in a halted
    /// flow, in a closed thread and after the end of the review, because it decides nothing.
    pub async fn reveal(
        self: &Arc<Self>,
        person: &AccountId,
        review: &ReviewId,
        look: &RevealRequest,
    ) -> Result<ReviewFacts> {
        let viewer = retrying!(self.record_look(person, review, look))?;
        retrying!(self.review_once(review, &viewer, Some(&look.pointer)))
    }

    async fn record_look(
        self: &Arc<Self>,
        person: &AccountId,
        review: &ReviewId,
        look: &RevealRequest,
    ) -> Result<Account> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let person: Stored<Account> = self.core.fetch(&keys, person.as_str()).await?.ok_or(Error::Unauthenticated)?;
        // Loaded without the value first: the checks below must pass and the record must be committed before
        // it is read.
        let facts = self.review_once(review, &person.record, None).await?;
        let groups = facts.reveal_groups(&person.record)?;
        check_look(&facts, look)?;
        let hold: Stored<Hold> = self.core.need(&keys, review.as_str(), "review").await?;
        let stored = self.core.thread(&keys, &hold.record.thread).await?;
        let mut thread = stored.record.clone();
        let reveal = Reveal {
            person: person.record.id.clone(),
            name: person.record.name.clone(),
            groups,
            pointer: look.pointer.clone(),
            // The reason is stored and shown to others, so redacted values in it are masked.
            reason: facts.said(&person.record.id, look.reason.trim()).into_owned(),
            at: now,
        };
        let mut draft = Draft::new(keys.row(), now);
        draft.require_unchanged(&person);
        let data = look_data(&hold.record, &reveal);
        event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::ReviewRevealed, data)?;
        draft.replace(&hold, &hold.record.clone().revealed(reveal)?)?;
        draft.replace(&stored, &thread)?;
        self.core.commit(draft.finish()).await?;
        Ok(person.record)
    }
}

fn check_look(facts: &ReviewFacts, look: &RevealRequest) -> Result<()> {
    let reason = look.reason.trim();
    if reason.is_empty() || reason.chars().count() > REVEAL_REASON_CHARS_MAX {
        return Err(Error::invalid(
            "/reason",
            format!("give a reason of at most {REVEAL_REASON_CHARS_MAX} characters"),
        ));
    }
    if look.transition != facts.hold.transition {
        return Err(Error::WrongState("the digest is not the one under review; reload the page"));
    }
    let place = facts.hidden.iter().find(|it| it.pointer == look.pointer).ok_or(Error::NotFound("redacted value"))?;
    if !place.is_one_value() {
        return Err(Error::WrongState("the redacted value is an object or a list; reveal one of its values"));
    }
    Ok(())
}

/// Returns the data of a reveal event. It omits the name, which belongs to the account.
pub(crate) fn look_data(hold: &Hold, reveal: &Reveal) -> Value {
    json!({
        "review": hold.id, "transition": hold.transition, "person": reveal.person, "groups": reveal.groups,
        "pointer": reveal.pointer, "reason": reveal.reason,
    })
}

impl From<RevealRejected> for Error {
    fn from(refused: RevealRejected) -> Self {
        match refused {
            RevealRejected::Disabled => Self::Forbidden("the account is disabled"),
            RevealRejected::Group => {
                Self::Forbidden("the policy does not allow any of your groups to reveal redacted values")
            }
            RevealRejected::TooMany => Self::WrongState(
                "the review has reached the limit of recorded reveals, so no more values can be revealed",
            ),
        }
    }
}
