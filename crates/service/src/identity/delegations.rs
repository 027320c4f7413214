//! Delegations: a reviewer names another person to vote on their behalf for a time, and can end that early.

use std::time::Duration;

use countersign_adapters::random;
use countersign_domain::identity::account::{AccessChange, Account};
use countersign_domain::identity::delegation::LENGTH_MAX;
use countersign_domain::identity::delegation::{Delegation, DelegationEnd, DelegationRejected, DelegationRequest};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{AccountId, DelegationId, PrincipalId};
use countersign_domain::primitives::time::Timestamp;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::records::{OPEN, delegations_from};
use countersign_store::{Cursor, LIST_ROWS_MAX, RowFilter};
use serde_json::{Value, json};

use super::passkeys::{ChallengePurpose, PasskeyConfirmation};
use super::session::SignedIn;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::platform::event_recorder;
use crate::platform::retry::retrying;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewDelegation {
    pub to: String,
    pub length: Duration,
}

/// A delegation that a person is about to confirm.
#[derive(Clone, Debug)]
pub struct DelegationPreview {
    pub to: Account,
    /// Text that the confirmation is bound to, so that it is valid for this delegation only, and once.
    pub terms: String,
}

/// The delegations of one person, or of all.
#[derive(Clone, Debug, Default)]
pub struct DelegationLists {
    pub given: Vec<Delegation>,
    pub received: Vec<Delegation>,
    /// Active delegations of all people, if the person may see them.
    pub all: Vec<Delegation>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelegationOwnerFilter {
    Own,
    Everybodys,
}

impl Identity {
    /// Returns a preview of a delegation if it is allowed.
    pub async fn offer(&self, from: &Account, naming: &NewDelegation) -> Result<DelegationPreview> {
        let keys = self.core.keys()?;
        let to = self.delegate(&keys, &naming.to).await?.record;
        let (given, received) = self.existing_delegations(&keys, &from.id, &to.id).await?;
        let giving = DelegationRequest { from, to: &to, length: naming.length, given: &given, received: &received };
        giving.check(self.core.now())?;
        let terms = terms(&giving);
        Ok(DelegationPreview { to, terms })
    }

    /// Creates a delegation. A person with a passkey confirms it with the passkey, and any other person with the
    /// password. A stolen session alone must not be enough to pass on a vote.
    pub async fn delegate_to(
        &self,
        person: &SignedIn,
        naming: &NewDelegation,
        shown: PasskeyConfirmation,
    ) -> Result<Delegation> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let to = self.delegate(&keys, &naming.to).await?;
        // The password is checked against this row. If the password changes before the commit, the commit fails.
        let from = &person.account;
        // A person whose sign-in method is disabled must not delegate.
        let standing = self.with_effective_status(from.record.clone());
        let (given, received) = self.existing_delegations(&keys, &standing.id, &to.record.id).await?;
        let giving = DelegationRequest {
            from: &standing,
            to: &to.record,
            length: naming.length,
            given: &given,
            received: &received,
        };
        giving.check(now)?;
        let own = self.active_passkeys(&keys, &standing.id).await?;
        let (session, terms) = (person.session.record.id.as_str(), terms(&giving));
        let purpose = ChallengePurpose::AllowDelegating { session, terms: &terms };
        let confirmed = self.confirmed(&keys, person, &own, &purpose, shown).await?;
        let id = DelegationId::try_from(random::uuid_v7(now).to_string()).expect("a UUID is a name");
        let delegation = giving.given(id, confirmed.as_ref().map(|it| it.id().clone()), now)?;
        let mut draft = Draft::new(keys.row(), now);
        // Fails if the session ends or an account changes before the commit.
        draft.require_unchanged(&person.session).require_unchanged(from).require_unchanged(&to);
        draft.insert(&delegation)?;
        if let Some(used) = &confirmed {
            used.put(&mut draft, now)?;
        }
        event_recorder::outside(&mut draft, None, now, EventType::Delegated, delegated_data(&delegation))?;
        match self.core.commit(draft.finish()).await {
            // The confirmation was checked against rows that have changed, so the person has to repeat it.
            Err(error) if error.is_conflict() => Err(Error::Busy),
            other => other.map(|()| delegation),
        }
    }

    /// Ends a delegation early. A delegation that is over stays unchanged.
    pub async fn end_delegation(&self, by: &AccountId, id: &DelegationId) -> Result<()> {
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let person: Stored<Account> = self.core.fetch(&keys, by.as_str()).await?.ok_or(Error::Unauthenticated)?;
            let stored: Stored<Delegation> = self.core.need(&keys, id.as_str(), "delegation").await?;
            if person.record.disabled || !stored.record.may_be_ended_by(&person.record) {
                // The same error as for an unknown id, so that ids of other delegations cannot be probed.
                return Err(Error::NotFound("delegation"));
            }
            if !stored.record.lasts_at(now) {
                return Ok(());
            }
            let ended = DelegationEnd { at: now, by: PrincipalId::from(by), name: person.record.name.clone() };
            let mut draft = Draft::new(keys.row(), now);
            draft.require_unchanged(&person);
            event_recorder::outside(&mut draft, None, now, EventType::DelegationEnded, ended_data(id, &ended))?;
            draft.replace(&stored, &Delegation { ended: Some(ended), ..stored.record.clone() })?;
            self.core.commit(draft.finish()).await
        })
    }

    /// Ends the delegations of a person that can no longer be trusted, in the same change that caused this.
    pub(crate) async fn end_unproven_delegations(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        from: &AccountId,
        by: &AccessChange,
        meant: impl Fn(&Delegation) -> bool,
    ) -> Result<()> {
        let rows = self.core.reader(keys).by_alias_prefix::<Delegation>(&delegations_from(from), LIST_ROWS_MAX).await?;
        for stored in rows.iter().filter(|it| it.record.lasts_at(by.at) && meant(&it.record)) {
            let ended = DelegationEnd { at: by.at, by: by.by.clone(), name: by.name.clone() };
            event_recorder::outside(
                draft,
                None,
                by.at,
                EventType::DelegationEnded,
                ended_data(&stored.record.id, &ended),
            )?;
            draft.replace(stored, &Delegation { ended: Some(ended), ..stored.record.clone() })?;
        }
        Ok(())
    }

    /// Returns the delegations that a person gave and received, and those of all people if requested.
    pub async fn delegations(&self, person: &AccountId, whose: DelegationOwnerFilter) -> Result<DelegationLists> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let mut given = self.given_by(&keys, person).await?;
        given.reverse();
        let all = match whose {
            DelegationOwnerFilter::Own => Vec::new(),
            DelegationOwnerFilter::Everybodys => self.active_delegations(&keys).await?,
        };
        Ok(DelegationLists { given, received: self.received_delegations(&keys, person, now).await?, all })
    }

    async fn delegate(&self, keys: &Keys, name: &str) -> Result<Stored<Account>> {
        let found = self.core.reader(keys).get_by_alias::<Account>(name).await?;
        let found = found.ok_or_else(|| Error::from(DelegationRejected::Delegate))?;
        Ok(Stored { record: self.with_effective_status(found.record.clone()), ..found })
    }

    /// Returns the delegations that the first person gave and that the second received.
    async fn existing_delegations(
        &self,
        keys: &Keys,
        from: &AccountId,
        to: &AccountId,
    ) -> Result<(Vec<Delegation>, Vec<Delegation>)> {
        Ok((self.given_by(keys, from).await?, self.received_delegations(keys, to, self.core.now()).await?))
    }

    /// Returns all delegations that a person gave, the oldest first. The allowed rate fills a list only after years.
    /// The person then needs a new account, because no number is free.
    async fn given_by(&self, keys: &Keys, person: &AccountId) -> Result<Vec<Delegation>> {
        let rows =
            self.core.reader(keys).by_alias_prefix::<Delegation>(&delegations_from(person), LIST_ROWS_MAX).await?;
        Ok(rows.into_iter().map(|it| it.record).collect())
    }

    /// Returns all active delegations, the nearest end first, up to the length of one list.
    pub(crate) async fn active_delegations(&self, keys: &Keys) -> Result<Vec<Delegation>> {
        let now = self.core.now();
        // The list is sorted by end, so the cursor skips delegations that are over.
        let after = Cursor { due: now.millis(), id: char::MAX.to_string() };
        let rows =
            self.core.reader(keys).list::<Delegation>(RowFilter::State(OPEN), Some(&after), LIST_ROWS_MAX).await?;
        Ok(rows.into_iter().map(|it| it.record).filter(|it| it.is_active_at(now)).collect())
    }

    /// Returns the active delegations to a person. No delegation is longer than [`LENGTH_MAX`], so older rows
    /// are not read.
    pub(crate) async fn received_delegations(
        &self,
        keys: &Keys,
        person: &AccountId,
        now: Timestamp,
    ) -> Result<Vec<Delegation>> {
        // Skips delegations that are too old to be active, so the list stays short.
        let after = Cursor { due: 0, id: made_before(now) };
        let owned = RowFilter::Owner(person.as_str());
        let rows = self.core.reader(keys).list::<Delegation>(owned, Some(&after), LIST_ROWS_MAX).await?;
        Ok(rows.into_iter().map(|it| it.record).filter(|it| it.is_active_at(now)).collect())
    }
}

/// Returns the text that a passkey signs to confirm a delegation: the person, the length, and the number of the
/// delegation. The number makes the signature valid only once.
fn terms(giving: &DelegationRequest<'_>) -> String {
    format!("{} {} {}", giving.number(), giving.to.id, giving.length.as_secs())
}

/// Returns the event data of a new delegation.
pub(crate) fn delegated_data(delegation: &Delegation) -> Value {
    let Delegation { id, from, from_name, to, to_name, number, begins_at, ends_at, confirmed_by, ended: _ } =
        delegation;
    json!({
        "delegation": id, "from": from, "from_name": from_name, "to": to, "to_name": to_name, "number": number,
        "begins_at": begins_at, "ends_at": ends_at, "confirmed_by": confirmed_by,
    })
}

/// Returns the event data of a delegation that ended early.
pub(crate) fn ended_data(id: &DelegationId, ended: &DelegationEnd) -> Value {
    json!({"delegation": id, "by": ended.by, "by_name": ended.name})
}

impl From<DelegationRejected> for Error {
    fn from(refused: DelegationRejected) -> Self {
        let place = match refused {
            DelegationRejected::Length => "/length",
            DelegationRejected::NoVote | DelegationRejected::TooManyGiven | DelegationRejected::TooManyLately => "",
            DelegationRejected::Oneself
            | DelegationRejected::Delegate
            | DelegationRejected::Same
            | DelegationRejected::TooManyReceived => "/to",
        };
        Self::invalid(place, refused.to_string())
    }
}

/// Returns the lowest id that an active delegation can have. Ids begin with the time of creation.
pub(crate) fn made_before(now: Timestamp) -> String {
    let longest = i64::try_from(LENGTH_MAX.as_millis()).unwrap_or(i64::MAX);
    let hex = format!("{:012x}", now.millis().saturating_sub(longest).max(0));
    format!("{}-{}", &hex[..8], &hex[8..])
}
