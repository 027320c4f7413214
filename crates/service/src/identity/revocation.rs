//! Revokes tokens and disables accounts.

use countersign_domain::identity::account::{Account, Session, Token};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{AccountId, PasskeyId, SessionId, TokenId};
use countersign_domain::primitives::time::Timestamp;
use countersign_store::change::Draft;
use countersign_store::record::{ListBounds, Record, Stored};
use countersign_store::{Cursor, RowFilter};
use serde_json::json;

use super::change_event::{change_event, changed_by};
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::platform::event_recorder;
use crate::platform::retry::retrying;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignInAccess {
    Open,
    Barred,
}

/// Selects sessions of a person. Without a restriction, all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SessionFilter<'a> {
    Only(&'a SessionId),
    AllBut(&'a SessionId),
    /// Sessions that this passkey opened.
    OpenedBy(&'a PasskeyId),
}

/// More than one person needs. Another sign-in ends the oldest session.
pub const SESSIONS_MAX: usize = 100;

/// Number of sessions that fit into one change with their events.
const ENDED_AT_ONCE: usize = 1_000;

/// Accounts and tokens are never deleted. A hundred thousand are more than a gateway ever has, and fit into memory.
const PAGES_MAX: usize = 100;

impl Identity {
    /// Revokes a token. A token that is already revoked stays unchanged.
    pub async fn revoke_token(&self, id: &TokenId) -> Result<()> {
        retrying!(self.revoke_token_once(id, None))
    }

    /// Revokes a token on behalf of an administrator.
    pub async fn revoke_token_by(&self, by: &Stored<Account>, id: &TokenId) -> Result<()> {
        retrying!(self.revoke_token_once(id, Some(by)))
    }

    async fn revoke_token_once(&self, id: &TokenId, by: Option<&Stored<Account>>) -> Result<()> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let token: Stored<Token> = self.core.need(&keys, id.as_str(), "token").await?;
        if token.record.revoked {
            return Ok(());
        }
        let mut draft = Draft::new(keys.row(), now);
        // The row stays, because old entries and audits refer to it.
        draft.replace(&token, &Token { revoked: true, ..token.record.clone() })?;
        let mut data = json!({"token": id});
        if let Some(by) = by {
            draft.require_unchanged(by);
            data["by"] = json!(by.record.id);
        }
        event_recorder::outside(&mut draft, token.record.flow.as_ref(), now, EventType::TokenRevoked, data)?;
        self.core.commit(draft.finish()).await
    }

    /// Returns all tokens in the order of creation.
    pub async fn tokens(&self) -> Result<Vec<Token>> {
        let keys = self.core.keys()?;
        let tokens = self.all_of::<Token>(&keys, RowFilter::All).await?;
        Ok(tokens.into_iter().map(|it| it.record).collect())
    }

    /// Enables or disables the account with that name, and ends all its sessions. Tokens that the person owns stay
    /// valid, so that automated work does not stop when a person leaves.
    pub async fn set_admission(&self, name: &str, admission: SignInAccess) -> Result<Account> {
        retrying!(self.set_admission_once(name, admission, None))
    }

    /// Enables or disables another person's account on behalf of an administrator.
    pub async fn set_admission_by(&self, by: &Stored<Account>, name: &str, admission: SignInAccess) -> Result<Account> {
        if by.record.name == name {
            return Err(Error::WrongState("you cannot disable or enable your own account: ask another administrator"));
        }
        retrying!(self.set_admission_once(name, admission, Some(by)))
    }

    async fn set_admission_once(
        &self,
        name: &str,
        admission: SignInAccess,
        by: Option<&Stored<Account>>,
    ) -> Result<Account> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let stored = self.core.reader(&keys).get_by_alias::<Account>(name).await?.ok_or(Error::NotFound("account"))?;
        let disabled = admission == SignInAccess::Barred;
        if stored.record.disabled == disabled {
            return Ok(stored.record);
        }
        let mut draft = Draft::new(keys.row(), now);
        if disabled {
            // Without an administrator, accounts could only be managed on the command line.
            self.require_another_admin(&mut draft, &keys, &stored.record).await?;
        }
        let by = by.map(|by| {
            draft.require_unchanged(by);
            changed_by(by, now)
        });
        // The command line names no administrator, so the account keeps the last one.
        let changed = by.clone().or_else(|| stored.record.changed.clone());
        let account = Account { disabled, changed, ..stored.record.clone() };
        draft.replace(&stored, &account)?;
        // The event has the revision of the row. An audit can thus detect a disabled account that was restored to an
        // earlier state.
        let mut data = change_event(&stored, by.as_ref());
        data["name"] = json!(account.name);
        let kind = if disabled { EventType::AccountDisabled } else { EventType::AccountEnabled };
        event_recorder::outside(&mut draft, None, now, kind, data)?;
        self.end_sessions(&mut draft, &keys, &account.id, None).await?;
        self.core.commit(draft.finish()).await?;
        Ok(account)
    }

    /// Ends sessions. A session that started while its account was being disabled is ended when the account is enabled
    /// again. Until then it is invalid, and no other session can start.
    pub(crate) async fn end_sessions(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        account: &AccountId,
        which: Option<SessionFilter<'_>>,
    ) -> Result<()> {
        let now = self.core.now();
        let meant = |it: &Session| match which {
            None => true,
            Some(SessionFilter::Only(one)) => it.id == *one,
            Some(SessionFilter::AllBut(one)) => it.id != *one,
            Some(SessionFilter::OpenedBy(passkey)) => it.passkey.as_ref().is_some_and(|it| it.id == *passkey),
        };
        for session in self.open_sessions(keys, account).await?.iter().filter(|it| meant(&it.record)) {
            end(draft, session, now)?;
        }
        Ok(())
    }

    /// Ends the oldest sessions of a person who signs in with the maximum number of sessions. All sessions of a person
    /// therefore fit into one change.
    pub(crate) async fn evict_oldest_sessions(&self, keys: &Keys, account: &AccountId) -> Result<()> {
        retrying!({
            let mut open = self.open_sessions(keys, account).await?;
            // One more session is about to start.
            let over = (open.len() + 1).saturating_sub(SESSIONS_MAX).min(ENDED_AT_ONCE);
            if over == 0 {
                return Ok(());
            }
            open.sort_by_key(|it| it.record.created_at);
            let mut draft = Draft::new(keys.row(), self.core.now());
            for session in open.iter().take(over) {
                end(&mut draft, session, self.core.now())?;
            }
            self.core.commit(draft.finish()).await
        })
    }

    /// Returns the sessions that are still valid.
    pub(crate) async fn open_sessions(&self, keys: &Keys, account: &AccountId) -> Result<Vec<Stored<Session>>> {
        let now = self.core.now();
        let mut open = self.all_due_after::<Session>(keys, RowFilter::OwnerByDue(account.as_str()), now).await?;
        open.retain(|it| it.record.is_open(now));
        Ok(open)
    }

    pub(crate) async fn all_of<R: Record>(&self, keys: &Keys, filter: RowFilter<'_>) -> Result<Vec<Stored<R>>> {
        self.all_after(keys, filter, None).await
    }

    /// Returns the rows that are due later than a time.
    pub(crate) async fn all_due_after<R: Record>(
        &self,
        keys: &Keys,
        filter: RowFilter<'_>,
        moment: Timestamp,
    ) -> Result<Vec<Stored<R>>> {
        let first = Cursor { due: moment.millis() + 1, id: String::new() };
        self.all_after(keys, filter, Some(first)).await
    }

    async fn all_after<R: Record>(
        &self,
        keys: &Keys,
        filter: RowFilter<'_>,
        after: Option<Cursor>,
    ) -> Result<Vec<Stored<R>>> {
        let all = self.core.reader(keys).select(filter, after, ListBounds::pages(PAGES_MAX), Some).await?;
        if all.is_complete {
            return Ok(all.items);
        }
        // A partial list could miss a session that must end or a name that is taken.
        Err(Error::WrongState("there are more rows than the gateway can list"))
    }
}

fn end(draft: &mut Draft<'_>, session: &Stored<Session>, now: Timestamp) -> Result<()> {
    draft.replace(session, &session.record.over(now))?;
    let data = json!({"account": session.record.account, "session": session.record.id});
    event_recorder::outside(draft, None, now, EventType::SignedOut, data)
}
