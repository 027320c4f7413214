//! Sends queued email notifications and updates their state.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use countersign_adapters::mail::{MailError, MailMessage};
use countersign_domain::delivery::endpoint::{Endpoint, EndpointState};
use countersign_domain::delivery::mail_contact::{MailContact, MailNotification, MailPace, MailTopic};
use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::{AccountId, EndpointId, InterruptId, ReviewId};
use countersign_domain::reviews::{CannotDecide, Hold};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::records::OPEN;
use countersign_store::{LeaderLock, LeaderTask, RowFilter};

use super::text::{MailItemText, mail};
use crate::delivery::Deliveries;
use crate::error::{Error, Result};

/// Maximum number of notifications in one run.
const SENT_AT_ONCE: u32 = 200;

/// A run starts no mail after this time, so that a gateway that shuts down does not wait long for the run.
const RUN_MAX: Duration = Duration::from_secs(5);

/// Next action for a queued notification.
enum MailDisposition {
    Tell(MailItemText),
    /// The review cannot be decided at the moment.
    Later,
    /// The notification is no longer needed.
    Drop,
}

impl Deliveries {
    /// Sends the queued notifications, grouped for each person who wants a digest. Returns how many were completed, or
    /// `None` if another gateway has the leader lock. If the mail server is unavailable, the run ends with that error.
    pub async fn send_due_mail<F: Future<Output = std::result::Result<(), MailError>>>(
        &self,
        send: impl Fn(MailMessage) -> F,
    ) -> Result<Option<usize>> {
        let Some(duty) = self.core.store.take(LeaderTask::Mailing).await? else { return Ok(None) };
        let sent = self.send_due(&*duty, send).await;
        duty.leave().await;
        sent.map(Some)
    }

    async fn send_due<F: Future<Output = std::result::Result<(), MailError>>>(
        &self,
        duty: &dyn LeaderLock,
        send: impl Fn(MailMessage) -> F,
    ) -> Result<usize> {
        let keys = self.core.keys()?;
        let (now, until) = (self.core.now(), self.core.instant() + RUN_MAX);
        let due =
            self.core.reader(&keys).list::<MailNotification>(RowFilter::DueBy(OPEN, now), None, SENT_AT_ONCE).await?;
        let mut people: BTreeMap<AccountId, Vec<Stored<MailNotification>>> = BTreeMap::new();
        for letter in due {
            people.entry(letter.record.account.clone()).or_default().push(letter);
        }
        let mut done = 0;
        for (account, letters) in people {
            let contact = self.core.fetch::<MailContact>(&keys, account.as_str()).await?.map(|it| it.record);
            let together = contact.as_ref().is_some_and(|it| it.pace == MailPace::Digest);
            // A digest is one email. Otherwise each notification is an email of its own.
            let at_once = if together { letters.len() } else { 1 };
            for letters in letters.chunks(at_once) {
                // Another gateway may send now. A second email about the same review must be avoided.
                if !duty.stands() || self.core.instant() >= until {
                    return Ok(done);
                }
                done += letters.len();
                self.send_together(&keys, contact.as_ref(), letters, &send).await?;
            }
        }
        Ok(done)
    }

    /// Sends one mail for several notifications to one person, if any is still needed. Then updates their state.
    async fn send_together<F: Future<Output = std::result::Result<(), MailError>>>(
        &self,
        keys: &Keys,
        contact: Option<&MailContact>,
        letters: &[Stored<MailNotification>],
        send: &impl Fn(MailMessage) -> F,
    ) -> Result<()> {
        let (mut told, mut kept, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for letter in letters {
            let fate = match contact {
                Some(_) => self.disposition_of(keys, &letter.record).await?,
                // The person has removed the contact.
                None => MailDisposition::Drop,
            };
            match fate {
                MailDisposition::Tell(it) => told.push((letter, it)),
                MailDisposition::Later => kept.push(letter),
                MailDisposition::Drop => gone.push(letter),
            }
        }
        let sent = match (contact, told.first()) {
            (Some(contact), Some((first, _))) => {
                let all: Vec<&MailItemText> = told.iter().map(|it| &it.1).collect();
                send(mail(contact, &first.record.event, &all)).await
            }
            _ => Ok(()),
        };
        let now = self.core.now();
        let mut draft = Draft::new(keys.row(), now);
        for letter in gone {
            draft.remove(letter);
        }
        for letter in kept {
            draft.replace(letter, &letter.record.later(now))?;
        }
        for (letter, _) in &told {
            match (&sent, letter.record.again(now)) {
                // Retried later with a backoff.
                (Err(_), Some(again)) => draft.replace(letter, &again)?,
                (Err(error), None) => {
                    let MailNotification { account, event, .. } = &letter.record;
                    tracing::error!(%account, %event, %error, "an email was given up after too many failed attempts");
                    draft.remove(letter);
                }
                (Ok(()), _) => {
                    draft.remove(letter);
                }
            }
        }
        self.core.commit(draft.finish()).await?;
        match sent {
            // Every other email would fail as well, so the run ends.
            Err(error @ (MailError::Unusable(_) | MailError::SetUp(_))) => Err(Error::Mail(error)),
            Err(error @ MailError::Refused(_)) => {
                tracing::warn!(%error, "the mail server refused an email");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Decides whether a notification is still needed, and what it contains.
    async fn disposition_of(&self, keys: &Keys, letter: &MailNotification) -> Result<MailDisposition> {
        let fate = match &letter.about {
            MailTopic::Review(review) => self.disposition_of_review(keys, review, &letter.account).await,
            MailTopic::Interrupt(interrupt) => self.disposition_of_interrupt(keys, interrupt, &letter.account).await,
            MailTopic::EndpointDisabled(endpoint) | MailTopic::EndpointRecovered(endpoint) => {
                self.disposition_of_endpoint(keys, endpoint, letter).await
            }
        };
        match fate {
            // Data that does not match its signatures is sent to no reviewer, but must not block other notifications.
            Err(error) if error.is_chain_failure() || matches!(error, Error::NotFound(_)) => {
                let event = &letter.event;
                tracing::error!(%event, error = &error as &dyn std::error::Error, "no email is sent for an event whose data is missing or does not match its signatures");
                Ok(MailDisposition::Drop)
            }
            fate => fate,
        }
    }

    async fn disposition_of_review(
        &self,
        keys: &Keys,
        review: &ReviewId,
        account: &AccountId,
    ) -> Result<MailDisposition> {
        let hold: Option<Stored<Hold>> = self.core.fetch(keys, review.as_str()).await?;
        let Some(hold) = hold.map(|it| it.record).filter(|it| it.is_open(self.core.now())) else {
            return Ok(MailDisposition::Drop);
        };
        // The person may have voted or lost the right to vote since the notification was queued.
        let people = self.reviews.electorate(review).await?;
        let elector = people.into_iter().find(|it| it.account.id == *account);
        Ok(match elector.map(|it| it.can_decide) {
            Some(Ok(_)) => MailDisposition::Tell(MailItemText::waiting(&self.reviews.brief_of(keys, &hold).await?)),
            Some(Err(CannotDecide::Halted | CannotDecide::Writing)) => MailDisposition::Later,
            Some(Err(_)) | None => MailDisposition::Drop,
        })
    }

    async fn disposition_of_interrupt(
        &self,
        keys: &Keys,
        interrupt: &InterruptId,
        account: &AccountId,
    ) -> Result<MailDisposition> {
        let interrupt = self.interrupts.interrupt_row(keys, interrupt).await?.record;
        let people = self.identity.accounts_all(keys).await?;
        let may = people.iter().any(|it| it.id == *account && interrupt.jury().eligible(it).is_ok());
        if !may || !interrupt.is_open(self.core.now()) {
            return Ok(MailDisposition::Drop);
        }
        // The interrupt can be decided after the halt.
        if self.interrupts.is_halted(&interrupt.flow).await? {
            return Ok(MailDisposition::Later);
        }
        Ok(MailDisposition::Tell(MailItemText::waiting(&self.reviews.brief_of_interrupt(&interrupt))))
    }

    async fn disposition_of_endpoint(
        &self,
        keys: &Keys,
        endpoint: &EndpointId,
        letter: &MailNotification,
    ) -> Result<MailDisposition> {
        let accounts = self.identity.accounts_all(keys).await?;
        if !accounts.iter().any(|it| it.id == letter.account && it.administers()) {
            return Ok(MailDisposition::Drop);
        }
        let endpoint = self.core.need::<Endpoint>(keys, endpoint.as_str(), "endpoint").await?.record;
        let page = format!("{}/endpoints/{}", self.core.public_url(), endpoint.id);
        Ok(match (&letter.about, &endpoint.state) {
            (MailTopic::EndpointDisabled(_), EndpointState::Disabled { why, .. }) => {
                MailDisposition::Tell(MailItemText::disabled(&endpoint.name, *why, &page))
            }
            (MailTopic::EndpointRecovered(_), EndpointState::Enabled {}) => {
                MailDisposition::Tell(MailItemText::recovered(&endpoint.name, &page))
            }
            // The endpoint has changed since then.
            _ => MailDisposition::Drop,
        })
    }
}
