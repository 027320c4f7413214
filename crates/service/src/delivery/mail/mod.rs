//! Queues email notifications about pending reviews.
//!
//! The recipients are stored together with the position that was read in the log. They stay until the mail was sent, so
//! a crash loses no notification. No mail is sent within a change.

mod send;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use countersign_domain::delivery::mail_contact::{MailContact, MailNotification, MailTopic};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{AccountId, GroupName, InterruptId, ReviewId};
use countersign_domain::reviews::{CannotDecide, Hold};
use countersign_store::change::Draft;
use countersign_store::record::{Record as _, Stored};
use countersign_store::records::{LogCursor, LogFollower};
use countersign_store::{LIST_ROWS_MAX, LeaderTask};

use crate::delivery::Deliveries;
use crate::error::{Error, Result};
use crate::log::sequencer::SequencedEvent;
use crate::platform::retry::retrying;

/// Maximum number of events in one change. A change with many recipients has fewer.
const LOOKED_AT_ONCE: u32 = 250;

/// Number of notifications after which a change is written. The last event may exceed it.
const WRITTEN_AT_ONCE: usize = 500;

/// Maximum number of notifications in one change: one event may notify every reviewer.
const IN_ONE_CHANGE_MAX: usize = 1_000;

impl Deliveries {
    /// Queues email notifications for the next events. Recipients are the reviewers who can decide the review, and
    /// administrators when an endpoint is disabled. Returns the number of events that were read, or `None` if another
    /// gateway has the leader lock.
    ///
    /// The first run starts at the end of the log. Older reviews are in the inbox.
    pub async fn queue_mail(&self, digests: Duration) -> Result<Option<usize>> {
        self.core.run_as_leader(LeaderTask::Mailing, self.write_next(digests)).await
    }

    async fn write_next(&self, digests: Duration) -> Result<usize> {
        let keys = self.core.keys()?;
        let Some(mark) = self.core.fetch::<LogCursor>(&keys, LogFollower::Mail.name()).await? else {
            let mut draft = Draft::new(keys.row(), self.core.now());
            // The first run must not send an email for every event in the past of the log.
            draft.insert(&LogCursor { of: LogFollower::Mail, reached: self.log.log_length().await? })?;
            return self.core.commit(draft.finish()).await.map(|()| 0);
        };
        let (events, last) = self.log.events_after(mark.record.reached, None, LOOKED_AT_ONCE).await?;
        if last == mark.record.reached {
            return Ok(0);
        }
        let (mut letters, mut reached) = (BTreeMap::new(), last);
        for placed in &events {
            for letter in self.letters_of(&keys, placed, digests).await? {
                let id = letter.id();
                // A notification that an interrupted run wrote is not written again.
                if !letters.contains_key(&id) && self.core.fetch::<MailNotification>(&keys, &id).await?.is_none() {
                    letters.insert(id, letter);
                }
            }
            if letters.len() >= WRITTEN_AT_ONCE {
                reached = placed.index;
                break;
            }
        }
        // The change starts only now, because reading thousands of recipients takes longer than a change may. If the
        // process stops before the position moves, the next run finds the same notifications again.
        let letters: Vec<MailNotification> = letters.into_values().collect();
        let (full, rest) = letters.split_at(letters.len() / IN_ONE_CHANGE_MAX * IN_ONE_CHANGE_MAX);
        for some in full.chunks(IN_ONE_CHANGE_MAX) {
            self.core.commit(self.written(&keys, some)?.finish()).await?;
        }
        let mut draft = self.written(&keys, rest)?;
        draft.replace(&mark, &LogCursor { of: LogFollower::Mail, reached })?;
        self.core.commit(draft.finish()).await?;
        Ok(usize::try_from(reached - mark.record.reached).unwrap_or(usize::MAX))
    }

    fn written<'k>(&self, keys: &'k Keys, letters: &[MailNotification]) -> Result<Draft<'k>> {
        let mut draft = Draft::new(keys.row(), self.core.now());
        for letter in letters {
            draft.insert(letter)?;
        }
        Ok(draft)
    }

    /// Returns the notifications of one event.
    async fn letters_of(
        &self,
        keys: &Keys,
        placed: &SequencedEvent,
        digests: Duration,
    ) -> Result<Vec<MailNotification>> {
        let event = &placed.event;
        let Some(about) = MailTopic::of(event.kind, &event.data) else { return Ok(Vec::new()) };
        let people = match &about {
            MailTopic::Review(review) => self.accounts_notified_of_review(keys, review, event.kind).await,
            MailTopic::Interrupt(interrupt) => self.accounts_notified_of_interrupt(keys, interrupt).await,
            MailTopic::EndpointDisabled(_) | MailTopic::EndpointRecovered(_) => {
                let all = self.identity.accounts_all(keys).await?.into_iter();
                Ok(all.filter(|it| it.administers()).map(|it| it.id.to_string()).collect())
            }
        };
        let people: Vec<String> = match people {
            // Data that does not match its signatures notifies no reviewer, but must not block other events.
            Err(error) if error.is_chain_failure() || matches!(error, Error::NotFound(_)) => {
                let (event, error) = (&event.id, &error as &dyn std::error::Error);
                tracing::error!(%event, error, "no email is sent for an event whose data is missing or does not match its signatures");
                return Ok(Vec::new());
            }
            people => people?,
        };
        let mut contacts: Vec<MailContact> = Vec::new();
        for some in people.chunks(LIST_ROWS_MAX as usize) {
            contacts
                .extend(self.core.reader(keys).get_many::<MailContact>(some).await?.into_iter().map(|it| it.record));
        }
        let letter = |it: MailContact| MailNotification {
            due: it.told_at(event.at, digests),
            account: it.account,
            about: about.clone(),
            event: event.id.clone(),
            tries: 0,
        };
        Ok(contacts.into_iter().map(letter).collect())
    }

    /// Returns the accounts to notify about a review.
    pub(crate) async fn accounts_notified_of_review(
        &self,
        keys: &Keys,
        review: &ReviewId,
        kind: EventType,
    ) -> Result<Vec<String>> {
        let hold: Option<Stored<Hold>> = self.core.fetch(keys, review.as_str()).await?;
        // The review may have ended since the event was written.
        let Some(hold) = hold.filter(|it| it.record.is_open(self.core.now())) else { return Ok(Vec::new()) };
        let people = self.reviews.electorate(review).await?;
        let can = people.into_iter().filter(|it| match &it.can_decide {
            // These two conditions end by themselves, so these reviewers are notified as well.
            Ok(_) | Err(CannotDecide::Halted | CannotDecide::Writing) => true,
            Err(_) => false,
        });
        // An escalation notifies only the reviewers who were not asked before.
        let before: BTreeSet<&GroupName> = hold.record.stages.iter().flat_map(|it| &it.groups).collect();
        let newly = kind == EventType::ReviewEscalated;
        let can = can.filter(|it| !newly || !it.account.groups.iter().any(|group| before.contains(group)));
        Ok(can.map(|it| it.account.id.to_string()).collect())
    }

    pub(crate) async fn accounts_notified_of_interrupt(
        &self,
        keys: &Keys,
        interrupt: &InterruptId,
    ) -> Result<Vec<String>> {
        let interrupt = self.interrupts.interrupt_row(keys, interrupt).await?.record;
        // The interrupt may have ended since the event was written.
        if !interrupt.is_open(self.core.now()) {
            return Ok(Vec::new());
        }
        let jury = interrupt.jury();
        let people = self.identity.accounts_all(keys).await?.into_iter();
        Ok(people.filter(|it| jury.eligible(it).is_ok()).map(|it| it.id.to_string()).collect())
    }

    /// Returns the email contact of a person, if there is one.
    pub async fn contact_of(&self, account: &AccountId) -> Result<Option<MailContact>> {
        let keys = self.core.keys()?;
        Ok(self.core.fetch::<MailContact>(&keys, account.as_str()).await?.map(|it| it.record))
    }

    /// Sets the email contact of a person, or removes it.
    pub async fn set_contact(&self, account: &AccountId, next: Option<MailContact>) -> Result<()> {
        retrying!({
            let keys = self.core.keys()?;
            let stored = self.core.fetch::<MailContact>(&keys, account.as_str()).await?;
            let mut draft = Draft::new(keys.row(), self.core.now());
            match (&stored, &next) {
                (None, None) => return Ok(()),
                (None, Some(next)) => drop(draft.insert(next)?),
                (Some(stored), Some(next)) => draft.replace(stored, next)?,
                (Some(stored), None) => {
                    draft.remove(stored);
                }
            }
            self.core.commit(draft.finish()).await
        })
    }
}
