//! Self-service for the own account: changing the password and ending sessions.

use countersign_domain::identity::account::{Account, AccountCredential, Session};
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{AccountId, SessionId};
use countersign_store::change::Draft;
use countersign_store::record::Stored;

use super::change_event::{change_event, changed_by};
use super::password_hash;
use super::revocation::SessionFilter;
use super::session::SignedIn;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::platform::event_recorder;
use crate::platform::retry::retrying;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PasswordChangeOutcome {
    Yes,
    /// The old password was wrong, and nothing was changed.
    WrongPassword,
}

impl Identity {
    /// Changes the password of a person who knows the old one. All other sessions of the person end.
    pub async fn change_password(&self, me: &SignedIn, old: String, new: String) -> Result<PasswordChangeOutcome> {
        let account = &me.account.record;
        if account.password_hash().is_none() {
            return Err(Error::WrongState(
                "you sign in with the OpenID provider and have no password here: change it at the provider",
            ));
        }
        password_hash::check_strength(&new)?;
        // Counted like a sign-in. A stolen session must not allow guessing of the password.
        if !self.is_own_password(account, old).await? {
            return Ok(PasswordChangeOutcome::WrongPassword);
        }
        // Hashed before the first attempt, so that a conflict does not repeat the slow work.
        let hash = password_hash::hash(new).await?;
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let stored: Stored<Account> = self.core.need(&keys, me.account.record.id.as_str(), "account").await?;
            // The password must not have changed since the old one was checked.
            if stored.record.disabled || stored.record.sign_in != me.account.record.sign_in {
                return Err(Error::Unauthenticated);
            }
            let mut draft = Draft::new(keys.row(), now);
            // A session that was ended at the same time must not change the password.
            draft.require_unchanged(&me.session);
            let sign_in = AccountCredential::Password { hash: hash.clone() };
            draft.replace(&stored, &Account { sign_in, ..stored.record.clone() })?;
            event_recorder::outside(&mut draft, None, now, EventType::PasswordChanged, change_event(&stored, None))?;
            self.end_sessions(&mut draft, &keys, &stored.record.id, Some(SessionFilter::AllBut(&me.session.record.id)))
                .await?;
            self.end_delegations_made_by_password(
                &mut draft,
                &keys,
                &stored.record.id,
                &changed_by(&stored, now),
                None,
            )
            .await?;
            self.core.commit(draft.finish()).await
        })?;
        Ok(PasswordChangeOutcome::Yes)
    }

    /// Returns the open sessions of a person, the latest first.
    pub async fn sessions_of(&self, account: &AccountId) -> Result<Vec<Session>> {
        let keys = self.core.keys()?;
        let open = self.open_sessions(&keys, account).await?;
        let mut open: Vec<Session> = open.into_iter().map(|it| it.record).collect();
        open.sort_by_key(|it| std::cmp::Reverse(it.created_at));
        Ok(open)
    }

    /// Ends one session of the person. A session that is over stays unchanged.
    pub async fn end_session(&self, me: &SignedIn, which: &SessionId) -> Result<()> {
        retrying!(self.end_own(me, SessionFilter::Only(which)))
    }

    /// Ends all sessions of the person except the current one.
    pub async fn end_other_sessions(&self, me: &SignedIn) -> Result<()> {
        retrying!(self.end_own(me, SessionFilter::AllBut(&me.session.record.id)))
    }

    async fn end_own(&self, me: &SignedIn, which: SessionFilter<'_>) -> Result<()> {
        let keys = self.core.keys()?;
        let mut draft = Draft::new(keys.row(), self.core.now());
        self.end_sessions(&mut draft, &keys, &me.account.record.id, Some(which)).await?;
        self.core.commit(draft.finish()).await
    }
}
