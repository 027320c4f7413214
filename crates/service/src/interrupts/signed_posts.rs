//! Signed posts from host applications: creates the signing secrets and finds the sender of a post.

use countersign_domain::identity::account::{Account, MachineRole, Token};
use countersign_domain::interrupts::InterruptRejected;
use countersign_domain::interrupts::signed_post::{PostRejected, SignedPost, SigningSecretRef};
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::TokenId;
use countersign_domain::primitives::secret::Secret;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::interrupts::Interrupts;
use crate::platform::event_recorder;
use crate::platform::retry::retrying;

impl Interrupts {
    /// Creates the next signing secret for a token of a host application. The secret appears only in this response.
    pub async fn make_post_secret(&self, id: &TokenId) -> Result<(Token, Secret<String>)> {
        retrying!(self.make_post_secret_once(id, None))
    }

    /// Creates the next signing secret on behalf of an administrator.
    pub async fn make_post_secret_by(&self, by: &Stored<Account>, id: &TokenId) -> Result<(Token, Secret<String>)> {
        retrying!(self.make_post_secret_once(id, Some(by)))
    }

    async fn make_post_secret_once(
        &self,
        id: &TokenId,
        by: Option<&Stored<Account>>,
    ) -> Result<(Token, Secret<String>)> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let stored: Stored<Token> = self.core.need(&keys, id.as_str(), "token").await?;
        if stored.record.role != MachineRole::Host {
            return Err(Error::WrongState("only tokens with the role host have a signing secret"));
        }
        if stored.record.revoked {
            return Err(Error::WrongState("the token is revoked: create a new token"));
        }
        let signing = SigningSecretRef::next(stored.record.signing, now);
        let token = Token { signing: Some(signing), ..stored.record.clone() };
        let mut draft = Draft::new(keys.row(), now);
        draft.replace(&stored, &token)?;
        let mut data = post_secret_data(&token);
        if let Some(by) = by {
            draft.require_unchanged(by);
            data["by"] = json!(by.record.id);
        }
        event_recorder::outside(&mut draft, token.flow.as_ref(), now, EventType::PostSecretMade, data)?;
        self.core.commit(draft.finish()).await?;
        // The secret is derived from the row key, so no row contains it.
        let secret = signing.secret(keys.row(), &token.id);
        Ok((token, secret))
    }

    /// Returns the token whose holder signed a post. An unknown sender gets the same error as a wrong token.
    pub async fn sender_of(&self, source: &str, post: &SignedPost<'_>) -> Result<Stored<Token>> {
        let keys = self.core.keys()?;
        let id = TokenId::try_from(source).map_err(|_| Error::Unauthenticated)?;
        let token = self.core.fetch::<Token>(&keys, id.as_str()).await?.filter(|it| !it.record.revoked);
        let token = token.ok_or(Error::Unauthenticated)?;
        let signing = token.record.signing.ok_or(Error::Unauthenticated)?;
        match signing.check(keys.row(), &id, post, self.core.now()) {
            Ok(()) => Ok(token),
            Err(PostRejected::Unsigned) => Err(Error::Unauthenticated),
            Err(PostRejected::Stale) => Err(InterruptRejected::Stale.into()),
        }
    }
}

/// Returns the event data of a new signing secret: its number, but never the secret.
pub(crate) fn post_secret_data(token: &Token) -> Value {
    json!({"token": token.id, "generation": token.signing.map(|it| it.generation)})
}
