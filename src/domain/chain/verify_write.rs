//! Verify: one pure function from facts, receipt and clock to allow or a denial code.
//!
//! The gateway, its audit and the command line all call it; nothing else decides whether a write may happen.

use std::collections::BTreeSet;

use super::denial::DenialCode;
use super::entry::{Entry, Gate};
use super::hash::Digest;
use super::jws;
use super::jws::{JwsError, Typ};
use super::receipt::{Issued, Receipt};
use super::statement::Statement;
use crate::domain::keys::{KeyState, KeyUse, PublicKey, PublicKeys};
use crate::domain::primitives::id::{Jti, NodeId, PrincipalId, WriteId};
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::flow::Mode;
use crate::domain::threads::thread::{HeadUse, Thread};
use crate::domain::writes::write::Write;

/// What a writer asks.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// Who asks.
    pub principal: &'a PrincipalId,
    /// As which node.
    pub node: &'a NodeId,
    /// Which transition it means to write.
    pub transition: Digest,
    /// The receipt, if it has one.
    pub receipt: Option<&'a str>,
    /// What it calls the write.
    pub write_id: &'a WriteId,
}

/// The head as stored, after `check_link`, or the news that it did not pass.
pub type CheckedHead<'a> = Result<(&'a Entry, &'a Statement), DenialCode>;

/// Everything about the gateway that verify looks at.
pub struct Facts<'a> {
    /// The thread.
    pub thread: &'a Thread,
    /// Whether verifying is halted, for the flow or for all.
    pub halted: bool,
    /// The head.
    pub head: CheckedHead<'a>,
    /// Whether the flow enforces; one that observes asks for no receipt but of what people approved before.
    pub mode: Mode,
    /// Which policies' heads may be written: the active one and those its activation accepts.
    pub accepted: &'a BTreeSet<Digest>,
    /// The write of that name by that principal, if it is known.
    pub write: Option<&'a Write>,
    /// The receipt as it was stored, if one of that id was: its bytes and whether it was revoked.
    pub stored_receipt: Option<StoredReceipt<'a>>,
    /// The receipt as this process signed it, if it did.
    pub issued: Option<&'a Issued>,
    /// The keys that may be trusted, with their states.
    pub keys: &'a PublicKeys,
    /// This gateway.
    pub issuer: &'a str,
}

/// A receipt as the gateway keeps it.
#[derive(Clone, Copy, Debug)]
pub struct StoredReceipt<'a> {
    /// Its id.
    pub jti: &'a Jti,
    /// The token, byte for byte.
    pub token: &'a str,
    /// Whether it was taken back.
    pub revoked: bool,
}

/// A writer is let through.
#[derive(Debug, PartialEq, Eq)]
pub enum Allow {
    /// For the first time: reserve the head and use the receipt up.
    Reserve {
        /// The receipt that is used up.
        receipt: Option<Jti>,
        /// After which moment it may not be any more.
        not_after: Option<Timestamp>,
    },
    /// Again, by the same call while the lease lives: the same answer.
    Replay,
}

/// Decides whether a writer may write. The order of the checks is the protocol's.
pub fn verify(facts: &Facts<'_>, ask: &Ask<'_>, now: Timestamp) -> Result<Allow, DenialCode> {
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
    // What people approved has a receipt, and a write of it uses that one up whatever the flow does since.
    let observed_only = facts.mode == Mode::Observe && !matches!(entry.gate, Gate::Approved { .. });
    if observed_only || !entry.needs_receipt() {
        // Nobody shows a receipt here. What came of an approval that was taken back is not let through for that, nor what
        // a policy admitted that was withdrawn since.
        return match (facts.thread.taken_back, facts.thread.lineage.is_accepted(facts.accepted)) {
            (true, _) => Err(DenialCode::Revoked),
            (false, false) => Err(DenialCode::PolicyMismatch),
            (false, true) => Ok(Allow::Reserve { receipt: None, not_after: None }),
        };
    }
    let token = ask.receipt.ok_or(DenialCode::ReceiptMissing)?;
    let receipt = check_receipt(token, facts, ask, now)?;
    check_binding(&receipt, entry, statement)?;
    if facts.thread.head.usage == (HeadUse::Revoked {}) {
        return Err(DenialCode::Revoked);
    }
    match facts.stored_receipt {
        Some(stored) if *stored.jti == receipt.jti && stored.revoked => return Err(DenialCode::Revoked),
        Some(stored) if *stored.jti == receipt.jti && stored.token == token => {}
        // Signed by the true key, and not what was issued: a stolen key alone prolongs nothing.
        Some(stored) if *stored.jti == receipt.jti => return Err(DenialCode::SignatureInvalid),
        Some(_) | None => return Err(DenialCode::ChainBroken),
    }
    let not_after = Timestamp::from_millis(receipt.exp.saturating_mul(1000));
    Ok(Allow::Reserve { receipt: Some(receipt.jti), not_after: Some(not_after) })
}

fn head_agrees(thread: &Thread, entry: &Entry) -> bool {
    let head = &thread.head;
    thread.id == entry.thread
        && head.version == entry.version
        && head.transition == entry.transition
        && head.policy == entry.policy
        && head.owes == entry.owes
        && head.needs_receipt == entry.needs_receipt()
}

/// A known write is answered as before while its lease lives, and never again after; nor once it was told as lapsed, should
/// a clock go back.
fn replay(write: &Write, thread: &Thread, ask: &Ask<'_>, now: Timestamp) -> Result<Allow, DenialCode> {
    let same = write.thread == thread.id && write.transition == ask.transition && write.node == *ask.node;
    let lapsed = thread.unresolved.contains(&write.key);
    if same && write.is_live(now) && write.holds_head(thread) && !lapsed {
        Ok(Allow::Replay)
    } else {
        Err(DenialCode::AlreadyUsed)
    }
}

fn check_free(thread: &Thread, entry: &Entry, now: Timestamp) -> Result<(), DenialCode> {
    if matches!(entry.gate, Gate::Written { .. }) {
        return Err(DenialCode::AlreadyUsed);
    }
    match &thread.head.usage {
        HeadUse::Unused {} | HeadUse::Revoked {} => Ok(()),
        HeadUse::Reserved { lease_expires_at, .. } if *lease_expires_at > now => Err(DenialCode::WriteInProgress),
        HeadUse::Reserved { .. } | HeadUse::Used {} => Err(DenialCode::AlreadyUsed),
    }
}

fn check_receipt(token: &str, facts: &Facts<'_>, ask: &Ask<'_>, now: Timestamp) -> Result<Receipt, DenialCode> {
    let receipt = match facts.issued.filter(|it| it.token() == token) {
        Some(issued) => recognise(issued, facts.keys)?,
        None => read_receipt(token, facts.keys, facts.stored_receipt)?,
    };
    if receipt.iss != facts.issuer {
        return Err(DenialCode::IssuerMismatch);
    }
    if !receipt.aud.contains(ask.node) {
        return Err(DenialCode::AudienceMismatch);
    }
    check_times(&receipt, now)?;
    if receipt.sub != facts.thread.id || receipt.flow != facts.thread.flow {
        return Err(DenialCode::ThreadMismatch);
    }
    Ok(receipt)
}

/// The very bytes that this process signed: what is left to ask is whether their key may still be trusted.
fn recognise(issued: &Issued, keys: &PublicKeys) -> Result<Receipt, DenialCode> {
    let state = keys.public(KeyUse::Chain, issued.kid()).map(PublicKey::state);
    match state {
        Some(KeyState::Signing | KeyState::Retired) => Ok(issued.claims().clone()),
        Some(KeyState::Revoked | KeyState::Next) | None => Err(DenialCode::UnknownKey),
    }
}

/// Form, key and signature. A retired key vouches only for the very bytes that are stored.
pub fn read_receipt(token: &str, keys: &PublicKeys, stored: Option<StoredReceipt<'_>>) -> Result<Receipt, DenialCode> {
    let unverified = jws::read::<Receipt>(token, Typ::Receipt).map_err(|error| match error {
        JwsError::Form | JwsError::Header | JwsError::Typ | JwsError::Claims => DenialCode::ReceiptMalformed,
    })?;
    let key = keys.public(KeyUse::Chain, unverified.kid()).ok_or(DenialCode::UnknownKey)?;
    match key.state() {
        KeyState::Signing => {}
        KeyState::Retired if stored.is_some_and(|it| it.token == token) => {}
        KeyState::Retired | KeyState::Revoked | KeyState::Next => return Err(DenialCode::UnknownKey),
    }
    let receipt = unverified.verify(key).ok_or(DenialCode::SignatureInvalid)?;
    if receipt.is_whole() { Ok(receipt) } else { Err(DenialCode::ReceiptMalformed) }
}

/// Whether a receipt is valid at this moment.
pub fn check_times(receipt: &Receipt, now: Timestamp) -> Result<(), DenialCode> {
    if now.seconds() < receipt.nbf {
        return Err(DenialCode::NotYetValid);
    }
    if now.millis() >= receipt.exp.saturating_mul(1000) {
        return Err(DenialCode::Expired);
    }
    Ok(())
}

/// Whether a receipt is for exactly this entry of exactly this statement.
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
    let gate_agrees = matches!(&entry.gate, Gate::Approved { receipt: jti, .. } if *jti == receipt.jti);
    let same = receipt.transition == entry.transition
        && receipt.parent == entry.parent
        && receipt.to == statement.to
        && gate_agrees;
    if same { Ok(()) } else { Err(DenialCode::DigestMismatch) }
}

#[cfg(test)]
mod tests;
