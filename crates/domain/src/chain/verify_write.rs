//! Verify: a pure function of facts, receipt and time that returns permission or a denial code.
//!
//! The gateway, its audit and the command line all call it. No other code decides whether a write is allowed.

use std::collections::BTreeSet;

use super::denial::DenialCode;
use super::entry::{CommitGate, Entry};
use super::hash::Digest;
use super::jws;
use super::jws::{JwsError, TokenType};
use super::receipt::{IssuedReceipt, Receipt};
use super::statement::Statement;
use crate::keys::{KeyState, KeyUse, PublicKey, PublicKeys};
use crate::primitives::id::{Jti, NodeId, PrincipalId, WriteId};
use crate::primitives::time::Timestamp;
use crate::threads::flow::Mode;
use crate::threads::thread::{HeadUse, Thread};
use crate::writes::write::Write;

#[derive(Clone, Debug)]
pub struct WriteCheckRequest<'a> {
    /// Principal of the request.
    pub principal: &'a PrincipalId,
    pub node: &'a NodeId,
    /// Transition that it intends to write.
    pub transition: Digest,
    pub receipt: Option<&'a str>,
    /// Id that the writer chose for the write.
    pub write_id: &'a WriteId,
}

/// The stored head after `check_link`, or the code with which it failed.
pub type CheckedHead<'a> = Result<(&'a Entry, &'a Statement), DenialCode>;

/// All facts about the gateway that verify reads.
pub struct WriteCheckFacts<'a> {
    pub thread: &'a Thread,
    /// Whether verifying is halted, for the flow or for all flows.
    pub halted: bool,
    pub head: CheckedHead<'a>,
    /// Whether the flow enforces. An observing flow requires a receipt only for an approved head.
    pub mode: Mode,
    /// Policies whose heads may be written: the active one and those that its activation accepts.
    pub accepted: &'a BTreeSet<Digest>,
    /// Known write of this principal with this id.
    pub write: Option<&'a Write>,
    /// Stored receipt with this id: its bytes and whether it was revoked.
    pub stored_receipt: Option<StoredReceipt<'a>>,
    /// Receipt as this process signed it, if it did.
    pub issued: Option<&'a IssuedReceipt>,
    /// Trusted keys, with their states.
    pub keys: &'a PublicKeys,
    /// Issuer name of this gateway.
    pub issuer: &'a str,
}

#[derive(Clone, Copy, Debug)]
pub struct StoredReceipt<'a> {
    pub jti: &'a Jti,
    /// Token, byte for byte.
    pub token: &'a str,
    pub revoked: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum WriteAllowed {
    /// First call: reserve the head and use up the receipt.
    Reserve {
        receipt: Option<Jti>,
        /// Last moment at which it may be used up.
        not_after: Option<Timestamp>,
    },
    /// Repeated call while the lease is active: return the same answer.
    Replay,
}

/// Decides whether a writer may write. The protocol specifies the order of the checks.
pub fn verify(
    facts: &WriteCheckFacts<'_>,
    ask: &WriteCheckRequest<'_>,
    now: Timestamp,
) -> Result<WriteAllowed, DenialCode> {
    // A halt comes first: it must hold even if other facts are inconsistent.
    if facts.halted {
        return Err(DenialCode::Halted);
    }
    if facts.thread.closed.is_some() {
        return Err(DenialCode::Closed);
    }
    if facts.thread.branch.is_some() {
        return Err(DenialCode::Branch);
    }
    let (entry, statement) = facts.head?;
    if !head_agrees(facts.thread, entry) {
        return Err(DenialCode::ChainBroken);
    }
    // A repeated call must get its first answer, even if the head has moved since.
    if let Some(write) = facts.write {
        return replay(write, facts.thread, ask, now);
    }
    if ask.transition != entry.transition {
        return Err(DenialCode::NotHead);
    }
    if !facts.accepted.contains(&entry.policy) {
        return Err(DenialCode::PolicyMismatch);
    }
    check_free(facts.thread, entry, now)?;
    // An approved head has a receipt. A write uses it up even if the flow has changed to observe mode since.
    let observed_only = facts.mode == Mode::Observe && !matches!(entry.gate, CommitGate::Approved { .. });
    if observed_only || !entry.needs_receipt() {
        // This head needs no receipt. A head on top of a revoked approval is refused, and so is one on top of a version
        // under a withdrawn policy.
        return match (facts.thread.taken_back, facts.thread.lineage.is_accepted(facts.accepted)) {
            (true, _) => Err(DenialCode::Revoked),
            (false, false) => Err(DenialCode::PolicyMismatch),
            (false, true) => Ok(WriteAllowed::Reserve { receipt: None, not_after: None }),
        };
    }
    let token = ask.receipt.ok_or(DenialCode::ReceiptMissing)?;
    let receipt = check_receipt(token, facts, ask, now)?;
    check_binding(&receipt, entry, statement)?;
    // The thread's row records a revocation too, in case the receipt's row was restored.
    if facts.thread.head.usage == (HeadUse::Revoked {}) {
        return Err(DenialCode::Revoked);
    }
    match facts.stored_receipt {
        Some(stored) if *stored.jti == receipt.jti && stored.revoked => return Err(DenialCode::Revoked),
        Some(stored) if *stored.jti == receipt.jti && stored.token == token => {}
        // Signed by the right key, but not the issued bytes: a stolen key alone extends nothing.
        Some(stored) if *stored.jti == receipt.jti => return Err(DenialCode::SignatureInvalid),
        // An approved head always has a stored receipt, so its absence means a manipulated database.
        Some(_) | None => return Err(DenialCode::ChainBroken),
    }
    let not_after = Timestamp::from_millis(receipt.exp.saturating_mul(1000));
    Ok(WriteAllowed::Reserve { receipt: Some(receipt.jti), not_after: Some(not_after) })
}

fn head_agrees(thread: &Thread, entry: &Entry) -> bool {
    let head = &thread.head;
    thread.id == entry.thread
        && head.version == entry.version
        && head.transition == entry.transition
        && head.policy == entry.policy
        && head.owes == entry.owes
        // The entry is signed, so a row that claims less than its entry is manipulated.
        && head.needs_receipt == entry.needs_receipt()
}

/// Answers a known write again while its lease is active. After that it is refused, and also once its expiry was
/// recorded, even if a clock goes back.
fn replay(
    write: &Write,
    thread: &Thread,
    ask: &WriteCheckRequest<'_>,
    now: Timestamp,
) -> Result<WriteAllowed, DenialCode> {
    // A write id belongs to one request, so another request must not get its permission.
    let same = write.thread == thread.id && write.transition == ask.transition && write.node == *ask.node;
    let lapsed = thread.unresolved.contains(&write.key);
    if same && write.is_live(now) && write.holds_head(thread) && !lapsed {
        Ok(WriteAllowed::Replay)
    } else {
        Err(DenialCode::AlreadyUsed)
    }
}

fn check_free(thread: &Thread, entry: &Entry, now: Timestamp) -> Result<(), DenialCode> {
    // A confirmed write is a version of its own and must not be written again.
    if matches!(entry.gate, CommitGate::Written { .. }) {
        return Err(DenialCode::AlreadyUsed);
    }
    match &thread.head.usage {
        // A revoked approval is refused later with its own code.
        HeadUse::Unused {} | HeadUse::Revoked {} => Ok(()),
        HeadUse::Reserved { lease_expires_at, .. } if *lease_expires_at > now => Err(DenialCode::WriteInProgress),
        HeadUse::Reserved { .. } | HeadUse::Used {} => Err(DenialCode::AlreadyUsed),
    }
}

fn check_receipt(
    token: &str,
    facts: &WriteCheckFacts<'_>,
    ask: &WriteCheckRequest<'_>,
    now: Timestamp,
) -> Result<Receipt, DenialCode> {
    let receipt = match facts.issued.filter(|it| it.token() == token) {
        // This process signed exactly these bytes, so the signature is not checked again.
        Some(issued) => recognise(issued, facts.keys)?,
        None => read_receipt(token, facts.keys, facts.stored_receipt)?,
    };
    if receipt.iss != facts.issuer {
        return Err(DenialCode::IssuerMismatch);
    }
    // A receipt for another writer must not authorize this one.
    if !receipt.aud.contains(ask.node) {
        return Err(DenialCode::AudienceMismatch);
    }
    check_times(&receipt, now)?;
    if receipt.sub != facts.thread.id || receipt.flow != facts.thread.flow {
        return Err(DenialCode::ThreadMismatch);
    }
    Ok(receipt)
}

/// Recognizes the bytes that this process signed. Only the state of their key remains to check.
fn recognise(issued: &IssuedReceipt, keys: &PublicKeys) -> Result<Receipt, DenialCode> {
    let state = keys.public(KeyUse::Chain, issued.kid()).map(PublicKey::state);
    match state {
        Some(KeyState::Signing | KeyState::Retired) => Ok(issued.claims().clone()),
        Some(KeyState::Revoked | KeyState::Next) | None => Err(DenialCode::UnknownKey),
    }
}

/// Checks form, key and signature. A retired key is accepted only for the stored bytes.
pub fn read_receipt(token: &str, keys: &PublicKeys, stored: Option<StoredReceipt<'_>>) -> Result<Receipt, DenialCode> {
    let unverified = jws::read::<Receipt>(token, TokenType::Receipt).map_err(|error| match error {
        JwsError::Form | JwsError::Header | JwsError::Typ | JwsError::Claims => DenialCode::ReceiptMalformed,
    })?;
    let key = keys.public(KeyUse::Chain, unverified.kid()).ok_or(DenialCode::UnknownKey)?;
    match key.state() {
        KeyState::Signing => {}
        // The stored bytes show that the gateway issued this receipt, not a thief of the retired key.
        KeyState::Retired if stored.is_some_and(|it| it.token == token) => {}
        KeyState::Retired | KeyState::Revoked | KeyState::Next => return Err(DenialCode::UnknownKey),
    }
    unverified.verify(key).ok_or(DenialCode::SignatureInvalid)
}

/// Checks whether a receipt is valid at this moment.
pub fn check_times(receipt: &Receipt, now: Timestamp) -> Result<(), DenialCode> {
    if now.seconds() < receipt.nbf {
        return Err(DenialCode::NotYetValid);
    }
    // Saturation keeps a far expiry valid instead of overflowing.
    if now.millis() >= receipt.exp.saturating_mul(1000) {
        return Err(DenialCode::Expired);
    }
    Ok(())
}

/// Checks whether a receipt is for exactly this entry of exactly this statement.
pub fn check_binding(receipt: &Receipt, entry: &Entry, statement: &Statement) -> Result<(), DenialCode> {
    if receipt.sub != entry.thread || receipt.flow != statement.flow {
        return Err(DenialCode::ThreadMismatch);
    }
    if receipt.policy != entry.policy {
        return Err(DenialCode::PolicyMismatch);
    }
    if receipt.version != entry.version {
        return Err(DenialCode::VersionMismatch);
    }
    let gate_agrees = matches!(&entry.gate, CommitGate::Approved { receipt: jti, .. } if *jti == receipt.jti);
    let same = receipt.transition == entry.transition
        && receipt.parent == entry.parent
        && receipt.to == statement.to
        && gate_agrees;
    if same { Ok(()) } else { Err(DenialCode::DigestMismatch) }
}

#[cfg(test)]
mod tests;
