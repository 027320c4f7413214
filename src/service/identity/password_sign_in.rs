//! Signing in by a password: bounded for each account and each address, on all gateways, over restarts; and such
//! that strangers who try do not keep out who is known.
//!
//! A browser that somebody signed in with before shows a cookie that says so. What it tries is counted by itself.
//! Everything else counts as a stranger's, at the account and at the address.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::password_hash;
use super::session::SignedIn;
use super::sign_in_method::SignInMethod;
use crate::domain::identity::account::{Account, SessionOrigin};
use crate::domain::identity::login_throttle::{FailedSignIns, LoginThrottleLimits};
use crate::domain::keys::Keys;
use crate::domain::log::event::EventType;
use crate::domain::primitives::id::AccountId;
use crate::domain::primitives::time::Timestamp;
use crate::random;
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::platform::event_recorder;
use crate::service::platform::retry::retrying;
use crate::store::change::Draft;
use crate::store::record::Stored;

/// People behind one address have so many times the tries of one account: an office is one address.
const ADDRESS_SHARE: u32 = 5;

/// So long a browser is known: half a year without signing in is a stranger's.
pub const DEVICE_TTL: Duration = Duration::from_secs(180 * 24 * 3600);

/// What the cookie's seal is over. Seals of rows and nonces begin with other tags.
const DEVICE_TAG: &[u8] = b"countersign.device.v1";

/// 128 bits never come twice.
const DEVICE_BYTES: usize = 16;

/// Names, addresses and browsers share this many counters each, so that a flood fills no table.
const COUNTERS: u32 = 65_536;

/// What the choice of a counter is keyed with. Seals of rows, devices and nonces begin with other tags.
const COUNTER_TAG: &str = "countersign.counter.v1";

/// Failed tries that are told at once, and how often one more is: a flood is told as a number.
const TOLD_BURST: f64 = 60.0;
const TOLD_EVERY: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Default)]
pub struct SignInOrigin {
    /// As much of the address as an asker does not choose at will.
    pub address: Option<String>,
    /// What a session remembers of it.
    pub origin: Option<SessionOrigin>,
    /// What the browser shows, if it was here before.
    pub device: Option<String>,
}

/// How many failed tries were told of late, and how many were not.
#[derive(Debug)]
pub(in crate::service) struct FailureEventLimiter {
    level: Mutex<(f64, Timestamp, u64)>,
}

impl Default for FailureEventLimiter {
    fn default() -> Self {
        Self { level: Mutex::new((TOLD_BURST, Timestamp::from_millis(0), 0)) }
    }
}

impl FailureEventLimiter {
    /// Whether this one may be told, and how many were not told before it.
    pub(in crate::service) fn may(&self, now: Timestamp) -> Option<u64> {
        let mut state = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let (level, at, untold) = *state;
        let level = (level + at.until(now).as_secs_f64() / TOLD_EVERY.as_secs_f64()).min(TOLD_BURST);
        if level < 1.0 {
            *state = (level, now, untold + 1);
            return None;
        }
        *state = (level - 1.0, now, 0);
        Some(untold)
    }
}

/// The counters that an attempt is on.
struct ThrottleCounters {
    /// That of the name, of a browser that the account knows, or of a person who is signed in.
    own: (String, LoginThrottleLimits),
    /// What a right password does to `own`.
    right: CounterOnSuccess,
    /// The address, which everybody there shares.
    address: Option<(String, LoginThrottleLimits)>,
}

/// What a right password does to a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CounterOnSuccess {
    /// It clears the counter, which is one person's alone.
    Clears,
    /// It takes back its own attempt only. A counter of a name that went to zero would show an attacker that somebody
    /// signs in by that name.
    TakesBack,
}

/// Which of the shared counters a text is on. The choice is keyed, so that only the gateway knows which texts share one.
fn counter(keys: &Keys, kind: &str, text: &str) -> String {
    let hash = keys.row().hmac(format!("{COUNTER_TAG}\0{kind}\0{text}").as_bytes());
    let number = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]) % COUNTERS;
    format!("{kind}/~{number}")
}

/// The counter of a user name. It does not depend on whether an account has that name: if it did, the pace of refusals
/// would tell which names exist.
fn name_counter(keys: &Keys, name: &str) -> String {
    counter(keys, "name", name)
}

impl Service {
    /// Signs a person in by name and password; the cookie's secret is in the answer and nowhere else.
    /// An unknown name costs as much time as a wrong password.
    pub async fn sign_in(&self, name: &str, password: String) -> Result<(SignedIn, String)> {
        self.sign_in_throttled(name, password, &SignInOrigin::default()).await
    }

    /// The same, from somewhere. Who tried too often is told so before the password is looked at.
    pub async fn sign_in_throttled(
        &self,
        name: &str,
        password: String,
        from: &SignInOrigin,
    ) -> Result<(SignedIn, String)> {
        self.require_local_accounts()?;
        let keys = self.keys()?;
        let account = self.reader(&keys).get_by_alias::<Account>(name).await?;
        let askers = self.counters_of(&keys, name, account.as_ref().map(|it| &it.record), from);
        let tries = retrying!(self.count_attempt(&keys, &askers))?;
        let hash = account.as_ref().and_then(|it| it.record.password_hash()).map(str::to_owned);
        let right = password_hash::verify(password, hash).await?;
        match account {
            Some(account) if right && self.can_sign_in(&account.record) => {
                let signed_in = self.open_session(&keys, account, SignInMethod::Password, from.origin.clone()).await?;
                self.give_back(&keys, &askers).await;
                Ok(signed_in)
            }
            other => {
                self.log_sign_in_failure(&keys, other.map(|it| it.record.id), (&askers, tries)).await?;
                Err(Error::Unauthenticated)
            }
        }
    }

    /// Whether a password is this account's, asked by somebody who is signed in to it. Counted by itself.
    pub(in crate::service) async fn is_own_password(&self, account: &Account, password: String) -> Result<bool> {
        let keys = self.keys()?;
        let own = (format!("own/{}", account.id), self.settings.people.sign_ins);
        let askers = ThrottleCounters { own, right: CounterOnSuccess::Clears, address: None };
        let tries = retrying!(self.count_attempt(&keys, &askers))?;
        let right = password_hash::verify(password, account.password_hash().map(str::to_owned)).await?;
        if right {
            self.give_back(&keys, &askers).await;
        } else {
            self.log_sign_in_failure(&keys, Some(account.id.clone()), (&askers, tries)).await?;
        }
        Ok(right)
    }

    fn counters_of(&self, keys: &Keys, name: &str, account: Option<&Account>, from: &SignInOrigin) -> ThrottleCounters {
        let bounds = self.settings.people.sign_ins;
        let known = account.zip(from.device.as_deref()).filter(|(it, device)| self.is_known_device(keys, it, device));
        if let Some((_, device)) = known {
            return ThrottleCounters {
                own: (counter(keys, "device", device), bounds),
                right: CounterOnSuccess::Clears,
                address: None,
            };
        }
        let shared = LoginThrottleLimits { free: bounds.free.saturating_mul(ADDRESS_SHARE), ..bounds };
        let address = from.address.as_deref().map(|it| (counter(keys, "address", it), shared));
        ThrottleCounters { own: (name_counter(keys, name), bounds), right: CounterOnSuccess::TakesBack, address }
    }

    /// Counts a try before it is made, or refuses it. How many there were by then.
    async fn count_attempt(&self, keys: &Keys, askers: &ThrottleCounters) -> Result<FailedSignIns> {
        let now = self.now();
        let mut draft = Draft::new(keys.row(), now);
        let mut counted = Vec::new();
        for (asker, bounds) in std::iter::once(&askers.own).chain(&askers.address) {
            let before = self.fetch::<FailedSignIns>(keys, asker).await?;
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
        self.commit(draft.finish()).await?;
        counted.into_iter().next().ok_or(Error::Busy)
    }

    /// The password was right: what was counted is taken back. If that fails, a try more is counted than was made.
    async fn give_back(&self, keys: &Keys, askers: &ThrottleCounters) {
        let done: Result<()> = retrying!(self.refund_attempt_once(keys, askers));
        if let Err(error) = done {
            tracing::warn!(error = &error as &dyn std::error::Error, "a try to sign in was counted that was none");
        }
    }

    async fn refund_attempt_once(&self, keys: &Keys, askers: &ThrottleCounters) -> Result<()> {
        let mut draft = Draft::new(keys.row(), self.now());
        if let Some(own) = self.fetch::<FailedSignIns>(keys, &askers.own.0).await? {
            let after = match askers.right {
                CounterOnSuccess::Clears => own.record.forgiven(),
                CounterOnSuccess::TakesBack => own.record.taken_back(),
            };
            draft.replace(&own, &after)?;
        }
        if let Some((asker, _)) = &askers.address
            && let Some(address) = self.fetch::<FailedSignIns>(keys, asker).await?
        {
            draft.replace(&address, &address.record.taken_back())?;
        }
        self.commit(draft.finish()).await
    }

    /// Each failed try is an event, and a lock is; a flood of them is told as a number.
    async fn log_sign_in_failure(
        &self,
        keys: &Keys,
        account: Option<AccountId>,
        (askers, tries): (&ThrottleCounters, FailedSignIns),
    ) -> Result<()> {
        let now = self.now();
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
        self.commit(draft.finish()).await
    }

    /// Makes strangers wait for an account no more.
    pub async fn unlock(&self, by: &Stored<Account>, of: &AccountId) -> Result<()> {
        retrying!(self.reset_sign_in_throttle_once(by, of))
    }

    async fn reset_sign_in_throttle_once(&self, by: &Stored<Account>, of: &AccountId) -> Result<()> {
        let (keys, now) = (self.keys()?, self.now());
        let account: Stored<Account> = self.need(&keys, of.as_str(), "account").await?;
        let counter = name_counter(&keys, &account.record.name);
        let Some(tries) = self.fetch::<FailedSignIns>(&keys, &counter).await? else { return Ok(()) };
        let mut draft = Draft::new(keys.row(), now);
        draft.require_unchanged(by);
        draft.replace(&tries, &tries.record.forgiven())?;
        let data: Value = json!({"account": account.record.id, "by": by.record.id, "by_name": by.record.name});
        event_recorder::outside(&mut draft, None, now, EventType::Unlocked, data)?;
        self.commit(draft.finish()).await
    }

    /// Until when strangers wait for an account, if they do.
    pub async fn throttled_until(&self, of: &Account) -> Result<Option<Timestamp>> {
        let keys = self.keys()?;
        let tries = self.fetch::<FailedSignIns>(&keys, &name_counter(&keys, &of.name)).await?;
        Ok(tries.and_then(|it| it.record.waits_until(&self.settings.people.sign_ins, self.now())))
    }

    /// What a browser shows from now on, so that this account knows it again.
    pub fn device_of(&self, account: &Account) -> Result<String> {
        let keys = self.keys()?;
        let mut bytes = random::bytes::<DEVICE_BYTES>().to_vec();
        bytes.extend_from_slice(&self.now().plus(DEVICE_TTL).millis().to_be_bytes());
        let seal = keys.row().hmac(&device_message(account, &bytes));
        bytes.extend_from_slice(&seal);
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Whether a browser is one that this account signed in with.
    fn is_known_device(&self, keys: &Keys, account: &Account, device: &str) -> bool {
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(device) else { return false };
        let Some((told, seal)) = bytes.split_at_checked(DEVICE_BYTES + 8) else { return false };
        let until = told[DEVICE_BYTES..].try_into().map(i64::from_be_bytes).unwrap_or_default();
        keys.row().checks(&device_message(account, told), seal) && self.now() < Timestamp::from_millis(until)
    }
}

/// Every part with its length before it, so that nothing can move from one part to the next. Another password forgets all
/// browsers: whoever had the one before may have signed in with some.
fn device_message(account: &Account, told: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    let password = account.password_hash().unwrap_or_default();
    for part in [DEVICE_TAG, account.id.as_str().as_bytes(), password.as_bytes(), told] {
        message.extend_from_slice(&(part.len() as u64).to_be_bytes());
        message.extend_from_slice(part);
    }
    message
}
