//! Password sign-in with a throttle against brute force. The limits apply to each account and each address, on all
//! gateways and across restarts.
//!
//! Failed attempts by unknown browsers must not lock out the owner of the account. A browser from an earlier sign-in
//! therefore has a cookie and its own counter. All other attempts count against the account and the address.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_adapters::random;
use countersign_domain::identity::account::{Account, SessionOrigin};
use countersign_domain::identity::login_throttle::{FailedSignIns, LoginThrottleLimits};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::AccountId;
use countersign_domain::primitives::time::Timestamp;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use super::password_hash;
use super::session::SignedIn;
use super::sign_in_method::SignInMethod;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::platform::event_recorder;
use crate::platform::retry::retrying;

/// An address has this many times the attempts of one account, because a whole office may share it.
const ADDRESS_SHARE: u32 = 5;

/// A browser that has not signed in for half a year is unknown again.
pub const DEVICE_TTL: Duration = Duration::from_secs(180 * 24 * 3600);

/// Prefix of the cookie's seal. Seals of rows and nonces use other prefixes.
const DEVICE_TAG: &[u8] = b"countersign.device.v1";

/// 128 random bits do not repeat.
const DEVICE_BYTES: usize = 16;

/// Names, addresses and browsers each share this many counters, so that a flood cannot fill a table.
const COUNTERS: u32 = 65_536;

/// Prefix of the key that selects a counter. Seals of rows, devices and nonces use other prefixes.
const COUNTER_TAG: &str = "countersign.counter.v1";

#[derive(Clone, Debug, Default)]
pub struct SignInOrigin {
    /// The part of the address that a client cannot choose freely.
    pub address: Option<String>,
    /// Origin that the session stores.
    pub origin: Option<SessionOrigin>,
    /// Cookie of a known browser.
    pub device: Option<String>,
}

/// The counters of an attempt.
struct ThrottleCounters {
    /// Counter of the name, of a known browser, or of a signed-in person.
    own: (String, LoginThrottleLimits),
    /// Effect of a correct password on `own`.
    right: CounterOnSuccess,
    /// Counter of the address, which all clients there share.
    address: Option<(String, LoginThrottleLimits)>,
}

/// Effect of a correct password on a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CounterOnSuccess {
    /// Clears the counter, which belongs to one person alone.
    Clears,
    /// Reverts only this attempt. If the counter of a name went to zero, an attacker would see that a person signed in
    /// with that name.
    TakesBack,
}

/// Selects one of the shared counters for a text. The selection is keyed, so that only the gateway knows which texts
/// share a counter.
fn counter(keys: &Keys, kind: &str, text: &str) -> String {
    let hash = keys.row().hmac(format!("{COUNTER_TAG}\0{kind}\0{text}").as_bytes());
    let number = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]) % COUNTERS;
    format!("{kind}/~{number}")
}

/// Returns the counter of a user name. It does not depend on whether the account exists. Otherwise the rate of refusals
/// would show which names exist.
fn name_counter(keys: &Keys, name: &str) -> String {
    counter(keys, "name", name)
}

impl Identity {
    /// Signs a person in with a name and a password. The secret of the cookie appears only in this response. An unknown
    /// name takes as long as a wrong password.
    pub async fn sign_in(&self, name: &str, password: String) -> Result<(SignedIn, String)> {
        self.sign_in_throttled(name, password, &SignInOrigin::default()).await
    }

    /// Signs a person in from an origin. If there were too many attempts, it refuses before it checks the password.
    pub async fn sign_in_throttled(
        &self,
        name: &str,
        password: String,
        from: &SignInOrigin,
    ) -> Result<(SignedIn, String)> {
        self.require_local_accounts()?;
        let keys = self.core.keys()?;
        let account = self.core.reader(&keys).get_by_alias::<Account>(name).await?;
        let askers = self.counters_of(&keys, name, account.as_ref().map(|it| &it.record), from);
        // Counted before the check. Parallel attempts could otherwise all start below the limit (brute force).
        let tries = retrying!(self.count_attempt(&keys, &askers))?;
        let hash = account.as_ref().and_then(|it| it.record.password_hash()).map(str::to_owned);
        // An unknown name goes through the same hashing, which prevents user enumeration by timing.
        let right = password_hash::verify(password, hash).await?;
        match account {
            Some(account) if right && self.can_sign_in(&account.record) => {
                let signed_in = self.open_session(&keys, account, SignInMethod::Password, from.origin.clone()).await?;
                // Reverted only once the session exists, because the sign-in can fail before.
                self.give_back(&keys, &askers).await;
                Ok(signed_in)
            }
            // A disabled account gets the same error as a wrong password.
            other => {
                self.log_sign_in_failure(&keys, other.map(|it| it.record.id), &askers, tries).await?;
                Err(Error::Unauthenticated)
            }
        }
    }

    /// Checks the password of a signed-in person, with its own counter.
    pub(crate) async fn is_own_password(&self, account: &Account, password: String) -> Result<bool> {
        let keys = self.core.keys()?;
        let own = (format!("own/{}", account.id), self.core.settings.people.sign_ins);
        let askers = ThrottleCounters { own, right: CounterOnSuccess::Clears, address: None };
        let tries = retrying!(self.count_attempt(&keys, &askers))?;
        let right = password_hash::verify(password, account.password_hash().map(str::to_owned)).await?;
        if right {
            self.give_back(&keys, &askers).await;
        } else {
            self.log_sign_in_failure(&keys, Some(account.id.clone()), &askers, tries).await?;
        }
        Ok(right)
    }

    fn counters_of(&self, keys: &Keys, name: &str, account: Option<&Account>, from: &SignInOrigin) -> ThrottleCounters {
        let bounds = self.core.settings.people.sign_ins;
        let known = account.zip(from.device.as_deref()).filter(|(it, device)| self.is_known_device(keys, it, device));
        // A known browser has its own counter, so that an attacker cannot lock out the owner of the account.
        if let Some((_, device)) = known {
            return ThrottleCounters {
                own: (counter(keys, "device", device), bounds),
                right: CounterOnSuccess::Clears,
                address: None,
            };
        }
        // Many people may share an address, so its limit is higher.
        let shared = LoginThrottleLimits { free: bounds.free.saturating_mul(ADDRESS_SHARE), ..bounds };
        let address = from.address.as_deref().map(|it| (counter(keys, "address", it), shared));
        ThrottleCounters { own: (name_counter(keys, name), bounds), right: CounterOnSuccess::TakesBack, address }
    }

    /// Counts an attempt before it is made, or refuses it. Returns the updated counter.
    async fn count_attempt(&self, keys: &Keys, askers: &ThrottleCounters) -> Result<FailedSignIns> {
        let now = self.core.now();
        let mut draft = Draft::new(keys.row(), now);
        let mut counted = Vec::new();
        for (asker, bounds) in std::iter::once(&askers.own).chain(&askers.address) {
            let before = self.core.fetch::<FailedSignIns>(keys, asker).await?;
            // A refused attempt is not counted. Otherwise an attacker could extend the wait without end.
            if before.as_ref().is_some_and(|it| it.record.waits_until(bounds, now).is_some()) {
                return Err(Error::TooMany);
            }
            let tries = FailedSignIns::again(before.as_ref().map(|it| &it.record), asker, now, bounds);
            match &before {
                Some(before) => draft.replace(before, &tries)?,
                None => drop(draft.insert(&tries)?),
            }
            counted.push(tries);
        }
        self.core.commit(draft.finish()).await?;
        counted.into_iter().next().ok_or(Error::Busy)
    }

    /// Reverts the count after a correct password. If that fails, one attempt too many is counted.
    async fn give_back(&self, keys: &Keys, askers: &ThrottleCounters) {
        let done: Result<()> = retrying!({
            let mut draft = Draft::new(keys.row(), self.core.now());
            if let Some(own) = self.core.fetch::<FailedSignIns>(keys, &askers.own.0).await? {
                let after = match askers.right {
                    CounterOnSuccess::Clears => own.record.forgiven(),
                    CounterOnSuccess::TakesBack => own.record.taken_back(),
                };
                draft.replace(&own, &after)?;
            }
            if let Some((asker, _)) = &askers.address
                && let Some(address) = self.core.fetch::<FailedSignIns>(keys, asker).await?
            {
                // All clients at the address share the counter, so only this attempt is reverted.
                draft.replace(&address, &address.record.taken_back())?;
            }
            self.core.commit(draft.finish()).await
        });
        if let Err(error) = done {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a successful sign-in is still counted as a failed attempt"
            );
        }
    }

    /// Records a failed attempt and a lock as events. Many failures are recorded as a number.
    async fn log_sign_in_failure(
        &self,
        keys: &Keys,
        account: Option<AccountId>,
        askers: &ThrottleCounters,
        tries: FailedSignIns,
    ) -> Result<()> {
        let now = self.core.now();
        let Some(untold) = self.telling.may(now) else { return Ok(()) };
        let mut data = json!({"account": account, "failed": tries.failed});
        if untold > 0 {
            data["untold"] = json!(untold);
        }
        let until = tries.waits_until(&askers.own.1, now);
        let kind = if until.is_some() { EventType::SignInSlowed } else { EventType::SignInFailed };
        if let Some(until) = until {
            data["until"] = json!(until);
        }
        let mut draft = Draft::new(keys.row(), now);
        event_recorder::outside(&mut draft, None, now, kind, data)?;
        self.core.commit(draft.finish()).await
    }

    /// Resets the throttle of an account for unknown browsers.
    pub async fn unlock(&self, by: &Stored<Account>, of: &AccountId) -> Result<()> {
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let account: Stored<Account> = self.core.need(&keys, of.as_str(), "account").await?;
            // Counters of addresses stay, because they protect other accounts.
            let counter = name_counter(&keys, &account.record.name);
            let Some(tries) = self.core.fetch::<FailedSignIns>(&keys, &counter).await? else { return Ok(()) };
            let mut draft = Draft::new(keys.row(), now);
            draft.require_unchanged(by);
            draft.replace(&tries, &tries.record.forgiven())?;
            let data: Value = json!({"account": account.record.id, "by": by.record.id, "by_name": by.record.name});
            event_recorder::outside(&mut draft, None, now, EventType::Unlocked, data)?;
            self.core.commit(draft.finish()).await
        })
    }

    /// Returns the time until which unknown browsers are throttled for an account.
    pub async fn throttled_until(&self, of: &Account) -> Result<Option<Timestamp>> {
        let keys = self.core.keys()?;
        let tries = self.core.fetch::<FailedSignIns>(&keys, &name_counter(&keys, &of.name)).await?;
        Ok(tries.and_then(|it| it.record.waits_until(&self.core.settings.people.sign_ins, self.core.now())))
    }

    /// Returns the cookie by which this account recognizes the browser later.
    pub fn device_of(&self, account: &Account) -> Result<String> {
        let keys = self.core.keys()?;
        let mut bytes = random::bytes::<DEVICE_BYTES>().to_vec();
        bytes.extend_from_slice(&self.core.now().plus(DEVICE_TTL).millis().to_be_bytes());
        let seal = keys.row().hmac(&device_message(account, &bytes));
        bytes.extend_from_slice(&seal);
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Returns true if the account has signed in with this browser before.
    fn is_known_device(&self, keys: &Keys, account: &Account, device: &str) -> bool {
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(device) else { return false };
        // The last 8 bytes before the seal are the expiry.
        let Some((told, seal)) = bytes.split_at_checked(DEVICE_BYTES + 8) else { return false };
        let until = told[DEVICE_BYTES..].try_into().map(i64::from_be_bytes).unwrap_or_default();
        keys.row().checks(&device_message(account, told), seal) && self.core.now() < Timestamp::from_millis(until)
    }
}

/// Returns the MAC input. The length of each part comes before it, so that no bytes can move from one part to the next.
/// The password hash is one part: a new password makes all browsers unknown, because an attacker may have used the old
/// one.
fn device_message(account: &Account, told: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    let password = account.password_hash().unwrap_or_default();
    for part in [DEVICE_TAG, account.id.as_str().as_bytes(), password.as_bytes(), told] {
        message.extend_from_slice(&(part.len() as u64).to_be_bytes());
        message.extend_from_slice(part);
    }
    message
}
