//! Envelopes: what a node is given, sealed, and whether one may still be believed.

use serde_json::Value;

use super::Service;
use super::error::{Error, Result};
use crate::domain::context::{Envelope, EnvelopeClaims, EnvelopeCode, Expected, Misfit, NotFitted, check, fit};
use crate::domain::id::{NodeId, ThreadId};
use crate::domain::json::pointer::Pointer;
use crate::domain::keys::KeyUse;
use crate::domain::policy::{Policy, project};
use crate::domain::thread::Checkpoint;

/// That no envelope is made. Nothing was changed: the head is as it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct NotSealed {
    /// Why not.
    pub why: Unsealed,
    /// The head of which none is made.
    pub checkpoint: Checkpoint,
}

/// Why no envelope is made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsealed {
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
    /// What its node would be given is not what it may receive.
    #[error("the view does not fit the schema of what the node receives; `errors` says where")]
    Unfit(Vec<Misfit>),
}

impl Unsealed {
    /// What programs look at.
    pub const fn code(&self) -> EnvelopeCode {
        match self {
            Self::Missing(_) => EnvelopeCode::RequiredMissing,
            Self::OverBudget { .. } => EnvelopeCode::OverBudget,
            Self::Unfit(_) => EnvelopeCode::SchemaMismatch,
        }
    }

    fn of(why: NotFitted, max_tokens: Option<u64>, policy: &Policy) -> Self {
        match why {
            NotFitted::Missing(places) => Self::Missing(places.iter().map(|it| policy.cut(it)).collect()),
            NotFitted::OverBudget { tokens } => Self::OverBudget { tokens, max: max_tokens.unwrap_or_default() },
            NotFitted::Unfit(misfits) => Self::Unfit(told(misfits, policy)),
        }
    }
}

/// Misfits, without the names of what the policy hides.
fn told(misfits: Vec<Misfit>, policy: &Policy) -> Vec<Misfit> {
    let mut told: Vec<Misfit> =
        misfits.into_iter().map(|it| Misfit { pointer: policy.cut(&it.pointer), ..it }).collect();
    told.sort();
    told.dedup();
    told
}

/// That an envelope is not believed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotBelieved {
    /// Why not.
    pub code: EnvelopeCode,
    /// Where it is not what its node may receive.
    pub misfits: Vec<Misfit>,
    /// The thread's head, once it is known that the asker may know of the thread.
    pub checkpoint: Option<Checkpoint>,
}

impl From<EnvelopeCode> for NotBelieved {
    fn from(code: EnvelopeCode) -> Self {
        Self { code, misfits: Vec::new(), checkpoint: None }
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
            let at = (head.entry.version, head.entry.transition);
            let fitted = fit(&view, &wish).map_err(|why| {
                let checkpoint = Checkpoint { version: at.0, transition: at.1 };
                NotSealed { why: Unsealed::of(why, wish.max_tokens, &policy), checkpoint }
            })?;
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

    /// Whether an envelope is this gateway's, and as it was signed. What was signed, if so, and the payload.
    pub async fn signed_envelope(
        &self,
        envelope: Envelope,
        (thread, node): (Option<ThreadId>, Option<NodeId>),
    ) -> Result<(EnvelopeClaims, Value)> {
        let keys = self.keys()?;
        let (trusted, issuer) = (keys.clone(), keys.issuer().to_owned());
        let checking = move || {
            let expected = Expected {
                keys: trusted.trusted(),
                issuer: Some(&issuer),
                thread: thread.as_ref(),
                node: node.as_ref(),
                version: None,
                receives: None,
            };
            check(&envelope, &expected).map(|it| (it, envelope.payload))
        };
        let counted = tokio::task::spawn_blocking(checking).await;
        counted.map_err(|_| Error::Broken("the counting of tokens"))?.map_err(|code| Error::Envelope(code.into()))
    }

    /// Whether the view that was sealed is still one of the head, and what its node may receive by the policy of now.
    pub async fn still_of_head(&self, (claims, payload): (&EnvelopeClaims, &Value)) -> Result<()> {
        let keys = self.keys()?;
        let stored = self.thread(&keys, &claims.thread).await?;
        let head = self.head(&keys, &stored.record).await?;
        let (version, transition) = (head.entry.version, head.entry.transition);
        let refused = |code, misfits| {
            let checkpoint = Some(Checkpoint { version, transition });
            Err(Error::Envelope(NotBelieved { code, misfits, checkpoint }))
        };
        if claims.version < version {
            return refused(EnvelopeCode::Stale, Vec::new());
        }
        if claims.version != version || claims.transition != transition {
            return refused(EnvelopeCode::DigestMismatch, Vec::new());
        }
        let flow = self.flow(&keys, &stored.record.flow).await?;
        let policy = self.policy(&keys, flow.record.policy).await?;
        let misfits = policy.wish(&claims.node).receives.map_or_else(Vec::new, |it| it.misfits(payload));
        if misfits.is_empty() { Ok(()) } else { refused(EnvelopeCode::SchemaMismatch, told(misfits, &policy)) }
    }
}
