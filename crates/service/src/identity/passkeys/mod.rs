//! Passkeys: registering, signing in and removing.

mod challenge;
pub(crate) mod vote_signature;

use countersign_domain::identity::account::{AccessChange, Account, SessionOrigin};
use countersign_domain::identity::delegation::Delegation;
use countersign_domain::identity::passkey::{Assertion, AssertionRejected, Passkey, Registration, RelyingParty};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{AccountId, PasskeyId, PrincipalId};
use countersign_store::RowFilter;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use super::change_event::changed_by;
use super::revocation::SessionFilter;
use super::session::SignedIn;
use super::sign_in_method::SignInMethod;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::identity::requester_names::RequesterName;
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
pub use challenge::{CHALLENGE_TTL, ChallengePurpose};
pub use vote_signature::VoteSignature;
pub(crate) use vote_signature::{PasskeyUse, evidence_of};

/// Enough for several devices and their predecessors.
pub const PASSKEYS_MAX: usize = 20;

/// Names are shown in lists.
pub const PASSKEY_NAME_CHARS_MAX: usize = 64;

/// Proof that a person must give, in addition to a session, to change passkeys.
#[derive(Debug)]
pub enum PasskeyConfirmation {
    /// The password, for the first passkey. A person with an OpenID account has none and must have signed in recently.
    Password(String),
    /// A signature by a passkey that the person already has.
    Passkey {
        /// Challenge that the passkey signed.
        challenge: String,
        assertion: Assertion,
    },
}

#[derive(Debug)]
pub struct NewPasskey {
    pub name: String,
    /// Challenge of the registration.
    pub challenge: String,
    pub registration: Registration,
    /// Proof that the request does not come from a stolen session.
    pub confirmation: PasskeyConfirmation,
}

#[derive(Debug)]
pub struct PasskeySignIn<'a> {
    /// Secret of the browser's cookie.
    pub door: &'a str,
    /// Challenge that the passkey signed.
    pub challenge: &'a str,
    pub assertion: &'a Assertion,
    /// Account that the authenticator names.
    pub account: &'a str,
    /// Origin that the session stores.
    pub origin: Option<SessionOrigin>,
}

const ELSEWHERE: &str =
    "passkeys need a public URL with https:// and a host name, or http://localhost: set it in the configuration";
const USED: &str = "the form was already used or is older than five minutes: open the page again";

impl Identity {
    /// Returns the relying party for passkeys, or `None` if browsers do not allow passkeys for the public URL.
    pub fn relying_party(&self) -> Option<RelyingParty> {
        RelyingParty::at(self.core.public_url())
    }

    pub fn passkey_challenge(&self, purpose: &ChallengePurpose<'_>) -> Result<String> {
        Ok(challenge::new(self.core.keys()?.row(), purpose, self.core.now()))
    }

    /// Returns all passkeys of all people, including removed ones, for an auditor to pin.
    pub async fn passkeys(&self) -> Result<Vec<Passkey>> {
        let keys = self.core.keys()?;
        Ok(self.all_of::<Passkey>(&keys, RowFilter::All).await?.into_iter().map(|it| it.record).collect())
    }

    /// Returns the active passkeys of a person in the order of registration.
    pub async fn passkeys_of(&self, account: &AccountId) -> Result<Vec<Passkey>> {
        let own = self.active_passkeys(&*self.core.keys()?, account).await?;
        Ok(own.into_iter().map(|it| it.record).collect())
    }

    pub(crate) async fn active_passkeys(&self, keys: &Keys, account: &AccountId) -> Result<Vec<Stored<Passkey>>> {
        let mut own = self.all_of::<Passkey>(keys, RowFilter::Owner(account.as_str())).await?;
        own.retain(|it| it.record.removed_at.is_none());
        own.sort_by_key(|it| it.record.added_at);
        Ok(own)
    }

    /// Registers a passkey. The first one requires the password, and each further one requires an existing passkey. A
    /// stolen session, or a password that another person set, is therefore not enough.
    pub async fn add_passkey(&self, person: &SignedIn, new: NewPasskey) -> Result<Passkey> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let party = self.relying_party().ok_or(Error::WrongState(ELSEWHERE))?;
        let name = passkey_name(&new.name)?;
        let session = person.session.record.id.as_str();
        let asked = challenge::read(keys.row(), &ChallengePurpose::Add { session }, &new.challenge, now);
        let enrolled = new.registration.check(&party, &asked.ok_or(Error::WrongState(USED))?)?;
        let own = self.active_passkeys(&keys, &person.account.record.id).await?;
        // The limit keeps the removal of all passkeys small enough for one change.
        if own.len() >= PASSKEYS_MAX {
            return Err(Error::WrongState("you have the maximum of 20 passkeys: remove one first"));
        }
        let purpose = ChallengePurpose::AllowAdding { session, registration: &new.challenge };
        let confirmed = self.confirmed(&keys, person, &own, &purpose, new.confirmation).await?;
        let passkey = Passkey {
            id: enrolled.id,
            account: person.account.record.id.clone(),
            name,
            public_key: enrolled.public_key,
            origin: party.origin(),
            backup_eligible: enrolled.backup_eligible,
            counter: enrolled.counter,
            challenge: new.challenge,
            added_at: now,
            used_at: None,
            removed_at: None,
        };
        let mut draft = Draft::new(keys.row(), now);
        // Fails if the account is disabled or the session ends before the commit.
        draft.require_unchanged(&person.account).require_unchanged(&person.session);
        draft.insert(&passkey)?;
        if let Some(used) = &confirmed {
            used.put(&mut draft, now)?;
        }
        let by = confirmed.as_ref().map(PasskeyUse::id);
        event_recorder::outside(&mut draft, None, now, EventType::PasskeyAdded, added_data(&passkey, by))?;
        match self.core.commit(draft.finish()).await {
            // A conflict usually means that the challenge is already stored in another row.
            Err(error) if error.is_conflict() => Err(Error::WrongState(USED)),
            other => other.map(|()| passkey),
        }
    }

    /// Checks the confirmation: a passkey if the person has any, otherwise the password.
    pub(crate) async fn confirmed(
        &self,
        keys: &Keys,
        person: &SignedIn,
        own: &[Stored<Passkey>],
        purpose: &ChallengePurpose<'_>,
        confirmation: PasskeyConfirmation,
    ) -> Result<Option<PasskeyUse>> {
        match confirmation {
            PasskeyConfirmation::Password(password) if own.is_empty() => match person.account.record.password_hash() {
                Some(_) => {
                    let right = self.is_own_password(&person.account.record, password).await?;
                    if right { Ok(None) } else { Err(Error::Forbidden("the password is wrong")) }
                }
                // A recent sign-in at the provider replaces the password, which the gateway does not have.
                None if self.core.now() < person.session.record.created_at.plus(CHALLENGE_TTL) => Ok(None),
                None => {
                    Err(Error::Forbidden("your sign-in is too old: sign in again and repeat this within five minutes"))
                }
            },
            PasskeyConfirmation::Password(_) => {
                Err(Error::Forbidden("you have a passkey: confirm with it instead of the password"))
            }
            PasskeyConfirmation::Passkey { challenge, assertion } => {
                let asked = challenge::read(keys.row(), purpose, &challenge, self.core.now());
                let asked = asked.ok_or(Error::WrongState(USED))?;
                let stored =
                    own.iter().find(|it| it.record.id == assertion.passkey).ok_or(AssertionRejected::NotTheirs)?;
                let counter = assertion.check(&stored.record, &asked);
                let counter = self.told_if_copied(keys, &stored.record, counter).await?;
                Ok(Some(PasskeyUse::signed(stored.clone(), counter)))
            }
        }
    }

    /// Removes a passkey of the person, confirmed by one of their passkeys. Sessions that it opened end.
    pub async fn remove_passkey(
        &self,
        person: &SignedIn,
        id: &PasskeyId,
        confirmation: PasskeyConfirmation,
    ) -> Result<()> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let own = self.active_passkeys(&keys, &person.account.record.id).await?;
        let stored = own.iter().find(|it| it.record.id == *id).ok_or(Error::NotFound("passkey"))?;
        let session = person.session.record.id.as_str();
        let purpose = ChallengePurpose::AllowRemoving { session, passkey: id.as_str() };
        let confirmed = self.confirmed(&keys, person, &own, &purpose, confirmation).await?;
        let mut draft = Draft::new(keys.row(), now);
        // Fails if the account is disabled or the session ends before the commit.
        draft.require_unchanged(&person.account).require_unchanged(&person.session);
        // A passkey may confirm its own removal. Its new counter and its removal are then one replacement.
        let itself = confirmed.as_ref().filter(|it| it.id() == id);
        let used = itself.map_or_else(|| stored.record.clone(), |it| it.next(now));
        draft.replace(stored, &Passkey { removed_at: Some(now), ..used })?;
        let by = PrincipalId::from(&person.account.record.id);
        if let Some(other) = confirmed.as_ref().filter(|it| it.id() != id) {
            other.put(&mut draft, now)?;
        }
        let data = removed_data(&stored.record, &by, confirmed.as_ref().map(PasskeyUse::id));
        event_recorder::outside(&mut draft, None, now, EventType::PasskeyRemoved, data)?;
        self.end_sessions(&mut draft, &keys, &person.account.record.id, Some(SessionFilter::OpenedBy(id))).await?;
        let whose = changed_by(&person.account, now);
        // A delegation that the removed passkey confirmed is no longer proven.
        let by_it = |it: &Delegation| it.confirmed_by.as_ref() == Some(id);
        self.end_unproven_delegations(&mut draft, &keys, &person.account.record.id, &whose, by_it).await?;
        match self.core.commit(draft.finish()).await {
            // The confirmation was checked against rows that have changed, so the person has to repeat it.
            Err(error) if error.is_conflict() => Err(Error::Busy),
            other => other,
        }
    }

    /// Removes all passkeys of a person who has lost them. Returns how many.
    pub async fn remove_passkeys_of(&self, by: &PrincipalId, name: &str) -> Result<(Account, usize)> {
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let account =
                self.core.reader(&keys).get_by_alias::<Account>(name).await?.ok_or(Error::NotFound("account"))?.record;
            let own = self.active_passkeys(&keys, &account.id).await?;
            let mut draft = Draft::new(keys.row(), now);
            self.put_removals(&mut draft, &keys, &own, by).await?;
            self.core.commit(draft.finish()).await?;
            Ok((account, own.len()))
        })
    }

    /// Removes all passkeys of a person on behalf of an administrator. Administrators cannot do this for their own
    /// account.
    pub async fn remove_lost_passkeys(&self, by: &Stored<Account>, of: &AccountId) -> Result<usize> {
        if by.record.id == *of {
            return Err(Error::WrongState(
                "you cannot do this for your own account: remove passkeys one by one under Your account",
            ));
        }
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let own = self.active_passkeys(&keys, of).await?;
            let mut draft = Draft::new(keys.row(), now);
            draft.require_unchanged(by);
            let who = PrincipalId::from(&by.record.id);
            self.put_removals(&mut draft, &keys, &own, &who).await?;
            self.core.commit(draft.finish()).await?;
            Ok(own.len())
        })
    }

    async fn put_removals(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        own: &[Stored<Passkey>],
        by: &PrincipalId,
    ) -> Result<()> {
        let now = self.core.now();
        for stored in own {
            draft.replace(stored, &Passkey { removed_at: Some(now), ..stored.record.clone() })?;
            let data = removed_data(&stored.record, by, None);
            event_recorder::outside(draft, None, now, EventType::PasskeyRemoved, data)?;
            self.end_sessions(draft, keys, &stored.record.account, Some(SessionFilter::OpenedBy(&stored.record.id)))
                .await?;
        }
        let Some(account) = own.first().map(|it| &it.record.account) else { return Ok(()) };
        let name = match self.names_of(keys, [by]).await?.remove(by.as_str()) {
            Some(RequesterName::Person(name)) => name,
            _ => by.to_string(),
        };
        let by = AccessChange { by: by.clone(), name, at: now };
        // A delegation that the password confirmed does not depend on passkeys.
        self.end_unproven_delegations(draft, keys, account, &by, |it| it.confirmed_by.is_some()).await
    }

    /// Signs a person in with a passkey. The secret of the cookie appears only in this response.
    pub async fn sign_in_with_passkey(&self, attempt: &PasskeySignIn<'_>) -> Result<(SignedIn, String)> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let stored = self.core.fetch::<Passkey>(&keys, attempt.assertion.passkey.as_str()).await?;
        let stored = stored.filter(|it| it.record.counts_at(now) && self.is_of_here(&it.record));
        // All failures give the same error, so that a client cannot find out which passkeys exist.
        let Some(stored) = stored else { return self.sign_in_failed(&keys, None).await };
        let asked =
            challenge::read(keys.row(), &ChallengePurpose::SignIn { door: attempt.door }, attempt.challenge, now);
        let account = self.core.fetch::<Account>(&keys, stored.record.account.as_str()).await?;
        // A person with an OpenID account must sign in at the provider each time, because the provider knows who has
        // left.
        let comes =
            |it: &Account| self.can_sign_in(it) && it.password_hash().is_some() && it.id.as_str() == attempt.account;
        let account = account.filter(|it| comes(&it.record));
        let (Some(asked), Some(account)) = (asked, account) else {
            return self.sign_in_failed(&keys, Some(&stored.record)).await;
        };
        let counter = attempt.assertion.check(&stored.record, &asked);
        match self.told_if_copied(&keys, &stored.record, counter).await {
            Ok(counter) => {
                let used = PasskeyUse::signed(stored, counter);
                let way = SignInMethod::Passkey { used, challenge: attempt.challenge.to_owned() };
                match self.open_session(&keys, account, way, attempt.origin.clone()).await {
                    // A conflict usually means that the challenge was already used.
                    Err(error) if error.is_conflict() => Err(Error::Unauthenticated),
                    other => other,
                }
            }
            Err(_) => self.sign_in_failed(&keys, Some(&stored.record)).await,
        }
    }

    fn is_of_here(&self, passkey: &Passkey) -> bool {
        self.relying_party().is_some_and(|it| it.origin() == passkey.origin)
    }

    /// Records the failed sign-in. No delay is needed, because a passkey cannot be guessed. Many failures are recorded
    /// as a number.
    async fn sign_in_failed<T>(&self, keys: &Keys, passkey: Option<&Passkey>) -> Result<T> {
        let now = self.core.now();
        if let Some(untold) = self.telling.may(now) {
            let mut data = json!({"account": passkey.map(|it| &it.account), "passkey": passkey.map(|it| &it.id)});
            if untold > 0 {
                data["untold"] = json!(untold);
            }
            let mut draft = Draft::new(keys.row(), now);
            event_recorder::outside(&mut draft, None, now, EventType::SignInFailed, data)?;
            self.core.commit(draft.finish()).await?;
        }
        Err(Error::Unauthenticated)
    }

    /// Records a counter that went back: the key of the authenticator may have been copied.
    async fn told_if_copied(
        &self,
        keys: &Keys,
        passkey: &Passkey,
        checked: std::result::Result<u32, AssertionRejected>,
    ) -> Result<u32> {
        if checked == Err(AssertionRejected::Counter) {
            let data = json!({"passkey": passkey.id, "account": passkey.account, "why": "counter"});
            let mut draft = Draft::new(keys.row(), self.core.now());
            event_recorder::outside(&mut draft, None, self.core.now(), EventType::PasskeyRefused, data)?;
            self.core.commit(draft.finish()).await?;
        }
        Ok(checked?)
    }
}

/// Returns the event data of a new passkey, with everything that an auditor pins.
pub(crate) fn added_data(passkey: &Passkey, confirmed_by: Option<&PasskeyId>) -> Value {
    json!({
        "passkey": passkey.id, "account": passkey.account, "name": passkey.name, "public_key": passkey.public_key,
        "origin": passkey.origin, "backup_eligible": passkey.backup_eligible, "confirmed_by": confirmed_by,
    })
}

fn removed_data(passkey: &Passkey, by: &PrincipalId, confirmed_by: Option<&PasskeyId>) -> Value {
    json!({"passkey": passkey.id, "account": passkey.account, "by": by, "confirmed_by": confirmed_by})
}

fn passkey_name(name: &str) -> Result<String> {
    let name = name.trim();
    let fits = (1..=PASSKEY_NAME_CHARS_MAX).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if fits { Ok(name.to_owned()) } else { Err(Error::invalid("/name", "use 1 to 64 characters")) }
}
