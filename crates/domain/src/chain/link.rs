//! Checks one stored link of a chain before it is used.

use super::denial::DenialCode;
use super::entry::{CommitGate, Entry};
use super::hash::Digest;
use super::jws::{self, TokenType};
use super::statement::{Statement, TransitionType};
use crate::keys::{KeyState, KeyUse, PublicKeys};

/// A committed transition as stored. Verify and audit check it before they use it.
#[derive(Clone, Copy, Debug)]
pub struct ChainLink<'a> {
    pub entry: &'a str,
    /// Statement that was stored with it.
    pub statement: &'a Statement,
    /// Root of the stored state.
    pub root: Digest,
}

/// Checks one link of a chain. The signature is valid, the statement hashes to the entry's digest, statement and entry
/// agree, and the stored state commits to the statement's root.
pub fn check_link(link: &ChainLink<'_>, keys: &PublicKeys, issuer: &str) -> Result<Entry, DenialCode> {
    let broken = DenialCode::ChainBroken;
    let unverified = jws::read::<Entry>(link.entry, TokenType::Entry).map_err(|_| broken)?;
    let key = keys.public(KeyUse::Chain, unverified.kid()).ok_or(broken)?;
    // A retired key is valid for entries, because old entries stay signed by it.
    if matches!(key.state(), KeyState::Revoked | KeyState::Next) {
        return Err(broken);
    }
    let entry = unverified.verify(key).ok_or(broken)?;
    let statement = link.statement;
    let agrees = entry.iss == issuer
        && statement.is_whole()
        && gate_fits(&entry.gate, statement.kind)
        && entry.transition == statement.digest()
        && entry.thread == statement.thread
        && entry.version == statement.version
        && entry.parent == statement.parent
        && entry.policy == statement.policy
        // The signed root proves that the stored state is the one that was committed.
        && statement.to == link.root;
    if agrees { Ok(entry) } else { Err(broken) }
}

/// Returns whether a gate fits a type. A confirm is always written. A change that requires approval is never committed
/// automatically.
pub(super) fn gate_fits(gate: &CommitGate, kind: TransitionType) -> bool {
    match gate {
        // Only a writer's report can enter the chain through a write.
        CommitGate::Written { .. } => kind == TransitionType::Confirm,
        CommitGate::Auto {} => matches!(
            kind,
            TransitionType::Create | TransitionType::Fork | TransitionType::Propose | TransitionType::Join
        ),
        CommitGate::Observed {} => !matches!(kind, TransitionType::Fork | TransitionType::Confirm),
        CommitGate::Approved { .. } => {
            !matches!(kind, TransitionType::Create | TransitionType::Fork | TransitionType::Confirm)
        }
    }
}
