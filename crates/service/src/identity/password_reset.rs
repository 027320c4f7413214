//! Links that let a person choose another password.

use std::time::Duration;

use countersign_domain::identity::account::{AccessChange, Account, AccountCredential, LinkPurpose, OneTimeLink};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{AccountId, SessionId};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::json;

use super::administration::ONESELF;
use super::change_event::{change_event, changed_by, operator};
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::platform::event_recorder;

/// Shorter than an invitation, because the person waits for the link.
pub const RESET_TTL: Duration = Duration::from_secs(24 * 3600);

const ELSEWHERE: &str =
    "this person signs in with the OpenID provider and has no password here: reset it at the provider";

impl Identity {
    /// Creates a link that lets a person choose another password. Their sessions end now, and again when they use the
    /// link.
    pub async fn reset_link(&self, by: &Stored<Account>, of: &AccountId) -> Result<String> {
        self.require_local_accounts()?;
        let keys = self.core.keys()?;
        let account: Stored<Account> = self.core.need(&keys, of.as_str(), "account").await?;
        // A stolen administrator session must not be able to change that administrator's own password.
        if by.record.id == account.record.id {
            return Err(Error::WrongState(ONESELF));
        }
        let purpose = reset_of(&account.record, Some(changed_by(by, self.core.now())))?;
        self.put_link(&keys, Some(by), EventType::ResetLinkMade, purpose, RESET_TTL).await
    }

    /// Creates the same link for the account of this name, on behalf of the operator of the host.
    pub async fn reset_link_for(&self, name: &str) -> Result<String> {
        self.require_local_accounts()?;
        let keys = self.core.keys()?;
        let account = self.core.reader(&keys).get_by_alias::<Account>(name).await?.ok_or(Error::NotFound("account"))?;
        let purpose = reset_of(&account.record, None)?;
        self.put_link(&keys, None, EventType::ResetLinkMade, purpose, RESET_TTL).await
    }

    pub(crate) async fn reset_once(
        &self,
        link: &Stored<OneTimeLink>,
        account: &AccountId,
        by: Option<&AccessChange>,
        hash: &str,
    ) -> Result<()> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        // Each attempt reads the link again, because a conflict may mean that it was used.
        let link: Stored<OneTimeLink> = self.core.need(&keys, link.record.id.as_str(), "link").await?;
        let stored: Stored<Account> = self.core.need(&keys, account.as_str(), "account").await?;
        if link.record.used || stored.record.disabled || stored.record.password_hash().is_none() {
            return Err(Error::NotFound("link"));
        }
        let by = by.map(|by| AccessChange { at: now, ..by.clone() });
        let sign_in = AccountCredential::Password { hash: hash.to_owned() };
        // The command line names no administrator, so the account keeps the last one.
        let changed = by.clone().or_else(|| stored.record.changed.clone());
        let next = Account { sign_in, changed, ..stored.record.clone() };
        let mut draft = Draft::new(keys.row(), now);
        // The database's clock decides whether the link has expired.
        draft.before(link.record.expires_at);
        self.require_link_issuer(&mut draft, &keys, &link.record).await?;
        draft.replace(&link, &OneTimeLink { used: true, ..link.record.clone() })?;
        draft.replace(&stored, &next)?;
        let mut data = change_event(&stored, by.as_ref());
        data["link"] = json!(link.record.id);
        event_recorder::outside(&mut draft, None, now, EventType::PasswordReset, data)?;
        self.end_sessions(&mut draft, &keys, account, None).await?;
        let by = by.unwrap_or_else(|| operator(now));
        self.end_delegations_made_by_password(&mut draft, &keys, account, &by, Some(&link.record.id)).await?;
        self.core.commit(draft.finish()).await
    }

    /// Ends everything that the old password could have created, except the link in use: delegations, invitations,
    /// reset links and requested links. An attacker with the old password may have made them.
    pub(crate) async fn end_delegations_made_by_password(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        account: &AccountId,
        by: &AccessChange,
        but: Option<&SessionId>,
    ) -> Result<()> {
        // A delegation that a passkey confirmed does not depend on the password.
        self.end_unproven_delegations(draft, keys, account, by, |it| it.confirmed_by.is_none()).await?;
        let theirs = |it: &OneTimeLink| {
            let by_them = it.purpose.made_by().is_some_and(|it| it.by.as_str() == account.as_str());
            by_them || matches!(&it.purpose, LinkPurpose::Reset { account: of, .. } if of == account)
        };
        let open = self.valid_links(keys).await?;
        for link in open.iter().filter(|it| theirs(&it.record) && but != Some(&it.record.id)) {
            draft.replace(link, &OneTimeLink { used: true, ..link.record.clone() })?;
            let data = json!({"link": link.record.id, "by": by.by, "by_name": by.name});
            event_recorder::outside(draft, None, by.at, EventType::LinkWithdrawn, data)?;
        }
        Ok(())
    }
}

/// Returns the purpose of a link that resets a password.
fn reset_of(account: &Account, by: Option<AccessChange>) -> Result<LinkPurpose> {
    if account.password_hash().is_none() {
        return Err(Error::WrongState(ELSEWHERE));
    }
    Ok(LinkPurpose::Reset { account: account.id.clone(), by })
}
