//! Envelopes: what a node is given, sealed, and whether one may still be believed.

use super::Service;
use super::error::{Error, Result};
use crate::domain::context::{Envelope, EnvelopeClaims, EnvelopeCode, Expected, NotFitted, check, fit};
use crate::domain::id::{NodeId, ThreadId};
use crate::domain::json::pointer::Pointer;
use crate::domain::keys::KeyUse;
use crate::domain::policy::project;

/// Why no envelope is made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotSealed {
    /// The view lacks what its node requires.
    #[error("the view lacks what the node requires; `errors` says where")]
    Missing(Vec<Pointer>),
    /// What its node requires is more than it may be given.
    #[error("what the node requires is {tokens} tokens, and it may be given {max}")]
    OverBudget {
        /// How many tokens that is.
        tokens: u64,
        /// How many there may be.
        max: u64,
    },
}

impl NotSealed {
    /// What programs look at.
    pub const fn code(&self) -> EnvelopeCode {
        match self {
            Self::Missing(_) => EnvelopeCode::RequiredMissing,
            Self::OverBudget { .. } => EnvelopeCode::OverBudget,
        }
    }
}

impl Service {
    /// The head as a node may read it, as much as fits, sealed. Only from a checked chain.
    pub async fn envelope(&self, thread: &ThreadId, node: &NodeId) -> Result<Envelope> {
        let keys = self.keys()?;
        let stored = self.thread(&keys, thread).await?;
        let head = self.head(&keys, &stored.record).await?;
        let flow = self.flow(&keys, &stored.record.flow).await?;
        let policy = self.policy(&keys, flow.record.policy).await?;
        let (node, now) = (node.clone(), self.now());
        // Counting a large state takes long, and others ask here too.
        let sealing = move || {
            let wish = policy.wish(&node);
            let view = project(&policy, &node, &head.state);
            let fitted = fit(&view, &wish).map_err(|why| match why {
                NotFitted::Missing(places) => NotSealed::Missing(places.iter().map(|it| policy.cut(it)).collect()),
                NotFitted::OverBudget { tokens } => {
                    NotSealed::OverBudget { tokens, max: wish.max_tokens.unwrap_or_default() }
                }
            })?;
            let at = (head.entry.version, head.entry.transition);
            let claims = EnvelopeClaims {
                budget: wish.max_tokens,
                encoding: wish.encoding,
                requires: wish.requires.to_vec(),
                ..EnvelopeClaims::unsealed(keys.issuer(), (&head.entry.thread, &node), at, now)
            };
            Ok(Envelope::seal(keys.signing(KeyUse::Chain), claims, fitted))
        };
        tokio::task::spawn_blocking(sealing).await.map_err(|_| Error::Broken("the counting of tokens"))?
    }

    /// Whether an envelope is this gateway's, and as it was signed. What was signed, if so.
    pub async fn signed_envelope(
        &self,
        envelope: Envelope,
        (thread, node): (Option<ThreadId>, Option<NodeId>),
    ) -> Result<EnvelopeClaims> {
        let keys = self.keys()?;
        let (trusted, issuer) = (keys.clone(), keys.issuer().to_owned());
        let checking = move || {
            let expected = Expected {
                keys: trusted.trusted(),
                issuer: Some(&issuer),
                thread: thread.as_ref(),
                node: node.as_ref(),
                version: None,
            };
            check(&envelope, &expected)
        };
        let counted = tokio::task::spawn_blocking(checking).await;
        counted.map_err(|_| Error::Broken("the counting of tokens"))?.map_err(Error::Envelope)
    }

    /// Whether the view that was sealed is still one of the head.
    pub async fn still_of_head(&self, claims: &EnvelopeClaims) -> Result<()> {
        let keys = self.keys()?;
        let stored = self.thread(&keys, &claims.thread).await?;
        let head = self.head(&keys, &stored.record).await?;
        if claims.version < head.entry.version {
            return Err(Error::Envelope(EnvelopeCode::Stale));
        }
        if claims.version != head.entry.version || claims.transition != head.entry.transition {
            return Err(Error::Envelope(EnvelopeCode::DigestMismatch));
        }
        Ok(())
    }
}
