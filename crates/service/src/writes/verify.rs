//! Verification: the request that a writer sends before every write.

use std::sync::Arc;

use countersign_domain::chain::denial::DenialCode;
use countersign_domain::chain::entry::CommitGate;
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::chain::receipt::{IssuedReceipt, Receipt, Verification};
use countersign_domain::chain::verify_write::{
    StoredReceipt, WriteAllowed, WriteCheckFacts, WriteCheckRequest, verify,
};
use countersign_domain::identity::account::{MachineRole, Token};
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::{KeyUse, Keys};
use countersign_domain::log::event::EventType;
use countersign_domain::policy::{Policy, project};
use countersign_domain::primitives::id::{Jti, NodeId, ThreadId, WriteId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::flow::{Flow, ReceiptRow};
use countersign_domain::threads::thread::{Thread, UNRESOLVED_MAX, WriteKey};
use countersign_domain::writes::write::{ReservationInput, Write};
use countersign_store::StoreError;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::records::{GATEWAY_ID, write_row_id};
use countersign_store::row::Table;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::platform::core::ThreadContext;
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::threads::version::Version;
use crate::writes::Writes;

#[derive(Clone, Debug)]
pub struct VerifyInput {
    pub thread: ThreadId,
    /// The transition that the writer wants to write.
    pub transition: Digest,
    pub receipt: Option<String>,
    pub write_id: WriteId,
    /// The values that the writer expects at these paths.
    pub expect: Vec<(Pointer, Value)>,
}

/// A write that the gateway allows.
#[derive(Clone, Debug)]
pub struct VerifiedWrite {
    pub write: Write,
    /// The values that the writer may read, from the verified state.
    pub view: Value,
    /// Whether this repeats an earlier response.
    pub replayed: bool,
}

/// The facts of one verification.
struct VerifyContext<'a> {
    keys: &'a Keys,
    token: &'a Stored<Token>,
    standing: ThreadContext,
    policy: Arc<Policy>,
    head: std::result::Result<Arc<Version>, DenialCode>,
    write: Option<Stored<Write>>,
    receipt: Option<Arc<Stored<ReceiptRow>>>,
    ask: &'a VerifyInput,
    /// The time until which the write is allowed, in addition to the receipt's own expiry.
    until: Option<Timestamp>,
    now: Timestamp,
}

impl Writes {
    /// Allows a write once, or returns the reason for the denial. A durable reservation exists before the
    /// gateway allows the write.
    ///
    /// The first decision uses cached rows. If it allows the write, the commit checks that these rows are
    /// current. Every other result is decided again on rows from the database, including the token.
    pub async fn verify(&self, token: &Stored<Token>, ask: &VerifyInput) -> Result<VerifiedWrite> {
        self.verify_until(token, ask, None).await
    }

    /// Allows a write once, at most until a time. Version heads without a receipt have no expiry of their own.
    pub(crate) async fn verify_until(
        &self,
        token: &Stored<Token>,
        ask: &VerifyInput,
        until: Option<Timestamp>,
    ) -> Result<VerifiedWrite> {
        let keys = self.core.keys()?;
        if let Some(remembered) = self.remembered(&keys, token, ask).await
            && let Ok(allowed) = self.conclude(&VerifyContext { until, ..remembered }).await
        {
            return Ok(allowed);
        }
        retrying!(self.verify_afresh(token, ask, until))
    }

    async fn verify_afresh(
        &self,
        token: &Stored<Token>,
        ask: &VerifyInput,
        until: Option<Timestamp>,
    ) -> Result<VerifiedWrite> {
        let keys = self.core.keys()?;
        let token = &self.identity.token_still(&keys, token).await?;
        writer_node(&token.record)?;
        let thread = self.core.fetch::<Thread>(&keys, ask.thread.as_str()).await?;
        let Some(thread) = thread else {
            return Err(match self.core.no_thread(&keys, &ask.thread).await {
                Error::Imported => Error::Denied(DenialCode::Imported),
                Error::NotFound(_) => Error::Denied(DenialCode::UnknownThread),
                other => other,
            });
        };
        // The flow is checked before any detail of the thread is read.
        if !token.record.of_flow(&thread.record.flow) {
            return Err(Error::Denied(DenialCode::Forbidden));
        }
        let standing = self.core.standing(&keys, thread).await?;
        let policy = self.policies.policy(&keys, standing.flow.record.policy).await?;
        // A broken chain is a denial with a code of its own, so that the writer alerts an operator instead of
        // a retry.
        let head = match self.threads.head(&keys, &standing.thread.record).await {
            Ok(head) => Ok(head),
            Err(Error::Broken(_) | Error::Store(StoreError::Unsealed(_) | StoreError::Unreadable(_))) => {
                Err(DenialCode::ChainBroken)
            }
            Err(other) => return Err(other),
        };
        let write = self.write_named(&keys, token, &ask.write_id).await?;
        // The two rows were read at different times. A conflict makes this attempt read both again.
        if write.as_ref().is_some_and(|it| reserved_after(&it.record, &standing.thread.record)) {
            return Err(Error::Store(StoreError::Conflict(Table::Threads.name())));
        }
        // The receipt of the head's gate is loaded, not the presented one. A revocation must count even if
        // another receipt is sent.
        let receipt = match head.as_ref().ok().and_then(|head| gate_receipt(head)) {
            Some(jti) => self.core.fetch(&keys, jti.as_str()).await?.map(Arc::new),
            None => None,
        };
        let now = self.core.now();
        let (keys, ask) = (&*keys, ask);
        self.conclude(&VerifyContext { keys, token, standing, policy, head, write, receipt, ask, until, now }).await
    }

    /// Returns the facts of a verification from the caches, if all of them are there. An earlier write with
    /// the same id is not looked up, because the commit would refuse to insert it again.
    async fn remembered<'a>(
        &self,
        keys: &'a Keys,
        token: &'a Stored<Token>,
        ask: &'a VerifyInput,
    ) -> Option<VerifyContext<'a>> {
        let thread = self.core.memory.recall::<Thread>(ask.thread.as_str())?;
        let flow = self.core.memory.recall::<Flow>(thread.record.flow.as_str())?;
        let standing = ThreadContext { gateway: self.core.memory.recall(GATEWAY_ID)?, flow, thread, origin: None };
        let policy = self.policies.policy(keys, standing.flow.record.policy).await.ok()?;
        let head = self.threads.known_head(keys, &standing.thread.record)?;
        let receipt = match gate_receipt(&head) {
            Some(jti) => Some(self.core.memory.recall(jti.as_str())?),
            None => None,
        };
        let (head, now) = (Ok(head), self.core.now());
        Some(VerifyContext { keys, token, standing, policy, head, write: None, receipt, ask, until: None, now })
    }

    async fn conclude(&self, keeping: &VerifyContext<'_>) -> Result<VerifiedWrite> {
        let node = writer_node(&keeping.token.record)?;
        let flow = &keeping.standing.thread.record.flow;
        // The token names the node, but only the active policy makes it a writer.
        let is_writer = keeping.policy.node(node).is_some_and(|it| it.is_writer());
        // Only its own instance uses the approval of a request.
        let request = keeping.standing.thread.record.request.as_ref();
        let is_foreign = request.is_some_and(|it| it.instance != keeping.token.record.principal());
        if !keeping.token.record.of_flow(flow) || !is_writer || is_foreign {
            return Err(Error::Denied(DenialCode::Forbidden));
        }
        let issued = keeping.receipt.as_ref().and_then(|it| self.issued.get(&it.record.jti));
        let allow = keeping.decide(node, issued.as_deref())?;
        let head = keeping.head.as_ref().map_err(|code| Error::Denied(*code))?;
        // Before the reservation: a failed expectation must not use up the receipt.
        let view = self.shown(keeping.keys, &keeping.policy, node, head).await?;
        check_expectations(&keeping.policy, node, &view, &keeping.ask.expect)?;
        match allow {
            WriteAllowed::Replay => {
                let write = self.reserved_before(keeping).await?;
                Ok(VerifiedWrite { write, view, replayed: true })
            }
            WriteAllowed::Reserve { receipt, not_after } => {
                let not_after = not_after.into_iter().chain(keeping.until).min();
                if not_after.is_some_and(|it| it <= keeping.now) {
                    return Err(Error::Denied(DenialCode::Expired));
                }
                let write = self.reserve(keeping, node, head, receipt, not_after).await?;
                Ok(VerifiedWrite { write, view, replayed: false })
            }
        }
    }

    /// Returns the existing reservation after a check that all rows of the decision are unchanged and the
    /// lease is valid by the database's clock. Nothing is written.
    async fn reserved_before(&self, keeping: &VerifyContext<'_>) -> Result<Write> {
        let stored = keeping.write.as_ref().ok_or(Error::Broken("a write"))?;
        let mut draft = Draft::new(keeping.keys.row(), keeping.now);
        draft.require_unchanged(keeping.token).require_unchanged(&*keeping.standing.thread).require_unchanged(stored);
        keeping.standing.rely(&mut draft);
        draft.before(stored.record.lease_expires_at);
        // The lease expired between the decision and the commit, by the database's clock.
        let late = |error: Error| if error.is_too_late() { Error::Denied(DenialCode::AlreadyUsed) } else { error };
        self.core.commit(draft.finish()).await.map_err(late)?;
        Ok(stored.record.clone())
    }

    /// Returns what the writer may read. For an approved head it is at most what the reviewers saw, even if a
    /// later policy allows more.
    async fn shown(&self, keys: &Keys, policy: &Policy, node: &NodeId, head: &Version) -> Result<Value> {
        let view = project(policy, node, &head.state);
        if !head.entry.needs_receipt() || head.entry.policy == policy.digest() {
            return Ok(view);
        }
        let approved = self.policies.policy(keys, head.entry.policy).await?;
        Ok(project(&approved, node, &view))
    }

    async fn write_named(
        &self,
        keys: &Keys,
        token: &Stored<Token>,
        write_id: &WriteId,
    ) -> Result<Option<Stored<Write>>> {
        let key = WriteKey { principal: token.record.principal(), write_id: write_id.clone() };
        self.core.fetch(keys, &write_row_id(&key)).await
    }

    async fn reserve(
        &self,
        keeping: &VerifyContext<'_>,
        node: &NodeId,
        head: &Version,
        jti: Option<Jti>,
        not_after: Option<Timestamp>,
    ) -> Result<Write> {
        let (standing, now) = (&keeping.standing, keeping.now);
        if standing.thread.record.unresolved.len() >= UNRESOLVED_MAX {
            return Err(Error::Denied(DenialCode::WriteInProgress));
        }
        let ask = ReservationInput {
            key: WriteKey { principal: keeping.token.record.principal(), write_id: keeping.ask.write_id.clone() },
            node: node.clone(),
            receipt: jti.clone(),
            mode: keeping.policy.mode(),
            lease: keeping.policy.approval().write_lease(),
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
            receipt: jti,
            enforced: write.enforced,
        };
        write.verification = jws::sign(keeping.keys.signing(KeyUse::Chain), TokenType::Verification, &claims);
        let mut draft = Draft::new(keeping.keys.row(), now);
        draft.require_unchanged(keeping.token);
        standing.rely(&mut draft);
        if let Some(receipt) = &keeping.receipt {
            // A concurrent revocation changes this row and makes the commit fail.
            draft.require_unchanged(receipt);
        }
        if let Some(moment) = not_after {
            draft.before(moment);
        }
        // The id contains the write id, so a second reservation with the same write id is a conflict.
        draft.insert(&write)?;
        let data = json!({
            "write_id": write.key.write_id, "by": write.key.principal, "node": write.node, "fence": write.fence,
            "transition": write.transition, "version": write.version, "lease_expires_at": write.lease_expires_at,
        });
        event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::WriteReserved, data)?;
        draft.replace(&standing.thread, &thread)?;
        // The receipt expired between the decision and the commit, by the database's clock.
        let late = |error: Error| if error.is_too_late() { Error::Denied(DenialCode::Expired) } else { error };
        self.core.commit(draft.finish()).await.map_err(late)?;
        Ok(write)
    }
}

/// Returns the receipt that the gate of a head names.
fn gate_receipt(head: &Version) -> Option<&Jti> {
    match &head.entry.gate {
        CommitGate::Approved { receipt, .. } => Some(receipt),
        CommitGate::Auto {} | CommitGate::Observed {} | CommitGate::Written { .. } => None,
    }
}

impl VerifyContext<'_> {
    /// Collects the facts for the pure function that decides.
    fn decide(&self, node: &NodeId, issued: Option<&IssuedReceipt>) -> Result<WriteAllowed> {
        let accepted = self.standing.flow.record.accepted();
        let facts = WriteCheckFacts {
            thread: &self.standing.thread.record,
            halted: self.standing.verifying_halted(),
            head: self.head.as_ref().map(|it| (&it.entry, &it.statement)).map_err(|code| *code),
            mode: self.policy.mode(),
            accepted: &accepted,
            write: self.write.as_ref().map(|it| &it.record),
            stored_receipt: self.receipt.as_ref().map(|it| StoredReceipt {
                jti: &it.record.jti,
                token: &it.record.token,
                revoked: it.record.revoked.is_some(),
            }),
            issued,
            keys: self.keys.trusted(),
            issuer: self.keys.issuer(),
        };
        let principal = self.token.record.principal();
        let ask = WriteCheckRequest {
            principal: &principal,
            node,
            transition: self.ask.transition,
            receipt: self.ask.receipt.as_deref(),
            write_id: &self.ask.write_id,
        };
        verify(&facts, &ask, self.now).map_err(Error::Denied)
    }
}

/// Returns whether the write was reserved after the thread was read. This happens if a writer sends the same
/// request twice at once.
fn reserved_after(write: &Write, thread: &Thread) -> bool {
    write.thread == thread.id && write.fence > thread.fence
}

/// Returns the node of a writer token or an instance. Such a token names exactly one node.
pub(crate) fn writer_node(token: &Token) -> Result<&NodeId> {
    let mut nodes = token.nodes.iter();
    match (token.role, nodes.next(), nodes.next()) {
        (MachineRole::Writer | MachineRole::Instance, Some(node), None) => Ok(node),
        // A token of several nodes would leave open for which node it verifies.
        _ => Err(Error::Denied(DenialCode::Forbidden)),
    }
}

/// Checks that the expected values are readable for the writer and present in its view.
fn check_expectations(policy: &Policy, node: &NodeId, view: &Value, expect: &[(Pointer, Value)]) -> Result<()> {
    let reads = policy.node(node).map(|it| it.reads());
    let met = |(pointer, value): &(Pointer, Value)| {
        reads.is_some_and(|it| it.covers(pointer)) && pointer.resolve(view) == Some(value)
    };
    if expect.iter().all(met) { Ok(()) } else { Err(Error::Denied(DenialCode::ExpectationFailed)) }
}

/// Expectations in one request.
const EXPECTATIONS_MAX: usize = 100;

/// Reads the `expect` member of a request.
pub fn read_expectations(expect: Map<String, Value>) -> Result<Vec<(Pointer, Value)>> {
    // Each expectation is resolved against the whole view, so the number is limited.
    if expect.len() > EXPECTATIONS_MAX {
        return Err(Error::Denied(DenialCode::Malformed));
    }
    let read = |(pointer, value): (String, Value)| Some((Pointer::try_from(pointer.as_str()).ok()?, value));
    expect.into_iter().map(read).collect::<Option<Vec<_>>>().ok_or(Error::Denied(DenialCode::Malformed))
}

/// Returns the claims of a receipt without verification, for display.
pub fn peek_receipt(token: &str) -> Option<Receipt> {
    jws::read::<Receipt>(token, TokenType::Receipt).ok().map(|it| it.claims_unverified().clone())
}
