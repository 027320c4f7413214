//! Accounts, tokens, sessions and one-time links.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use countersign_adapters::random;
use countersign_domain::identity::account::{
    Account, AccountCredential, LinkPurpose, MachineRole, OneTimeLink, PersonRole, Session, SessionOrigin, Token,
};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{AccountId, FlowId, GroupName, NodeId, SessionId, TokenId};
use countersign_domain::primitives::time::Timestamp;
use countersign_store::RowFilter;
use countersign_store::change::Draft;
use countersign_store::record::{ListBounds, Stored};
use serde_json::json;
use subtle::ConstantTimeEq as _;

use super::oidc_sign_in::added_data;
use super::owner_names::NewOwner;
use super::password_hash::HashedPassword;
use super::session::{SignedIn, fingerprint, new_secret};
use super::sign_in_method::SignInMethod;
use crate::error::{Error, Result, TokenRefusal};
use crate::identity::Identity;
use crate::identity::actor::Actor;
use crate::platform::event_recorder;

/// Long enough to find the terminal again.
pub const LINK_TTL: Duration = Duration::from_secs(3600);
/// Names are shown in lists.
const NAME_CHARS_MAX: usize = 64;
/// Prefix of every token, so that secret scanners can find leaked ones.
pub const TOKEN_PREFIX: &str = "cs_";

#[derive(Clone, Debug)]
pub struct NewAccount {
    pub name: String,
    pub role: PersonRole,
    pub groups: BTreeSet<GroupName>,
}

#[derive(Clone, Debug)]
pub struct NewToken {
    pub name: String,
    pub role: MachineRole,
    pub owner: NewOwner,
    pub flow: Option<FlowId>,
    pub nodes: BTreeSet<NodeId>,
}

pub(crate) fn check_name(pointer: &str, name: &str) -> Result<()> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
    let fits = !name.is_empty() && name.chars().count() <= NAME_CHARS_MAX && name.chars().all(plain);
    if fits {
        return Ok(());
    }
    Err(Error::invalid(pointer, format!("use 1 to {NAME_CHARS_MAX} letters, digits or . _ - @")))
}

impl Identity {
    pub async fn add_account(&self, new: &NewAccount, password: String) -> Result<Account> {
        let (account, draft_link) = (self.new_account(new, password).await?, None::<Stored<OneTimeLink>>);
        self.put_account(account, draft_link).await
    }

    /// Adds an account with a password that is hashed already.
    pub async fn add_account_hashed(&self, new: &NewAccount, password: &HashedPassword) -> Result<Account> {
        self.check_new_account(new).await?;
        self.put_account(self.account(new, password.clone()), None).await
    }

    pub(crate) async fn new_account(&self, new: &NewAccount, password: String) -> Result<Account> {
        self.check_new_account(new).await?;
        Ok(self.account(new, HashedPassword::of(password).await?))
    }

    async fn check_new_account(&self, new: &NewAccount) -> Result<()> {
        self.require_local_accounts()?;
        check_name("/name", &new.name)?;
        self.check_names(&*self.core.keys()?, &new.name, &new.groups).await
    }

    fn account(&self, new: &NewAccount, password: HashedPassword) -> Account {
        let now = self.core.now();
        let id = AccountId::try_from(random::uuid_v7(now).to_string()).expect("a UUID is a name");
        let sign_in = AccountCredential::Password { hash: password.into_phc() };
        let (name, role, groups) = (new.name.clone(), new.role, new.groups.clone());
        Account { id, name, role, groups, sign_in, disabled: false, created_at: now, changed: None }
    }

    pub(crate) async fn put_account(&self, account: Account, link: Option<Stored<OneTimeLink>>) -> Result<Account> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let mut draft = Draft::new(keys.row(), now);
        draft.insert(&account)?;
        let data = added_data(&account);
        event_recorder::outside(&mut draft, None, now, EventType::AccountAdded, data)?;
        if let Some(link) = &link {
            self.require_link_issuer(&mut draft, &keys, &link.record).await?;
            // Only a set-up link promises that its account is the first one.
            if matches!(link.record.purpose, LinkPurpose::SetUp {}) {
                self.claim_first_account(&mut draft, &keys, &link.record.id, &account).await?;
            }
            // The database's clock decides whether the link has expired.
            draft.before(link.record.expires_at);
            draft.replace(link, &OneTimeLink { used: true, ..link.record.clone() })?;
            let mut data = json!({"account": account.id, "link": link.record.id});
            if let Some(by) = &account.changed {
                data["by"] = json!(by.by);
                data["by_name"] = json!(by.name);
                data["at"] = json!(by.at);
            }
            event_recorder::outside(&mut draft, None, now, EventType::SetupLinkUsed, data)?;
        }
        match self.core.commit(draft.finish()).await {
            // The name is taken or the link was used, so another try would fail too.
            Err(error) if error.is_conflict() => Err(Error::Exists(match link {
                None => "an account with this name exists already, and it was not changed: choose another name",
                Some(_) => "an account with this name exists already, or the link was used: ask for a new invitation",
            })),
            other => other.map(|()| account),
        }
    }

    /// Adds a token. The secret appears only in this response.
    pub async fn add_token(&self, new: &NewToken) -> Result<(Token, String)> {
        self.put_token(new, None).await
    }

    /// Adds a token on behalf of an administrator.
    pub async fn add_token_by(&self, by: &Stored<Account>, new: &NewToken) -> Result<(Token, String)> {
        self.put_token(new, Some(by)).await
    }

    async fn put_token(&self, new: &NewToken, by: Option<&Stored<Account>>) -> Result<(Token, String)> {
        check_name("/name", &new.name)?;
        check_binding(new)?;
        let (keys, now) = (self.core.keys()?, self.core.now());
        let owner = self.owner_named(&keys, &new.owner).await?;
        let (token, secret) = new_token(new, owner, now);
        let mut draft = Draft::new(keys.row(), now);
        draft_token(&mut draft, &token, by.map(Actor::Person))?;
        self.core.commit(draft.finish()).await?;
        Ok((token, secret))
    }

    /// Returns the token for a secret if it exists and is not revoked.
    pub async fn token_of(&self, text: &str) -> Result<Stored<Token>> {
        let (id, secret) = parts_of(text)?;
        let keys = self.core.keys()?;
        let token = self.core.fetch::<Token>(&keys, id.as_str()).await?.ok_or(Error::Token(TokenRefusal::Unknown))?;
        if !has_secret(&token.record, secret) {
            return Err(Error::Token(TokenRefusal::Unknown));
        }
        if token.record.is_valid(self.core.now()) { Ok(token) } else { Err(Error::Token(TokenRefusal::Ended)) }
    }

    /// Returns the token for a secret from memory if possible. The store checks a remembered token again when it
    /// commits, so this is only for decisions that the store checks. Other decisions need [`Self::token_of`].
    pub async fn presumed_token_of(&self, text: &str) -> Result<Arc<Stored<Token>>> {
        let (id, secret) = parts_of(text)?;
        match self.core.memory.recall::<Token>(id.as_str()) {
            // A cached token with another secret or a revoked one is read again, because the cache may be old.
            Some(token) if has_secret(&token.record, secret) && token.record.is_valid(self.core.now()) => Ok(token),
            _ => self.token_of(text).await.map(Arc::new),
        }
    }

    /// Reads a remembered token again. It must be the same token and not revoked.
    pub(crate) async fn token_still(&self, keys: &Keys, presumed: &Stored<Token>) -> Result<Stored<Token>> {
        let token = self.core.fetch::<Token>(keys, presumed.record.id.as_str()).await?.ok_or(Error::Unauthenticated)?;
        let valid = token.record == presumed.record && token.record.is_valid(self.core.now());
        if valid { Ok(token) } else { Err(Error::Unauthenticated) }
    }

    pub(crate) async fn open_session(
        &self,
        keys: &Keys,
        account: Stored<Account>,
        way: SignInMethod,
        origin: Option<SessionOrigin>,
    ) -> Result<(SignedIn, String)> {
        // A disabled account may have a sign-in link from before.
        if !self.can_sign_in(&account.record) {
            return Err(Error::Unauthenticated);
        }
        // A separate change before the sign-in, so that a full list of sessions never prevents it.
        self.evict_oldest_sessions(keys, &account.record.id).await?;
        let now = self.core.now();
        let secret = new_secret();
        let session = Session {
            // The id is a hash, so a reader of the database has no cookie that works.
            id: fingerprint(&secret),
            account: account.record.id.clone(),
            created_at: now,
            expires_at: now.plus(self.core.settings.session_lifetime),
            ended: false,
            origin,
            provider_hint: None,
            passkey: way.passkey(),
        };
        let mut draft = Draft::new(keys.row(), now);
        // An account that is disabled at the same time must not get a session.
        draft.require_unchanged(&account);
        let seal = draft.insert(&session)?;
        let mut data = json!({"account": account.record.id, "session": session.id, "link": null});
        match &way {
            SignInMethod::Password => {}
            SignInMethod::Link(link) => {
                // The database's clock decides whether the link has expired.
                draft.before(link.record.expires_at);
                draft.replace(link, &OneTimeLink { used: true, ..link.record.clone() })?;
                data["link"] = json!(link.record.id);
            }
            SignInMethod::Passkey { used, .. } => {
                used.put(&mut draft, now)?;
                data["passkey"] = json!(used.id());
            }
        }
        event_recorder::outside(&mut draft, None, now, EventType::SignedIn, data)?;
        self.core.commit(draft.finish()).await?;
        Ok((SignedIn { account, session: Stored { record: session, revision: 1, seal } }, secret))
    }

    pub async fn account_row(&self, id: &AccountId) -> Result<Stored<Account>> {
        let keys = self.core.keys()?;
        self.core.need(&keys, id.as_str(), "account").await
    }

    /// Returns the person for the secret of a session cookie if the session is still valid.
    pub async fn session_of(&self, secret: &str) -> Result<SignedIn> {
        self.session_by(&fingerprint(secret)).await
    }

    pub(crate) async fn session_by(&self, id: &SessionId) -> Result<SignedIn> {
        let keys = self.core.keys()?;
        let session = self.core.fetch::<Session>(&keys, id.as_str()).await?;
        let session = session.filter(|it| it.record.is_open(self.core.now()));
        let session = session.ok_or(Error::Unauthenticated)?;
        let account = self.core.fetch::<Account>(&keys, session.record.account.as_str()).await?;
        // Checked for each request, so that disabling an account has an effect at once.
        let account = account.filter(|it| self.can_sign_in(&it.record)).ok_or(Error::Unauthenticated)?;
        Ok(SignedIn { account, session })
    }

    pub async fn sign_out(&self, person: &SignedIn) -> Result<()> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let mut draft = Draft::new(keys.row(), now);
        draft.replace(&person.session, &person.session.record.over(now))?;
        let data = json!({"account": person.account.record.id, "session": person.session.record.id});
        event_recorder::outside(&mut draft, None, now, EventType::SignedOut, data)?;
        self.core.commit(draft.finish()).await
    }

    /// Creates a link that signs one person in once.
    pub async fn sign_in_link(&self, account: &AccountId) -> Result<String> {
        self.make_link(LinkPurpose::SignIn { account: account.clone() }).await
    }

    pub(crate) async fn make_link(&self, purpose: LinkPurpose) -> Result<String> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let secret = new_secret();
        let link = OneTimeLink { id: fingerprint(&secret), purpose, expires_at: now.plus(LINK_TTL), used: false };
        let mut draft = Draft::new(keys.row(), now);
        draft.insert(&link)?;
        event_recorder::outside(
            &mut draft,
            None,
            now,
            EventType::SetupLinkMade,
            json!({"link": link.id, "expires_at": link.expires_at}),
        )?;
        self.core.commit(draft.finish()).await?;
        Ok(secret)
    }

    /// Returns the link for a secret if it can still be used.
    pub async fn link_of(&self, secret: &str) -> Result<Stored<OneTimeLink>> {
        let keys = self.core.keys()?;
        self.require_local_accounts()?;
        let link = self.core.fetch::<OneTimeLink>(&keys, fingerprint(secret).as_str()).await?;
        let link = link.filter(|it| !it.record.used && it.record.expires_at > self.core.now());
        let link = link.ok_or(Error::NotFound("link"))?;
        // A link is only as valid as the administrator who made it.
        self.link_issuer(&keys, &link.record).await?;
        // A set-up link creates the first account only. Another link may have created one since then.
        if matches!(link.record.purpose, LinkPurpose::SetUp {}) && self.has_accounts(&keys).await? {
            return Err(Error::NotFound("link"));
        }
        Ok(link)
    }

    pub async fn use_sign_in_link(&self, secret: &str) -> Result<(SignedIn, String)> {
        let link = self.link_of(secret).await?;
        let LinkPurpose::SignIn { account } = link.record.purpose.clone() else { return Err(Error::NotFound("link")) };
        let keys = self.core.keys()?;
        let account = self.core.need::<Account>(&keys, account.as_str(), "account").await?;
        self.open_session(&keys, account, SignInMethod::Link(link), None).await
    }

    pub(crate) async fn accounts_all(&self, keys: &Keys) -> Result<Vec<Account>> {
        let account = |it: Stored<Account>| Some(self.with_effective_status(it.record));
        Ok(self
            .core
            .reader(keys)
            .select(RowFilter::All, None, ListBounds::pages(ACCOUNT_PAGES_MAX), account)
            .await?
            .items)
    }
}

/// Rejects a token whose flow or nodes do not match its role.
/// Returns a token, and its secret in the form that clients send.
pub(crate) fn new_token(new: &NewToken, owner: String, now: Timestamp) -> (Token, String) {
    let secret = new_secret();
    let id = TokenId::try_from(random::uuid_v7(now).simple().to_string()).expect("a UUID is a name");
    let text = format!("{TOKEN_PREFIX}{id}_{secret}");
    let token = Token {
        id,
        name: new.name.clone(),
        role: new.role,
        owner,
        flow: new.flow.clone(),
        nodes: new.nodes.clone(),
        // The database contains only the hash, so its readers cannot use the token.
        secret_hash: fingerprint(&secret).to_string(),
        revoked: false,
        created_at: now,
        signing: None,
        expires_at: None,
    };
    (token, text)
}

/// Adds a token and its event to a change.
pub(crate) fn draft_token(draft: &mut Draft<'_>, token: &Token, by: Option<Actor<'_>>) -> Result<()> {
    draft.insert(token)?;
    let mut data = json!({
        "token": token.id, "name": token.name, "role": token.role, "owner": token.owner,
        "flow": token.flow, "nodes": token.nodes,
    });
    if let Some(end) = token.expires_at {
        data["expires_at"] = json!(end);
    }
    if let Some(by) = by {
        // The commit fails if the creator lost the permission in the meantime.
        by.rely(draft);
        data["by"] = json!(by.principal());
    }
    event_recorder::outside(draft, token.flow.as_ref(), token.created_at, EventType::TokenAdded, data)?;
    Ok(())
}

fn check_binding(new: &NewToken) -> Result<()> {
    let nodes = new.nodes.len();
    let (flow, fits) = match new.role {
        MachineRole::Host => (true, nodes == 0),
        MachineRole::Agent => (true, nodes >= 1),
        MachineRole::Writer | MachineRole::Instance | MachineRole::Provisioner => (true, nodes == 1),
        // These roles cover all flows, so naming one flow would promise a limit that does not exist.
        MachineRole::Auditor | MachineRole::Admin | MachineRole::Monitor => (false, nodes == 0),
    };
    if new.flow.is_some() != flow {
        return Err(Error::invalid(
            "/flow",
            "a token with the role host, agent, instance, provisioner or writer needs one flow, and all other roles take none",
        ));
    }
    if !fits {
        return Err(Error::invalid(
            "/nodes",
            "an agent needs at least one node, an instance, a provisioner or a writer exactly one, and all other roles take none",
        ));
    }
    Ok(())
}

/// Splits a token into its id and its secret.
fn parts_of(text: &str) -> Result<(TokenId, &str)> {
    let parts = text.strip_prefix(TOKEN_PREFIX).and_then(|it| it.split_once('_'));
    let malformed = Error::Token(TokenRefusal::Malformed);
    let Some((id, secret)) = parts else { return Err(malformed) };
    TokenId::try_from(id).map_or(Err(malformed), |id| Ok((id, secret)))
}

fn has_secret(token: &Token, secret: &str) -> bool {
    // Constant time, so that the duration does not reveal how many characters of the secret match.
    bool::from(fingerprint(secret).as_str().as_bytes().ct_eq(token.secret_hash.as_bytes()))
}

/// Pages of accounts that are examined for a possible approver.
const ACCOUNT_PAGES_MAX: usize = 20;
