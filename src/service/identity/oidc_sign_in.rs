//! OpenID Connect sign-in, and which sign-in methods are enabled.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_domain::identity::account::{
    AccessChange, Account, AccountCredential, LinkPurpose, OneTimeLink, PersonRole, Session, SessionOrigin,
};
use countersign_domain::identity::oidc_identity::{OidcIdentity, OidcMembership, SignInRejected, account_name};
use countersign_domain::json::canonical::canonical;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::confusable::alike;
use countersign_domain::primitives::id::{AccountId, SessionId};
use countersign_domain::primitives::secret::Secret;
use countersign_domain::primitives::time::Timestamp;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;

use super::session::{SignedIn, fingerprint, new_secret};
use crate::config::OidcConfig;
pub use crate::oidc_provider::{AuthorizationResponse, AuthorizationResult};
use crate::oidc_provider::{AuthorizationSecrets, Provider};
use crate::service::error::{Error, Result};
use crate::service::identity::Identity;
use crate::service::identity::sign_in_config::{LocalAccounts, SignInMethods};
use crate::service::platform::event_recorder;
use crate::service::platform::retry::retrying;
use crate::store::RowFilter;
use crate::store::change::Draft;
use crate::store::record::Stored;

/// A person needs a minute or two to sign in at the provider, and longer with a lost second factor.
pub const ERRAND_TTL: Duration = Duration::from_secs(600);
/// A longer id token is not sent back at sign-out. The provider then asks the person which account to sign out.
const HINT_BYTES_MAX: usize = 8 * 1024;

/// Principal of account changes that the provider causes.
const PROVIDER: &str = "provider";

/// Parameters that the provider sent back with the browser.
#[derive(Clone, Debug)]
pub struct OidcCallback {
    pub state: Secret<String>,
    pub answer: AuthorizationResponse,
    pub origin: Option<SessionOrigin>,
}

pub struct SignInSuccess {
    /// New secret of the session cookie.
    pub secret: String,
    pub next: String,
}

const LOCAL_OFF: &str = "local accounts with passwords and links are disabled (`local_accounts`): sign in with your \
     organisation";

impl Identity {
    pub fn ways(&self) -> &SignInMethods {
        &self.ways
    }

    /// Returns true if the account is not disabled and its sign-in method is enabled. Disabling a method therefore also
    /// ends its sessions.
    pub(in crate::service) fn can_sign_in(&self, account: &Account) -> bool {
        let open = match &account.sign_in {
            AccountCredential::Password { .. } => self.ways.local == LocalAccounts::On,
            AccountCredential::Oidc { issuer, .. } => {
                self.ways.provider.as_ref().is_some_and(|it| it.settings.issuer == *issuer)
            }
        };
        open && !account.disabled
    }

    /// Returns the account with its effective status: an account whose sign-in method is disabled is treated as
    /// disabled.
    pub(in crate::service) fn with_effective_status(&self, account: Account) -> Account {
        Account { disabled: !self.can_sign_in(&account), ..account }
    }

    /// Fails if local accounts are disabled.
    pub fn require_local_accounts(&self) -> Result<()> {
        if self.ways.local == LocalAccounts::On { Ok(()) } else { Err(Error::Forbidden(LOCAL_OFF)) }
    }

    /// Returns the URL of the provider where the person signs in. The expected response is bound to the browser and
    /// stored for some minutes.
    pub async fn oidc_authorize(&self, browser: &str, next: &str) -> Result<String> {
        let provider = self.provider()?;
        let (keys, state) = (self.core.keys()?, new_secret());
        match provider.ask(&state, &errand(&keys, &state)).await {
            Ok(url) => self.store_oidc_state(&state, browser, next).await.map(|()| url),
            Err(reason) => self.not_let_in(reason, None, None).await,
        }
    }

    /// Stores that a browser was sent to the provider with this state.
    pub async fn store_oidc_state(&self, state: &str, browser: &str, next: &str) -> Result<()> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        // The row contains only hashes, so a reader of the database cannot complete the sign-in.
        let purpose = LinkPurpose::Oidc { browser: fingerprint(browser), next: next.to_owned() };
        let link = OneTimeLink { id: fingerprint(state), purpose, expires_at: now.plus(ERRAND_TTL), used: false };
        let mut draft = Draft::new(keys.row(), now);
        draft.insert(&link)?;
        let data = json!({"link": link.id, "expires_at": link.expires_at});
        event_recorder::outside(&mut draft, None, now, EventType::ProviderAsked, data)?;
        self.core.commit(draft.finish()).await
    }

    /// Signs in a person after the response of the provider.
    pub async fn oidc_callback(&self, browser: Option<&str>, back: &OidcCallback) -> Result<SignInSuccess> {
        let (provider, keys) = (self.provider()?, self.core.keys()?);
        // The state is checked before the code is redeemed, so another browser's code has no effect.
        let Some((link, next)) = self.asked(&keys, browser, &back.state).await? else {
            return self.not_let_in(SignInRejected::UnknownState, None, None).await;
        };
        let identity = match provider.answer(&back.answer, &errand(&keys, back.state.expose())).await {
            Ok(identity) => identity,
            Err(reason) => return self.not_let_in(reason, Some(link), None).await,
        };
        // The provider redeems a code once, so only the change is tried again.
        let secret = retrying!(self.complete_oidc_sign_in_once(
            &provider.settings,
            &identity,
            &link.record.id,
            back.origin.as_ref()
        ))?;
        Ok(SignInSuccess { secret, next })
    }

    /// Signs in a person with an identity from a provider with these settings. Returns the secret of the session.
    pub async fn let_in(&self, settings: &OidcConfig, identity: &OidcIdentity, state: &str) -> Result<String> {
        retrying!(self.complete_oidc_sign_in_once(settings, identity, &fingerprint(state), None))
    }

    /// Returns the URL that also signs the person out at the provider.
    pub async fn oidc_logout_url(&self, person: &SignedIn) -> Option<String> {
        let hint = person.session.record.provider_hint.as_ref()?;
        self.ways.provider.as_ref()?.leave(hint).await
    }

    fn provider(&self) -> Result<Arc<Provider>> {
        self.ways.provider.clone().ok_or(Error::NotFound("page"))
    }

    /// Returns the stored authorization of this browser if it still waits for a response.
    async fn asked(
        &self,
        keys: &Keys,
        browser: Option<&str>,
        state: &Secret<String>,
    ) -> Result<Option<(Stored<OneTimeLink>, String)>> {
        let (Some(browser), id) = (browser, fingerprint(state.expose())) else { return Ok(None) };
        let link = self.core.fetch::<OneTimeLink>(keys, id.as_str()).await?;
        let link = link.filter(|it| !it.record.used && it.record.expires_at > self.core.now());
        Ok(link.and_then(|link| match &link.record.purpose {
            LinkPurpose::Oidc { browser: whose, next } => {
                // The response must come from the browser that started the sign-in. Otherwise an attacker could sign a
                // victim in to the attacker's account (login CSRF).
                let same = whose.as_str().as_bytes().ct_eq(fingerprint(browser).as_str().as_bytes());
                let next = next.clone();
                bool::from(same).then_some((link, next))
            }
            _ => None,
        }))
    }

    /// Completes one attempt. In one change, the stored authorization is used up, the account is updated from the
    /// provider, and a session starts.
    async fn complete_oidc_sign_in_once(
        &self,
        settings: &OidcConfig,
        identity: &OidcIdentity,
        asking: &SessionId,
        origin: Option<&SessionOrigin>,
    ) -> Result<String> {
        let keys = &*self.core.keys()?;
        // Each attempt reads the link again, because a parallel request may have used it.
        let link = self.core.need::<OneTimeLink>(keys, asking.as_str(), "link").await?;
        if link.record.used {
            return self.not_let_in(SignInRejected::UnknownState, None, None).await;
        }
        let id = account_id(keys, identity);
        let known = self.core.fetch::<Account>(keys, id.as_str()).await?;
        // A disabled account stays disabled, whatever the provider reports.
        if let Some(account) = known.as_ref().filter(|it| it.record.disabled) {
            return self.not_let_in(SignInRejected::Disabled, Some(link), Some(&account.record.id)).await;
        }
        let standing = settings.mapping.standing(&identity.values);
        let mut draft = Draft::new(keys.row(), self.core.now());
        let Some(standing) = standing else {
            // Only an existing account has access that must be removed.
            if let Some(account) = &known {
                // The person no longer has a mapped group: all access is removed and all sessions end.
                let nothing = OidcMembership { role: PersonRole::Reviewer, groups: Default::default() };
                self.refresh(&mut draft, account, &nothing)?;
                self.end_sessions(&mut draft, keys, &id, None).await?;
            }
            let account = known.map(|it| it.record.id);
            self.refuse(&mut draft, SignInRejected::NotMapped, Some(&link), account.as_ref())?;
            self.core.commit(draft.finish()).await?;
            return Err(Error::NotLetIn(SignInRejected::NotMapped));
        };
        match &known {
            Some(account) => {
                // A separate change before the sign-in, so that a full list of sessions never prevents it.
                self.evict_oldest_sessions(keys, &id).await?;
                self.refresh(&mut draft, account, &standing)?;
            }
            None => match self.name_for(keys, identity).await? {
                Ok(name) => self.enrol(&mut draft, id.clone(), name, identity, standing)?,
                Err(reason) => return self.not_let_in(reason, Some(link), None).await,
            },
        }
        let secret = new_secret();
        let session = self.new_session(&id, &secret, settings, identity, origin);
        begin_session(&mut draft, &session, &link)?;
        match self.core.commit(draft.finish()).await {
            // The state expired by the database's clock, so it counts as unknown.
            Err(error) if error.is_too_late() => self.not_let_in(SignInRejected::UnknownState, None, None).await,
            other => other.map(|()| secret),
        }
    }

    /// Updates the account from the provider. An unchanged account becomes a precondition of the change.
    fn refresh(&self, draft: &mut Draft<'_>, stored: &Stored<Account>, standing: &OidcMembership) -> Result<()> {
        let OidcMembership { role, groups } = standing.clone();
        if (stored.record.role, &stored.record.groups) == (role, &groups) {
            draft.require_unchanged(stored);
            return Ok(());
        }
        let now = self.core.now();
        let by = change_by_provider(&stored.record, now);
        let account = Account { role, groups, changed: Some(by.clone()), ..stored.record.clone() };
        draft.replace(stored, &account)?;
        let data = json!({
            "account": account.id, "name": account.name, "role": account.role, "groups": account.groups,
            "revision": stored.revision + 1, "by": by.by, "by_name": by.name,
        });
        event_recorder::outside(draft, None, now, EventType::AccountChanged, data)
    }

    fn enrol(
        &self,
        draft: &mut Draft<'_>,
        id: AccountId,
        name: String,
        identity: &OidcIdentity,
        standing: OidcMembership,
    ) -> Result<()> {
        let sign_in = AccountCredential::Oidc { issuer: identity.issuer.clone(), subject: identity.subject.clone() };
        let OidcMembership { role, groups } = standing;
        let account =
            Account { id, name, role, groups, sign_in, disabled: false, created_at: self.core.now(), changed: None };
        draft.insert(&account)?;
        event_recorder::outside(draft, None, self.core.now(), EventType::AccountAdded, added_data(&account))
    }

    /// Returns a name that is not similar to that of an account, a group or the owner of a token. The account keeps this name even if the provider
    /// renames the person, because tokens refer to their owner by name.
    async fn name_for(
        &self,
        keys: &Keys,
        identity: &OidcIdentity,
    ) -> Result<std::result::Result<String, SignInRejected>> {
        let Some(name) = identity.name.as_deref().and_then(account_name) else {
            return Ok(Err(SignInRejected::UnusableName));
        };
        let stored = self.all_of::<Account>(keys, RowFilter::All).await?;
        let people: Vec<Account> = stored.into_iter().map(|it| it.record).collect();
        // A similar name could be confused with that of another reviewer. People often choose their name at the provider
        // themselves, so it must not make them owners of tokens either.
        let taken = people.iter().any(|it| alike(&it.name, &name)) || self.is_name_of_owner(&people, &name).await?;
        Ok(if taken { Err(SignInRejected::NameTaken) } else { Ok(name) })
    }

    fn new_session(
        &self,
        account: &AccountId,
        secret: &str,
        settings: &OidcConfig,
        identity: &OidcIdentity,
        origin: Option<&SessionOrigin>,
    ) -> Session {
        let now = self.core.now();
        Session {
            id: fingerprint(secret),
            account: account.clone(),
            created_at: now,
            // The shorter limit applies, so that a removal at the provider has an effect soon.
            expires_at: now.plus(self.core.settings.session_lifetime.min(settings.session)),
            ended: false,
            origin: origin.cloned(),
            provider_hint: Some(identity.hint.clone()).filter(|it| it.len() <= HINT_BYTES_MAX),
            passkey: None,
        }
    }

    /// Rejects the sign-in and records it. An authorization that got its response is used up.
    async fn not_let_in<T>(
        &self,
        reason: SignInRejected,
        link: Option<Stored<OneTimeLink>>,
        account: Option<&AccountId>,
    ) -> Result<T> {
        let keys = self.core.keys()?;
        let mut draft = Draft::new(keys.row(), self.core.now());
        self.refuse(&mut draft, reason, link.as_ref(), account)?;
        match self.core.commit(draft.finish()).await {
            // Another request used the same authorization and recorded it.
            Err(error) if error.is_conflict() => {}
            other => other?,
        }
        Err(Error::NotLetIn(reason))
    }

    fn refuse(
        &self,
        draft: &mut Draft<'_>,
        reason: SignInRejected,
        link: Option<&Stored<OneTimeLink>>,
        account: Option<&AccountId>,
    ) -> Result<()> {
        let mut data = json!({"account": account, "reason": reason.as_str()});
        if let Some(link) = link {
            draft.replace(link, &OneTimeLink { used: true, ..link.record.clone() })?;
            data["link"] = json!(link.record.id);
        }
        event_recorder::outside(draft, None, self.core.now(), EventType::SignInFailed, data)
    }
}

/// Starts a new session and replaces any earlier session of the browser.
fn begin_session(draft: &mut Draft<'_>, session: &Session, link: &Stored<OneTimeLink>) -> Result<()> {
    draft.insert(session)?;
    // The database's clock decides whether the authorization has expired.
    draft.before(link.record.expires_at);
    draft.replace(link, &OneTimeLink { used: true, ..link.record.clone() })?;
    let data = json!({"account": session.account, "session": session.id, "link": link.record.id});
    event_recorder::outside(draft, None, session.created_at, EventType::SignedIn, data)
}

/// Returns the event data of a new account. An audit compares it with the row.
pub(in crate::service) fn added_data(account: &Account) -> Value {
    let mut data = json!({"account": account.id, "name": account.name, "role": account.role, "groups": account.groups});
    if let AccountCredential::Oidc { issuer, subject } = &account.sign_in {
        data["sign_in"] = json!({"by": "oidc", "issuer": issuer, "subject": subject});
    }
    data
}

/// Derives the account id from the identity at the provider alone, so that one person cannot have two accounts and two
/// people cannot share one. The keyring is needed to compute the id.
pub(in crate::service) fn account_id(keys: &Keys, identity: &OidcIdentity) -> AccountId {
    // Canonical JSON keeps issuer and subject apart, so two people never give the same text.
    let who = canonical(&json!([identity.issuer, identity.subject]));
    AccountId::try_from(format!("oidc-{}", derived(keys, "account", &who))).expect("base64url is part of a name")
}

/// Derives the secrets of a state. They are derived again when the state comes back, so that no row contains them.
fn errand(keys: &Keys, state: &str) -> AuthorizationSecrets {
    AuthorizationSecrets {
        nonce: Secret::new(derived(keys, "nonce", state)),
        verifier: Secret::new(derived(keys, "verifier", state)),
    }
}

fn derived(keys: &Keys, what: &str, of: &str) -> String {
    URL_SAFE_NO_PAD.encode(keys.row().hmac(format!("countersign.oidc-{what}.v1\0{of}").as_bytes()))
}

/// Returns the provider as the author of an account change.
fn change_by_provider(account: &Account, at: Timestamp) -> AccessChange {
    let name = match &account.sign_in {
        AccountCredential::Oidc { issuer, .. } => issuer.clone(),
        AccountCredential::Password { .. } => String::new(),
    };
    AccessChange { by: PROVIDER.try_into().expect("a word is a name"), name, at }
}
