//! Checks an exported chain by the published keys alone: every version is stated, signed, and based on the version
//! before. An auditor needs neither the gateway nor its database.

mod branches;

use std::collections::HashMap;

use serde::Deserialize as _;
use serde_json::Value;

use super::entry::{CommitGate, Entry};
use super::hash::Digest;
use super::jws;
use super::jws::TokenType;
use super::link::gate_fits;
use super::opening::Opening;
use super::receipt::Receipt;
use super::statement::Statement;
use crate::keys::{KeyState, KeyUse, PublicKey, PublicKeys};
use crate::primitives::id::{FlowId, ThreadId};
use crate::threads::branch::{Branch, JoinStatement};

/// An export failed a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} [{code}]")]
pub struct ExportError {
    /// Code for programs.
    pub code: &'static str,
    pub what: &'static str,
}

const fn broken(code: &'static str, what: &'static str) -> ExportError {
    ExportError { code, what }
}

const fn say(holds: bool, code: &'static str, what: &'static str) -> Result<(), ExportError> {
    if holds { Ok(()) } else { Err(broken(code, what)) }
}

#[derive(Clone, Copy, Debug)]
pub struct ExportedVersion<'a> {
    pub version: u64,
    /// Digest of the transition.
    pub transition: Digest,
    /// Statement of the transition.
    pub statement: &'a Statement,
    pub entry: &'a str,
    /// Opening of the change, if the export has one.
    pub opening: Option<&'a Opening>,
}

/// One version of a page of `GET /v1/threads/{thread}/chain`.
#[derive(Clone, PartialEq, Debug)]
pub struct ExportedEntry {
    version: u64,
    transition: Digest,
    statement: Statement,
    entry: String,
    opening: Option<Opening>,
}

impl ExportedEntry {
    /// Reads one version. Members that the chain does not need are ignored.
    pub fn read(item: &Value) -> Result<Self, ExportError> {
        let member = |name: &str| item.get(name).filter(|it| !it.is_null());
        let lacking = broken("chain", "a version lacks its number, transition, statement or entry");
        let version = member("version").and_then(Value::as_u64).ok_or(lacking)?;
        let transition = member("transition").and_then(Value::as_str).and_then(|it| it.parse().ok()).ok_or(lacking)?;
        let entry = member("entry").and_then(Value::as_str).ok_or(lacking)?.to_owned();
        let stated = member("statement").ok_or(lacking)?;
        let unread = broken("statement", "the statement has missing, unknown or invalid members");
        let statement = Statement::deserialize(stated).map_err(|_| unread)?;
        // A missing member would read as null, and the statement would hash as if it were present.
        say(serde_json::to_value(&statement).is_ok_and(|it| it == *stated), unread.code, unread.what)?;
        let opening = member("opening").map(Opening::deserialize).transpose();
        let opening = opening.map_err(|_| broken("opening", "the opening is not two opened trees"))?;
        Ok(Self { version, transition, statement, entry, opening })
    }

    /// Returns the version in the form that a chain checks.
    pub const fn exhibit(&self) -> ExportedVersion<'_> {
        let Self { version, transition, statement, entry, opening } = self;
        let (version, transition) = (*version, *transition);
        ExportedVersion { version, transition, statement, entry: entry.as_str(), opening: opening.as_ref() }
    }
}

/// The part of a checked version that later checks need.
#[derive(Clone, Debug)]
struct VerifiedVersion {
    transition: Digest,
    parent: Option<Digest>,
    policy: Digest,
    to: Digest,
    entry: Digest,
    gate: CommitGate,
    owes: bool,
    seen: ChangeVisibility,
    join: Option<JoinStatement>,
}

/// How much of a change an opening shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ChangeVisibility {
    /// Nothing: the version links, and has no opening.
    Nothing,
    /// Everything except redacted parts.
    Partly,
    Whole,
}

/// Result of comparing two chains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrossChainCheck {
    Agreed,
    /// The version that decides is not in the export.
    NotSeen,
}

/// The checked part of a chain.
#[derive(Clone, Debug)]
pub struct VerifiedChain {
    pub thread: ThreadId,
    pub flow: FlowId,
    pub issuer: String,
    /// Head that the branch was made from, if this is a branch.
    pub fork: Option<Branch>,
    first: u64,
    links: Vec<VerifiedVersion>,
    places: HashMap<Digest, usize>,
}

/// A receipt that a key of the set signed, for any chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GenuineReceipt {
    /// Claims of the receipt.
    pub receipt: Receipt,
    /// Whether the signature alone proves the receipt. A stolen retired key may have signed it later, and only the
    /// gateway knows which bytes it issued.
    pub certain: bool,
}

impl GenuineReceipt {
    /// Reads a receipt. Does not check whether it is still usable.
    pub fn read(token: &str, keys: &PublicKeys) -> Result<Self, ExportError> {
        let malformed = broken(
            "receipt_malformed",
            "the text is not a receipt in its canonical form, or its claims contradict each other",
        );
        let unverified = jws::read::<Receipt>(token, TokenType::Receipt).map_err(|_| malformed)?;
        let key = believed(keys, unverified.kid())?;
        // A thief can sign with a stolen retired key, but the file does not show when a signature was made.
        let certain = key.state() == KeyState::Signing;
        let receipt = unverified.verify(key).ok_or(SIGNATURE_INVALID)?;
        Ok(Self { receipt, certain })
    }
}

impl VerifiedChain {
    /// Begins a chain with its first version: version 0, or the first of an archive. If the key set names an issuer,
    /// the chain must be that issuer's.
    pub fn begin(first: &ExportedVersion<'_>, keys: &PublicKeys) -> Result<Self, ExportError> {
        let entry = signed(first, keys)?;
        let statement = first.statement;
        // A published key set need not name its issuer.
        say(keys.issuer().is_none_or(|it| it == entry.iss), "issuer_mismatch", "another gateway signed it")?;
        let mut chain = Self {
            thread: statement.thread.clone(),
            flow: statement.flow.clone(),
            issuer: entry.iss.clone(),
            fork: statement.fork.clone(),
            first: first.version,
            links: Vec::new(),
            places: HashMap::new(),
        };
        chain.keep(first, entry)?;
        Ok(chain)
    }

    pub fn follow(&mut self, next: &ExportedVersion<'_>, keys: &PublicKeys) -> Result<(), ExportError> {
        let numbered = next.version == self.next_version();
        say(numbered, "chain", "a version is missing, there twice, or out of its place")?;
        let entry = signed(next, keys)?;
        let (statement, before) = (next.statement, self.last());
        say(statement.parent == Some(before.transition), "parent_mismatch", "it was not made on the version before")?;
        say(statement.from == before.to, "root_mismatch", "it does not start from the state before")?;
        say(statement.thread == self.thread, "thread_mismatch", "it is of another thread")?;
        say(statement.flow == self.flow, "flow_mismatch", "it is of another flow")?;
        // All versions of a chain must come from one gateway, even if the key set names none.
        say(entry.iss == self.issuer, "issuer_mismatch", "another gateway signed it")?;
        // Only an approval under a policy with `covers = "commit"` settles the requirement.
        let settled = !before.owes || matches!(entry.gate, CommitGate::Approved { .. });
        say(entry.owes || settled, "owes", "it drops an approval that is still required")?;
        // An archive may start after the restored version, so the check needs version 0.
        let restored = statement.restores.is_none_or(|it| self.first > 0 || self.places.contains_key(&it));
        say(restored, "unknown_transition", "it restores a transition that is not in this chain")?;
        let written_by = match (&entry.gate, &before.gate) {
            (CommitGate::Written { receipt: used, .. }, CommitGate::Approved { receipt, .. }) => {
                used.as_ref() == Some(receipt)
            }
            (CommitGate::Written { receipt: used, .. }, _) => used.is_none(),
            _ => true,
        };
        say(written_by, "gate", "it was not written with the receipt of the previous version")?;
        self.keep(next, entry)
    }

    /// Checks a version that another file contains too.
    pub fn again(&mut self, it: &ExportedVersion<'_>, keys: &PublicKeys) -> Result<(), ExportError> {
        signed(it, keys)?;
        let other = broken("chain", "two files have different versions of that number");
        let place =
            *self.places.get(&it.transition).filter(|place| self.first + **place as u64 == it.version).ok_or(other)?;
        say(self.links[place].entry == entry_hash(it), other.code, other.what)?;
        let seen = seen(it)?;
        // Two files may open different parts. The better one counts.
        self.links[place].seen = self.links[place].seen.max(seen);
        Ok(())
    }

    fn keep(&mut self, it: &ExportedVersion<'_>, entry: Entry) -> Result<(), ExportError> {
        let seen = seen(it)?;
        self.places.insert(it.transition, self.links.len());
        self.links.push(VerifiedVersion {
            transition: it.transition,
            parent: entry.parent,
            policy: entry.policy,
            to: it.statement.to,
            entry: entry_hash(it),
            gate: entry.gate,
            owes: entry.owes,
            seen,
            join: it.statement.join.clone(),
        });
        Ok(())
    }

    fn last(&self) -> &VerifiedVersion {
        self.links.last().expect("a chain begins with a version")
    }

    /// Returns the first version.
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// Returns the version that must come next.
    pub const fn next_version(&self) -> u64 {
        self.first + self.links.len() as u64
    }

    /// Counts the versions whose change is shown to this extent.
    pub fn seen(&self, so_much: ChangeVisibility) -> usize {
        self.links.iter().filter(|it| it.seen == so_much).count()
    }

    /// Counts the approved versions.
    pub fn approved(&self) -> usize {
        self.links.iter().filter(|it| matches!(it.gate, CommitGate::Approved { .. })).count()
    }

    /// Counts the versions that record a write.
    pub fn written(&self) -> usize {
        self.links.iter().filter(|it| matches!(it.gate, CommitGate::Written { .. })).count()
    }

    /// Returns whether the chain contains this version.
    pub const fn reaches(&self, version: u64) -> bool {
        self.first <= version && version < self.next_version()
    }

    fn at(&self, transition: Digest) -> Option<(u64, &VerifiedVersion)> {
        let place = *self.places.get(&transition)?;
        Some((self.first + place as u64, &self.links[place]))
    }

    /// Checks that a receipt is the one by which a version of this chain was approved.
    pub fn receipt(&self, receipt: &Receipt) -> Result<CrossChainCheck, ExportError> {
        say(receipt.iss == self.issuer, "issuer_mismatch", "another gateway issued it")?;
        say(receipt.sub == self.thread, "thread_mismatch", "it is for another thread")?;
        let unknown = broken("unknown_transition", "it approves a transition that is not in this chain");
        let Some((version, link)) = self.at(receipt.transition) else {
            // The export does not contain the version, so nothing contradicts the receipt.
            return if self.reaches(receipt.version) { Err(unknown) } else { Ok(CrossChainCheck::NotSeen) };
        };
        say(receipt.flow == self.flow, "flow_mismatch", "it is for another flow")?;
        say(receipt.policy == link.policy, "policy_mismatch", "it names another policy than its version")?;
        say(receipt.version == version, "version_mismatch", "it is for another version")?;
        say(receipt.parent == link.parent, "parent_mismatch", "it is for another parent")?;
        say(receipt.to == link.to, "to_mismatch", "it is for another state")?;
        let named = matches!(&link.gate, CommitGate::Approved { receipt: jti, .. } if *jti == receipt.jti);
        say(named, "receipt_mismatch", "its version was not approved by this receipt")?;
        Ok(CrossChainCheck::Agreed)
    }
}

fn entry_hash(it: &ExportedVersion<'_>) -> Digest {
    Digest::of_file(it.entry.as_bytes())
}

const SIGNATURE_INVALID: ExportError =
    broken("signature_invalid", "the signature does not match the key that it names");

fn believed<'k>(keys: &'k PublicKeys, kid: &str) -> Result<&'k PublicKey, ExportError> {
    // Old entries stay signed by a retired key, so it still counts.
    let key = keys.public(KeyUse::Chain, kid).filter(|it| matches!(it.state(), KeyState::Signing | KeyState::Retired));
    key.ok_or(broken("unknown_key", "the key that it names is not published, was revoked, or does not sign yet"))
}

/// Checks one version by itself: its statement is whole, and its entry is signed over that statement.
fn signed(it: &ExportedVersion<'_>, keys: &PublicKeys) -> Result<Entry, ExportError> {
    let statement = it.statement;
    say(statement.is_whole(), "statement", "the statement lacks members that its type requires")?;
    say(statement.digest() == it.transition, "digest_mismatch", "the statement has another digest")?;
    let malformed = broken(
        "receipt_malformed",
        "the text is not an entry in its canonical form, or its claims contradict each other",
    );
    let unverified = jws::read::<Entry>(it.entry, TokenType::Entry).map_err(|_| malformed)?;
    let key = believed(keys, unverified.kid())?;
    let entry = unverified.verify(key).ok_or(SIGNATURE_INVALID)?;
    say(entry.transition == it.transition, "digest_mismatch", "the entry signs another transition")?;
    say(statement.version == it.version, "version_mismatch", "the statement is of another version")?;
    say(entry.version == statement.version, "version_mismatch", "entry and statement are of different versions")?;
    say(entry.thread == statement.thread, "thread_mismatch", "entry and statement are of different threads")?;
    say(entry.parent == statement.parent, "parent_mismatch", "entry and statement have different parents")?;
    say(entry.policy == statement.policy, "policy_mismatch", "entry and statement have different policies")?;
    say(gate_fits(&entry.gate, statement.kind), "gate", "this gate is not possible for a transition of this type")?;
    // The id of the write connects the statement with the gateway's record of the write.
    let own_write = match &entry.gate {
        CommitGate::Written { write_id, .. } => statement.write_id.as_ref() == Some(write_id),
        _ => true,
    };
    say(own_write, "gate", "it records another write than the statement")?;
    let observed = matches!(entry.gate, CommitGate::Observed {});
    say(entry.owes || !observed, "owes", "it was only observed, but requires no approval")?;
    Ok(entry)
}

/// Returns how much an opening shows. Fails if its roots are not the statement's, or its salts do not fit the
/// statement's type.
fn seen(it: &ExportedVersion<'_>) -> Result<ChangeVisibility, ExportError> {
    let (Some(opening), statement) = (it.opening, it.statement) else { return Ok(ChangeVisibility::Nothing) };
    let roots = opening.from.root() == Some(statement.from) && opening.to.root() == Some(statement.to);
    say(roots, "root_mismatch", "the roots of the opening differ from the signed roots")?;
    let salting = opening.salting();
    say(salting.kept.is_empty(), "salt_kept", "a leaf was set, but its salt did not change")?;
    Ok(if opening.is_whole() { ChangeVisibility::Whole } else { ChangeVisibility::Partly })
}
