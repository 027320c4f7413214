//! The first account: created once, with a one-time link, before any account exists.

use countersign_domain::identity::account::{Account, LinkPurpose, OneTimeLink};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::SessionId;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::{Cursor, LIST_ROWS_MAX, RowFilter};
use serde_json::json;

use super::accounts::NewAccount;
use super::session::SignedIn;
use super::sign_in_method::SignInMethod;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::identity::sign_in_config::LocalAccounts;
use crate::platform::event_recorder;

impl Identity {
    /// Returns the secret of a one-time set-up link, or `None` if an account exists already.
    pub async fn set_up_link(&self) -> Result<Option<String>> {
        let keys = self.core.keys()?;
        if self.ways().local == LocalAccounts::Off || self.has_accounts(&keys).await? {
            Ok(None)
        } else {
            self.make_link(LinkPurpose::SetUp {}).await.map(Some)
        }
    }

    /// Ends all other set-up links. If two people use different links at once, the store rejects the second change.
    pub(crate) async fn claim_first_account(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        link: &SessionId,
        account: &Account,
    ) -> Result<()> {
        let now = self.core.now();
        let mut after: Option<Cursor> = None;
        loop {
            let page =
                self.core.reader(keys).list::<OneTimeLink>(RowFilter::All, after.as_ref(), LIST_ROWS_MAX).await?;
            let Some(last) = page.last() else { break };
            after = Some(Cursor { due: 0, id: last.record.id.to_string() });
            let open =
                |it: &&Stored<OneTimeLink>| !it.record.used && it.record.expires_at > now && it.record.id != *link;
            for other in page.iter().filter(open).filter(|it| it.record.purpose == LinkPurpose::SetUp {}) {
                draft.replace(other, &OneTimeLink { used: true, ..other.record.clone() })?;
                let data = json!({"link": other.record.id, "by": account.id, "by_name": account.name});
                event_recorder::outside(draft, None, now, EventType::LinkWithdrawn, data)?;
            }
        }
        // Checked last. Two links that are used at once conflict on the links that each withdraws.
        if self.has_accounts(keys).await? { Err(Error::NotFound("link")) } else { Ok(()) }
    }

    pub(crate) async fn has_accounts(&self, keys: &Keys) -> Result<bool> {
        Ok(!self.core.reader(keys).list::<Account>(RowFilter::All, None, 1).await?.is_empty())
    }

    /// Uses a set-up link: creates the first account and signs it in.
    pub async fn use_set_up_link(
        &self,
        secret: &str,
        new: &NewAccount,
        password: String,
    ) -> Result<(SignedIn, String)> {
        let link = self.link_of(secret).await?;
        if !matches!(link.record.purpose, LinkPurpose::SetUp {}) {
            return Err(Error::NotFound("link"));
        }
        let account = self.new_account(new, password).await?;
        let account = self.put_account(account, Some(link)).await?;
        let keys = self.core.keys()?;
        let stored = self.core.need::<Account>(&keys, account.id.as_str(), "account").await?;
        self.open_session(&keys, stored, SignInMethod::Password, None).await
    }
}
