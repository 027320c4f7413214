//! Verify: the writer's question before any write.

use serde_json::{Map, Value, json};

use super::error::{Error, Result};
use super::heads::Version;
use super::{Service, Standing, recorder, retrying};
use crate::domain::account::{MachineRole, Token};
use crate::domain::chain::entry::Gate;
use crate::domain::chain::hash::Digest;
use crate::domain::chain::jws::{self, Typ};
use crate::domain::chain::receipt::{Receipt, Verification};
use crate::domain::chain::verify::{Allow, Ask, DenialCode, Facts, StoredReceipt, verify};
use crate::domain::event::EventType;
use crate::domain::flow::ReceiptRow;
use crate::domain::id::{Jti, NodeId, ThreadId, WriteId};
use crate::domain::json::pointer::Pointer;
use crate::domain::keys::{KeyUse, Keys};
use crate::domain::policy::{Policy, project};
use crate::domain::thread::{Thread, WriteKey};
use crate::domain::time::Timestamp;
use crate::domain::write::{Reserve, Write};
use crate::store::change::Draft;
use crate::store::record::Stored;
use crate::store::records::write_row_id;

/// What a writer asks.
#[derive(Clone, Debug)]
pub struct VerifyAsk {
    /// In which thread.
    pub thread: ThreadId,
    /// Which transition it means to write.
    pub transition: Digest,
    /// The receipt, if it has one.
    pub receipt: Option<String>,
    /// What it calls the write.
    pub write_id: WriteId,
    /// What it expects to read there.
    pub expect: Vec<(Pointer, Value)>,
}

/// A writer that was let through.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// The write.
    pub write: Write,
    /// What that writer may read, from the gateway's checked copy.
    pub view: Value,
    /// Whether this was answered before.
    pub replayed: bool,
}

/// Everything around one verify while it is decided.
struct Gatekeeping<'a> {
    keys: &'a Keys,
    token: &'a Stored<Token>,
    standing: &'a Standing,
    node: &'a NodeId,
    ask: &'a VerifyAsk,
    now: Timestamp,
}

impl Service {
    /// Lets a writer through once, or says why not. A durable reservation is made before it answers yes.
    pub async fn verify(&self, token: &Stored<Token>, ask: &VerifyAsk) -> Result<Allowed> {
        retrying!(self.verify_once(token, ask))
    }

    async fn verify_once(&self, token: &Stored<Token>, ask: &VerifyAsk) -> Result<Allowed> {
        let (keys, now) = (self.keys()?, self.now());
        let node = writer_node(&token.record)?;
        let thread = self.fetch::<Thread>(&keys, ask.thread.as_str()).await?;
        let thread = thread.ok_or(Error::Denied(DenialCode::UnknownThread))?;
        if !token.record.of_flow(&thread.record.flow) {
            return Err(Error::Denied(DenialCode::Forbidden));
        }
        let standing = self.standing(&keys, thread).await?;
        let keeping = Gatekeeping { keys: &keys, token, standing: &standing, node, ask, now };
        let policy = self.policy(&keys, standing.flow.record.policy).await?;
        if policy.node(node).is_none_or(|it| !it.is_writer()) {
            return Err(Error::Denied(DenialCode::Forbidden));
        }
        let head = match self.head(&keys, &standing.thread.record).await {
            Ok(head) => Ok(head),
            Err(
                Error::Broken(_)
                | Error::Store(crate::store::StoreError::Unsealed(_) | crate::store::StoreError::Unreadable(_)),
            ) => Err(DenialCode::ChainBroken),
            Err(other) => return Err(other),
        };
        let write = self.write_named(&keys, token, &ask.write_id).await?;
        let receipt = self.stored_receipt(&keys, head.as_deref().ok()).await?;
        let allow = keeping.decide(head.as_deref().map_err(|code| *code), write.as_ref(), receipt.as_ref())?;
        let Ok(head) = head else { return Err(Error::Denied(DenialCode::ChainBroken)) };
        let view = self.shown(&keys, &policy, node, &head).await?;
        check_expectations(&policy, node, &view, &ask.expect)?;
        match allow {
            Allow::Replay => {
                let write = write.ok_or(Error::Broken("a write"))?.record;
                Ok(Allowed { write, view, replayed: true })
            }
            Allow::Reserve { receipt: jti, not_after } => {
                let reserving = Reserving { receipt: receipt.as_ref(), jti, not_after };
                let write = self.reserve(&keeping, &policy, &head, reserving).await?;
                Ok(Allowed { write, view, replayed: false })
            }
        }
    }

    /// What the writer may read; of a head that people approved no more than they were shown, which a later
    /// policy that accepts that head may have widened.
    async fn shown(&self, keys: &Keys, policy: &Policy, node: &NodeId, head: &Version) -> Result<Value> {
        let view = project(policy, node, &head.state);
        if !head.entry.needs_receipt() || head.entry.policy == policy.digest() {
            return Ok(view);
        }
        let approved = self.policy(keys, head.entry.policy).await?;
        Ok(project(&approved, node, &view))
    }

    async fn write_named(
        &self,
        keys: &Keys,
        token: &Stored<Token>,
        write_id: &WriteId,
    ) -> Result<Option<Stored<Write>>> {
        let key = WriteKey { principal: token.record.principal(), write_id: write_id.clone() };
        self.fetch(keys, &write_row_id(&key)).await
    }

    /// The receipt that the head's gate names, as it was stored.
    async fn stored_receipt(&self, keys: &Keys, head: Option<&Version>) -> Result<Option<Stored<ReceiptRow>>> {
        match head.map(|it| &it.entry.gate) {
            Some(Gate::Approved { receipt, .. }) => self.fetch(keys, receipt.as_str()).await,
            _ => Ok(None),
        }
    }

    async fn reserve(
        &self,
        keeping: &Gatekeeping<'_>,
        policy: &Policy,
        head: &Version,
        by: Reserving<'_>,
    ) -> Result<Write> {
        let now = keeping.now;
        let standing = keeping.standing;
        let ask = Reserve {
            key: WriteKey { principal: keeping.token.record.principal(), write_id: keeping.ask.write_id.clone() },
            node: keeping.node.clone(),
            receipt: by.jti.clone(),
            lease: policy.approval().write_lease(),
        };
        let (mut thread, mut write) = standing.thread.record.clone().reserved(ask, now);
        let claims = Verification {
            iss: keeping.keys.issuer().to_owned(),
            sub: thread.id.clone(),
            aud: write.key.principal.clone(),
            iat: now.seconds(),
            exp: write.lease_expires_at.seconds(),
            write_id: write.key.write_id.clone(),
            fence: write.fence,
            flow: thread.flow.clone(),
            policy: head.entry.policy,
            transition: head.entry.transition,
            version: head.entry.version,
            to: head.statement.to,
            receipt: by.jti,
            enforced: true,
        };
        write.verification = jws::sign(keeping.keys.signing(KeyUse::Chain), Typ::Verification, &claims);
        let mut draft = Draft::new(keeping.keys.row(), now);
        draft.rely_on(keeping.token);
        standing.rely(&mut draft);
        if let Some(receipt) = by.receipt {
            draft.rely_on(receipt);
        }
        if let Some(moment) = by.not_after {
            draft.before(moment);
        }
        draft.insert(&write)?;
        let data = json!({
            "write_id": write.key.write_id, "by": write.key.principal, "node": write.node, "fence": write.fence,
            "transition": write.transition, "version": write.version, "lease_expires_at": write.lease_expires_at,
        });
        recorder::in_thread(&mut draft, &mut thread, now, EventType::WriteReserved, data)?;
        draft.replace(&standing.thread, &thread)?;
        let late = |error: Error| if error.is_too_late() { Error::Denied(DenialCode::Expired) } else { error };
        self.commit(draft.finish()).await.map_err(late)?;
        Ok(write)
    }
}

/// What a reservation uses up and relies on.
struct Reserving<'a> {
    receipt: Option<&'a Stored<ReceiptRow>>,
    jti: Option<Jti>,
    not_after: Option<Timestamp>,
}

impl Gatekeeping<'_> {
    /// Gathers the facts for the one pure function that decides.
    fn decide(
        &self,
        head: std::result::Result<&Version, DenialCode>,
        write: Option<&Stored<Write>>,
        receipt: Option<&Stored<ReceiptRow>>,
    ) -> Result<Allow> {
        let accepted = self.standing.flow.record.accepted();
        let facts = Facts {
            thread: &self.standing.thread.record,
            halted: self.standing.verifying_halted(),
            head: head.map(|it| (&it.entry, &it.statement)),
            accepted: &accepted,
            write: write.map(|it| &it.record),
            stored_receipt: receipt.map(|it| StoredReceipt {
                jti: &it.record.jti,
                token: &it.record.token,
                revoked: it.record.revoked.is_some(),
            }),
            keys: self.keys.trusted(),
            issuer: self.keys.issuer(),
        };
        let principal = self.token.record.principal();
        let ask = Ask {
            principal: &principal,
            node: self.node,
            transition: self.ask.transition,
            receipt: self.ask.receipt.as_deref(),
            write_id: &self.ask.write_id,
        };
        verify(&facts, &ask, self.now).map_err(Error::Denied)
    }
}

/// A writer's token acts as exactly one node.
pub(super) fn writer_node(token: &Token) -> Result<&NodeId> {
    let mut nodes = token.nodes.iter();
    match (token.role, nodes.next(), nodes.next()) {
        (MachineRole::Writer, Some(node), None) => Ok(node),
        _ => Err(Error::Denied(DenialCode::Forbidden)),
    }
}

/// What the writer expects must lie within what it may read, and be so in what it is shown.
fn check_expectations(policy: &Policy, node: &NodeId, view: &Value, expect: &[(Pointer, Value)]) -> Result<()> {
    let reads = policy.node(node).map(|it| it.reads());
    let met = |(pointer, value): &(Pointer, Value)| {
        reads.is_some_and(|it| it.covers(pointer)) && pointer.resolve(view) == Some(value)
    };
    if expect.iter().all(met) { Ok(()) } else { Err(Error::Denied(DenialCode::ExpectationFailed)) }
}

/// How many expectations one verify may carry.
const EXPECTATIONS_MAX: usize = 100;

/// Reads `expect` as it comes over the wire.
pub fn read_expectations(expect: Map<String, Value>) -> Result<Vec<(Pointer, Value)>> {
    if expect.len() > EXPECTATIONS_MAX {
        return Err(Error::Denied(DenialCode::Malformed));
    }
    let read = |(pointer, value): (String, Value)| Some((Pointer::try_from(pointer.as_str()).ok()?, value));
    expect.into_iter().map(read).collect::<Option<Vec<_>>>().ok_or(Error::Denied(DenialCode::Malformed))
}

/// The claims of a receipt, for callers that show them.
pub fn peek_receipt(token: &str) -> Option<Receipt> {
    jws::read::<Receipt>(token, Typ::Receipt).ok().map(|it| it.claims_unverified().clone())
}
