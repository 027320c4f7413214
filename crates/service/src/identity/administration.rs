//! Administration of accounts: inviting, changing, disabling, and password reset links. Every change is an event, and
//! the account names the administrator who made the last one.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_domain::identity::account::{Account, LinkPurpose, OneTimeLink, PersonRole, SessionOrigin};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::confusable::alike;
use countersign_domain::primitives::id::{AccountId, GroupName, SessionId};
use countersign_domain::primitives::time::Timestamp;
use countersign_store::RowFilter;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::records::OPEN;
use serde_json::json;

use super::accounts::{NewAccount, check_name};
use super::change_event::{change_event, changed_by, operator};
use super::password_hash;
use super::session::{SignedIn, fingerprint, new_secret};
use super::sign_in_method::SignInMethod;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::platform::event_recorder;
use crate::platform::retry::retrying;

/// Long enough for a weekend between sending and opening.
pub const INVITATION_TTL: Duration = Duration::from_secs(3 * 24 * 3600);

/// With more groups, a list is no longer readable.
const GROUPS_MAX: usize = 32;

/// Maximum number of unused links of one person.
pub const LINKS_MAX: usize = 100;

const TOO_MANY_LINKS: &str =
    "you have 100 open invitations and reset links, which is the maximum: withdraw some, or wait until they are used";
const LAST: &str = "this is the last administrator who can sign in: add another administrator first";
pub(crate) const ONESELF: &str = "you cannot change your own access: ask another administrator";

/// An open link, without its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenLink {
    /// Id of the link. The link cannot be derived from it.
    pub id: SessionId,
    pub purpose: LinkPurpose,
    pub expires_at: Timestamp,
}

impl Identity {
    pub async fn people(&self) -> Result<Vec<Account>> {
        let keys = self.core.keys()?;
        let mut people = self.accounts_all(&keys).await?;
        people.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(people)
    }

    /// Returns the invitations and reset links that can still be used, the next to expire first.
    pub async fn open_links(&self) -> Result<Vec<OpenLink>> {
        let keys = self.core.keys()?;
        let (mut open, people) = (self.valid_links(&keys).await?, self.accounts_all(&keys).await?);
        let makers: BTreeSet<&str> = people.iter().filter(|it| self.may_invite(it)).map(|it| it.id.as_str()).collect();
        open.retain(|it| it.record.purpose.made_by().is_none_or(|by| makers.contains(by.by.as_str())));
        let told = |it: OneTimeLink| OpenLink { id: it.id, purpose: it.purpose, expires_at: it.expires_at };
        Ok(open.into_iter().map(|it| told(it.record)).collect())
    }

    /// Lists only links that expire later than now, so that expired links do not use up the limit.
    pub(crate) async fn valid_links(&self, keys: &Keys) -> Result<Vec<Stored<OneTimeLink>>> {
        self.all_due_after(keys, RowFilter::State(OPEN), self.core.now()).await
    }

    /// Checks the limit of open links. The limit keeps all links of one person small enough to withdraw in one change.
    async fn check_link_limit(&self, keys: &Keys, by: &Account) -> Result<()> {
        let open = self.valid_links(keys).await?;
        let own =
            open.iter().filter_map(|it| it.record.purpose.made_by()).filter(|it| it.by.as_str() == by.id.as_str());
        if own.count() < LINKS_MAX { Ok(()) } else { Err(Error::WrongState(TOO_MANY_LINKS)) }
    }

    /// Creates a link that lets a new person create their account. The secret appears only in this response.
    pub async fn invite(&self, by: &Stored<Account>, new: &NewAccount) -> Result<String> {
        self.require_local_accounts()?;
        check_name("/name", &new.name)?;
        if new.groups.len() > GROUPS_MAX {
            return Err(Error::invalid(
                "/groups",
                format!("a person can be in at most {GROUPS_MAX} groups: name fewer"),
            ));
        }
        let (keys, now) = (self.core.keys()?, self.core.now());
        self.check_names(&keys, &new.name, &new.groups).await?;
        // Two invitations with similar names could otherwise create accounts that reviewers confuse.
        let like = |it: &OpenLink| matches!(&it.purpose, LinkPurpose::Invite { name, .. } if alike(name, &new.name));
        if self.open_links().await?.iter().any(like) {
            return Err(Error::Exists(
                "an open invitation has this name or a similar one: withdraw that invitation first",
            ));
        }
        let (name, role, groups) = (new.name.clone(), new.role, new.groups.clone());
        let purpose = LinkPurpose::Invite { name, role, groups, by: changed_by(by, now) };
        self.put_link(&keys, Some(by), EventType::Invited, purpose, INVITATION_TTL).await
    }

    /// Returns the administrator who made a link. A link acts in the name of this administrator, so it is invalid once
    /// the person is no administrator any more or cannot sign in.
    pub(crate) async fn link_issuer(&self, keys: &Keys, link: &OneTimeLink) -> Result<Option<Stored<Account>>> {
        let Some(by) = link.purpose.made_by() else { return Ok(None) };
        let maker = self.core.fetch::<Account>(keys, by.by.as_str()).await?;
        maker.filter(|it| self.may_invite(&it.record)).map(Some).ok_or(Error::NotFound("link"))
    }

    /// Returns the administrator who made a link, and requires that this does not change before the commit.
    pub(crate) async fn require_link_issuer(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        link: &OneTimeLink,
    ) -> Result<()> {
        if let Some(maker) = self.link_issuer(keys, link).await? {
            draft.require_unchanged(&maker);
        }
        Ok(())
    }

    fn may_invite(&self, maker: &Account) -> bool {
        maker.role == PersonRole::Admin && self.can_sign_in(maker)
    }

    pub(crate) async fn put_link(
        &self,
        keys: &Keys,
        by: Option<&Stored<Account>>,
        kind: EventType,
        purpose: LinkPurpose,
        ttl: Duration,
    ) -> Result<String> {
        if let Some(by) = by {
            self.check_link_limit(keys, &by.record).await?;
        }
        let (now, secret) = (self.core.now(), new_secret());
        let link = OneTimeLink { id: fingerprint(&secret), purpose, expires_at: now.plus(ttl), used: false };
        let mut draft = Draft::new(keys.row(), now);
        if let Some(by) = by {
            // The commit fails if the administrator was disabled or lost the role in the meantime.
            draft.require_unchanged(by);
        }
        draft.insert(&link)?;
        let data = json!({"link": link.id, "expires_at": link.expires_at, "for": link.purpose});
        event_recorder::outside(&mut draft, None, now, kind, data)?;
        if let LinkPurpose::Reset { account, .. } = &link.purpose {
            // The reset may be a reaction to a stolen password, so nothing that depends on it stays valid.
            self.end_sessions(&mut draft, keys, account, None).await?;
            let by = by.map_or_else(|| operator(now), |by| changed_by(by, now));
            self.end_delegations_made_by_password(&mut draft, keys, account, &by, None).await?;
        }
        self.core.commit(draft.finish()).await?;
        Ok(secret)
    }

    /// Withdraws an invitation or a reset link.
    pub async fn withdraw_link(&self, by: &Stored<Account>, id: &SessionId) -> Result<()> {
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let link: Stored<OneTimeLink> = self.core.need(&keys, id.as_str(), "link").await?;
            // Other kinds of links belong to a running sign-in, and no administrator made them.
            if !matches!(link.record.purpose, LinkPurpose::Invite { .. } | LinkPurpose::Reset { .. }) {
                return Err(Error::NotFound("link"));
            }
            if link.record.used {
                return Err(Error::WrongState("the link was already used or withdrawn"));
            }
            let mut draft = Draft::new(keys.row(), now);
            draft.require_unchanged(by);
            draft.replace(&link, &OneTimeLink { used: true, ..link.record.clone() })?;
            let data = json!({"link": id, "by": by.record.id, "by_name": by.record.name});
            event_recorder::outside(&mut draft, None, now, EventType::LinkWithdrawn, data)?;
            self.core.commit(draft.finish()).await
        })
    }

    /// Uses an invitation or a reset link: the person chooses a password and is signed in.
    pub async fn choose_password(
        &self,
        secret: &str,
        password: String,
        origin: Option<SessionOrigin>,
    ) -> Result<(SignedIn, String)> {
        let link = self.link_of(secret).await?;
        let account = match link.record.purpose.clone() {
            LinkPurpose::Invite { name, role, groups, by } => {
                let account = self.new_account(&NewAccount { name, role, groups }, password).await?;
                self.put_account(Account { changed: Some(by), ..account }, Some(link)).await?.id
            }
            LinkPurpose::Reset { account, by } => {
                password_hash::check_strength(&password)?;
                // Hashed before the first attempt, so that a conflict does not repeat the slow work.
                let hash = password_hash::hash(password).await?;
                retrying!(self.reset_once(&link, &account, by.as_ref(), &hash))?;
                account
            }
            _ => return Err(Error::NotFound("link")),
        };
        let keys = self.core.keys()?;
        let account = self.core.need::<Account>(&keys, account.as_str(), "account").await?;
        self.open_session(&keys, account, SignInMethod::Password, origin).await
    }

    /// Sets the role and the groups of an account. Administrators cannot change their own access, and the last
    /// administrator keeps the role.
    pub async fn change_access(
        &self,
        by: &Stored<Account>,
        of: &AccountId,
        role: PersonRole,
        groups: &BTreeSet<GroupName>,
    ) -> Result<()> {
        if by.record.id == *of {
            return Err(Error::WrongState(ONESELF));
        }
        retrying!({
            let stored: Stored<Account> = self.core.need(&*self.core.keys()?, of.as_str(), "account").await?;
            self.set_access_once(stored, role, groups, Some(by)).await.map(drop)
        })
    }

    /// Sets the role or the groups of the account with that name, on behalf of the operator of the host.
    pub async fn set_access(
        &self,
        name: &str,
        role: Option<PersonRole>,
        groups: Option<&BTreeSet<GroupName>>,
    ) -> Result<Account> {
        retrying!({
            let keys = self.core.keys()?;
            let stored = self.core.reader(&keys).get_by_alias::<Account>(name).await?;
            let stored = stored.ok_or(Error::NotFound("account"))?;
            let role = role.unwrap_or(stored.record.role);
            let groups = groups.cloned().unwrap_or_else(|| stored.record.groups.clone());
            self.set_access_once(stored, role, &groups, None).await
        })
    }

    async fn set_access_once(
        &self,
        stored: Stored<Account>,
        role: PersonRole,
        groups: &BTreeSet<GroupName>,
        by: Option<&Stored<Account>>,
    ) -> Result<Account> {
        if groups.len() > GROUPS_MAX {
            return Err(Error::invalid(
                "/groups",
                format!("a person can be in at most {GROUPS_MAX} groups: name fewer"),
            ));
        }
        if stored.record.role == role && stored.record.groups == *groups {
            return Ok(stored.record);
        }
        let (keys, now) = (self.core.keys()?, self.core.now());
        self.check_groups(&self.accounts_all(&keys).await?, groups)?;
        let mut draft = Draft::new(keys.row(), now);
        let by = by.map(|by| {
            draft.require_unchanged(by);
            changed_by(by, now)
        });
        if role != PersonRole::Admin {
            self.require_another_admin(&mut draft, &keys, &stored.record).await?;
        }
        // The command line names no administrator, so the account keeps the last one.
        let changed = by.clone().or_else(|| stored.record.changed.clone());
        let next = Account { role, groups: groups.clone(), changed, ..stored.record.clone() };
        draft.replace(&stored, &next)?;
        let mut data = change_event(&stored, by.as_ref());
        data["name"] = json!(next.name);
        data["role"] = json!(next.role);
        data["groups"] = json!(next.groups);
        // Auditors see the old access without searching for the event before.
        data["was"] = json!({"role": stored.record.role, "groups": stored.record.groups});
        event_recorder::outside(&mut draft, None, now, EventType::AccountChanged, data)?;
        self.core.commit(draft.finish()).await?;
        Ok(next)
    }

    /// Requires that another administrator remains. If two administrators remove each other at once, the commit of the
    /// second fails.
    pub(crate) async fn require_another_admin(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        leaving: &Account,
    ) -> Result<()> {
        if !leaving.administers() {
            return Ok(());
        }
        let people = self.accounts_all(keys).await?;
        let other = people.iter().find(|it| it.id != leaving.id && it.administers());
        let other = other.ok_or(Error::WrongState(LAST))?;
        let other: Stored<Account> = self.core.need(keys, other.id.as_str(), "account").await?;
        // The list was read a moment before the row. The caller tries again with a new list.
        if !other.record.administers() {
            return Err(Error::Busy);
        }
        // Makes the commit fail if the other administrator loses the role at the same time.
        draft.require_unchanged(&other);
        Ok(())
    }
}
