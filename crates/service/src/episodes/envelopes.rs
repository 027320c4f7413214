//! Signed context envelopes: issues the view of a node, and checks whether an envelope is still valid.

use std::sync::Arc;

use countersign_domain::context::{
    Envelope, EnvelopeClaims, EnvelopeCode, ExpectedEnvelope, MacAlg, NodeSecrets, NodeSecretsView, check_signed,
    check_sound, fit,
};
use countersign_domain::identity::account::Token;
use countersign_domain::keys::KeyUse;
use countersign_domain::log::event::EventType;
use countersign_domain::policy::project;
use countersign_domain::primitives::id::{FlowId, NodeId, PrincipalId, ThreadId};
use countersign_domain::threads::thread::{Checkpoint, Thread};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use super::envelope_error::{EnvelopeCreationCause, EnvelopeCreationError, EnvelopeRejected, told};
use crate::episodes::Episodes;
use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::fair_queue::QueuePermit;
use crate::platform::retry::retrying;
use crate::proposals::context_tokens::COUNTING;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EnvelopeProof {
    Signature,
    /// Signature with an HMAC that uses the secret of the node.
    Hmac,
}

/// Properties that a submitted envelope must have.
#[derive(Debug)]
pub struct EnvelopeExpectation {
    pub thread: Option<ThreadId>,
    pub node: Option<NodeId>,
    /// Required proof. If an HMAC is present, it is checked in any case.
    pub bears: EnvelopeProof,
}

#[derive(Debug)]
pub struct VerifiedEnvelope {
    pub claims: EnvelopeClaims,
    envelope: Envelope,
    bears: EnvelopeProof,
    /// Place in the queue of the caller. The second check uses the same place, after the caller's access to the thread
    /// is known.
    turn: QueuePermit,
}

impl Episodes {
    /// Returns the head as a node may read it, up to its token limit, in a signed envelope. The chain is checked first.
    /// Requests of one caller run one after another, because sealing is expensive.
    pub async fn envelope(
        &self,
        by: &PrincipalId,
        thread: &ThreadId,
        node: &NodeId,
        bears: EnvelopeProof,
    ) -> Result<Envelope> {
        let sealed = self.sealed(by, thread, node, bears).await;
        self.at_boundary(by, Some((thread, node)), sealed).await
    }

    async fn sealed(
        &self,
        by: &PrincipalId,
        thread: &ThreadId,
        node: &NodeId,
        bears: EnvelopeProof,
    ) -> Result<Envelope> {
        let turn = self.core.turns.counting.take(by.as_str()).await?;
        let keys = self.core.keys()?;
        let stored = self.core.thread(&keys, thread).await?;
        let head = self.threads.head(&keys, &stored.record).await?;
        let flow = self.core.flow(&keys, &stored.record.flow).await?;
        let policy = self.policies.policy(&keys, flow.record.policy).await?;
        let (node, now, rotation) = (node.clone(), self.core.now(), self.rotation);
        let sealing = move || {
            let wish = policy.wish(&node);
            let view = project(&policy, &node, &head.state);
            let checkpoint = Checkpoint { version: head.entry.version, transition: head.entry.transition };
            // A view that is too large fails here instead of being cut.
            let fitted = fit(&view, &wish).map_err(|why| EnvelopeCreationError {
                why: EnvelopeCreationCause::of(why, wish.max_tokens, &policy),
                checkpoint,
            })?;
            let thread = &head.entry.thread;
            let claims = EnvelopeClaims {
                budget: wish.max_tokens,
                encoding: wish.encoding,
                requires: wish.requires.to_vec(),
                ..EnvelopeClaims::unsealed(keys.issuer(), thread, &node, checkpoint, now)
            };
            let sealed = Envelope::seal(keys.signing(KeyUse::Chain), claims, fitted);
            Ok(match bears {
                EnvelopeProof::Signature => sealed,
                EnvelopeProof::Hmac => {
                    NodeSecrets::of(keys.row(), &flow.record.id, &node, &rotation, now).beside(sealed, thread, &node)
                }
            })
        };
        turn.work(COUNTING, sealing).await?
    }

    /// Returns the current secrets of a node for the agent that acts as it. The audit log records who received them.
    pub async fn node_secrets(
        &self,
        token: &Arc<Stored<Token>>,
        flow: &FlowId,
        node: &NodeId,
    ) -> Result<NodeSecretsView> {
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let flow = self.core.flow(&keys, flow).await?.record.id;
            let epoch = self.rotation.epoch(now);
            let mut draft = Draft::new(keys.row(), now);
            draft.require_unchanged(token);
            let data = json!({"token": token.record.id, "node": node, "epoch": epoch});
            event_recorder::outside(&mut draft, Some(&flow), now, EventType::EnvelopeSecretGiven, data)?;
            // The audit log must name the receiver before the secrets leave the gateway.
            self.core.commit(draft.finish()).await?;
            let secrets = NodeSecrets::of(keys.row(), &flow, node, &self.rotation, now).shown();
            let rotates_at = self.rotation.next(epoch);
            Ok(NodeSecretsView { flow, node: node.clone(), alg: MacAlg::Hs256, rotates_at, secrets })
        })
    }

    /// Checks that this gateway signed the envelope and that it was not changed.
    pub async fn signed_envelope(
        &self,
        by: &PrincipalId,
        envelope: Envelope,
        asked: EnvelopeExpectation,
    ) -> Result<VerifiedEnvelope> {
        let turn = self.core.turns.counting.take(by.as_str()).await?;
        let keys = self.core.keys()?;
        let EnvelopeExpectation { thread, node, bears } = asked;
        let checking = move || {
            let expected = ExpectedEnvelope {
                issuer: Some(keys.issuer()),
                thread: thread.as_ref(),
                node: node.as_ref(),
                ..ExpectedEnvelope::by(keys.trusted())
            };
            check_signed(&envelope, &expected).map(|claims| (claims, envelope))
        };
        let checked = turn.work("the hashing of a payload", checking).await?;
        let checked = checked.map_err(|code| Error::Envelope(code.into()));
        // An envelope that fails here is not known to be from this gateway, so the refusal names no thread.
        let (claims, envelope) = self.at_boundary(by, None, checked).await?;
        Ok(VerifiedEnvelope { claims, envelope, bears, turn })
    }

    /// Checks that an envelope is still valid under the current secrets, head and policy. Returns its claims.
    pub async fn still_good(&self, by: &PrincipalId, signed: VerifiedEnvelope) -> Result<EnvelopeClaims> {
        let (thread, node) = (signed.claims.thread.clone(), signed.claims.node.clone());
        let good = self.good_now(signed).await;
        self.at_boundary(by, Some((&thread, &node)), good).await
    }

    async fn good_now(&self, signed: VerifiedEnvelope) -> Result<EnvelopeClaims> {
        // The same place in the queue as the first check, so that one request does not wait twice.
        let turn = signed.turn.clone();
        let keys = self.core.keys()?;
        let stored = self.core.thread(&keys, &signed.claims.thread).await?;
        // An HMAC that is present must be right, even if the caller did not ask for one.
        if signed.bears == EnvelopeProof::Hmac || signed.envelope.hmac.is_some() {
            let (flow, node) = (&stored.record.flow, &signed.claims.node);
            let secrets = NodeSecrets::of(keys.row(), flow, node, &self.rotation, self.core.now());
            secrets.check(&signed.envelope, &signed.claims).map_err(|code| Error::Envelope(code.into()))?;
        }
        let trusted = keys.clone();
        let checking = move || {
            let sound = check_sound(&signed.envelope, &signed.claims, &ExpectedEnvelope::by(trusted.trusted()));
            sound.map(|()| (signed.claims, signed.envelope.payload))
        };
        let counted = turn.work(COUNTING, checking).await?;
        let (claims, payload) = counted.map_err(|code| Error::Envelope(code.into()))?;
        self.still_of_head(&stored, &turn, &claims, payload).await?;
        Ok(claims)
    }

    async fn still_of_head(
        &self,
        stored: &Stored<Thread>,
        turn: &QueuePermit,
        claims: &EnvelopeClaims,
        payload: Value,
    ) -> Result<()> {
        let keys = self.core.keys()?;
        let head = self.threads.head(&keys, &stored.record).await?;
        let (version, transition) = (head.entry.version, head.entry.transition);
        let refused = |code, misfits| {
            let checkpoint = Some(Checkpoint { version, transition });
            Err(Error::Envelope(EnvelopeRejected { code, misfits, checkpoint }))
        };
        // An older version is stale. Any other difference means a wrong digest.
        if claims.version < version {
            return refused(EnvelopeCode::Stale, Vec::new());
        }
        if claims.version != version || claims.transition != transition {
            return refused(EnvelopeCode::DigestMismatch, Vec::new());
        }
        let flow = self.core.flow(&keys, &stored.record.flow).await?;
        let policy = self.policies.policy(&keys, flow.record.policy).await?;
        let misfits = match policy.wish(&claims.node).receives.cloned() {
            Some(receives) => turn.work("the check of a payload", move || receives.misfits(&payload)).await?,
            None => Vec::new(),
        };
        if misfits.is_empty() { Ok(()) } else { refused(EnvelopeCode::SchemaMismatch, told(misfits, &policy)) }
    }
}
