//! Checks a receipt with published keys and files alone, for auditors and for writers that do not trust the gateway.
//! Every check has a name and a fixed order, so a refusal names its cause.

mod approvals;

pub use approvals::PinnedPasskey;

use std::fmt;

use super::entry::{CommitGate, Entry};
use super::hash::Digest;
use super::jws;
use super::jws::{TokenType, Unverified};
use super::opening::Opening;
use super::receipt::Receipt;
use super::signed_vote;
use super::statement::Statement;
use super::verify_write::{check_binding, check_times, read_receipt};
use crate::chain::denial::DenialCode;
use crate::chain::link::{ChainLink, check_link};
use crate::keys::{KeyState, KeyUse, PublicKeys};
use crate::primitives::named_enum::described_enum;
use crate::primitives::time::Timestamp;

/// Input of the check: a receipt, the accepted keys, and the objects that the receipt should belong to.
#[derive(Clone, Copy)]
pub struct ReceiptEvidence<'a> {
    pub receipt: &'a str,
    pub keys: &'a PublicKeys,
    /// Entry of the version that the receipt approved.
    pub entry: Option<&'a str>,
    /// Statement of that version.
    pub statement: Option<&'a Statement>,
    /// Opening of the two trees.
    pub opening: Option<&'a Opening>,
    /// Evidence of the passkey signatures on its approvals.
    pub votes: &'a [signed_vote::VoteEvidence],
    pub passkeys: Option<&'a [PinnedPasskey]>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CheckOutcome {
    Passed,
    Failed {
        /// Code that verify would return.
        code: DenialCode,
        detail: &'static str,
    },
    /// The evidence does not decide the check.
    CouldNotTell {
        detail: &'static str,
    },
    /// The check was skipped, because an earlier one failed or its input was not given.
    NotChecked {
        detail: &'static str,
    },
}

described_enum! { named_enum:
    /// Name of a check, in the order of the checks.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum CheckName {
        /// Form, header, `typ` and claims.
        Form = "form": "the text is a receipt in its canonical form",
        /// Key that the receipt names.
        Key = "key": "the key that it names is published and signs receipts",
        /// Signature by that key.
        Signature = "signature": "the signature matches that key",
        /// Issuer of the keys.
        Issuer = "issuer": "it was issued by the gateway whose keys these are",
        /// Time of validity.
        Time = "time": "it is valid now",
        /// Entry by itself.
        Entry = "entry": "the entry is signed by the same gateway's published key",
        /// Statement by itself.
        Statement = "statement": "the statement hashes to the receipt's transition",
        /// Entry against statement.
        Link = "link": "entry and statement are one link of the chain",
        /// Thread and flow.
        Thread = "thread": "it is for this thread and flow",
        /// Policy.
        Policy = "policy": "it was evaluated by this policy",
        /// Version.
        Version = "version": "it is for this version",
        /// Digest, parent, root and gate.
        Binding = "binding": "it approves exactly this transition, on this parent, to this state",
        /// Opening.
        Opening = "opening": "the opening has the statement's two roots, and each leaf has a valid salt",
        /// Passkey signatures of the reviewers.
        Approvals = "approvals": "each passkey approval is signed by a pinned passkey of its reviewer",
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiptCheck {
    pub name: CheckName,
    pub outcome: CheckOutcome,
}

/// Combined result of all checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conclusion {
    /// The receipt is genuine and belongs to the given objects.
    Genuine,
    Refused,
    /// The evidence does not decide.
    CouldNotTell,
}

impl fmt::Display for CheckName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Combines the results. One failure refuses, and one undecided check leaves the result undecided.
pub fn conclusion(checks: &[ReceiptCheck]) -> Conclusion {
    let any = |wanted: fn(&CheckOutcome) -> bool| checks.iter().any(|it| wanted(&it.outcome));
    // A failure outweighs an undecided check.
    if any(|it| matches!(it, CheckOutcome::Failed { .. })) {
        Conclusion::Refused
    } else if any(|it| matches!(it, CheckOutcome::CouldNotTell { .. })) {
        Conclusion::CouldNotTell
    } else {
        Conclusion::Genuine
    }
}

/// Makes every possible check, in order. After a failure the remaining checks are skipped.
pub fn check(evidence: &ReceiptEvidence<'_>, now: Timestamp) -> Vec<ReceiptCheck> {
    let mut seen = OfflineCheckState::default();
    let mut failed = false;
    let run = |name: &CheckName| {
        let outcome = match failed {
            true => CheckOutcome::NotChecked { detail: "an earlier check failed" },
            false => seen.run(*name, evidence, now),
        };
        failed |= matches!(outcome, CheckOutcome::Failed { .. });
        ReceiptCheck { name: *name, outcome }
    };
    CheckName::ALL.iter().map(run).collect()
}

/// Results of earlier checks that later ones need.
#[derive(Default)]
struct OfflineCheckState {
    receipt: Option<Receipt>,
    entry: Option<Entry>,
}

fn fail(code: DenialCode, detail: &'static str) -> CheckOutcome {
    CheckOutcome::Failed { code, detail }
}

fn passed_if(passed: bool, code: DenialCode, detail: &'static str) -> CheckOutcome {
    if passed { CheckOutcome::Passed } else { fail(code, detail) }
}

const NO_ENTRY: CheckOutcome = CheckOutcome::NotChecked { detail: "no entry was given" };
const NO_STATEMENT: CheckOutcome = CheckOutcome::NotChecked { detail: "no statement was given" };
const NEITHER: CheckOutcome = CheckOutcome::NotChecked { detail: "neither entry nor statement was given" };

impl OfflineCheckState {
    fn run(&mut self, name: CheckName, evidence: &ReceiptEvidence<'_>, now: Timestamp) -> CheckOutcome {
        match name {
            CheckName::Form => form(evidence.receipt),
            CheckName::Key => key(evidence.receipt, evidence.keys),
            CheckName::Signature => self.signature(evidence),
            CheckName::Entry => self.check_entry(evidence),
            _ => match &self.receipt {
                None => CheckOutcome::NotChecked { detail: "the receipt is not valid" },
                Some(receipt) => self.of_receipt(name, receipt, evidence, now),
            },
        }
    }

    /// Reads the receipt as verify does. Only the meaning of a retired key differs.
    fn signature(&mut self, evidence: &ReceiptEvidence<'_>) -> CheckOutcome {
        let broken = fail(DenialCode::SignatureInvalid, "the signature does not match that key");
        // Offline there is no stored receipt, so a retired key is reported as unknown.
        match read_receipt(evidence.receipt, evidence.keys, None) {
            Ok(receipt) => {
                self.receipt = Some(receipt);
                CheckOutcome::Passed
            }
            Err(DenialCode::UnknownKey) => {
                // A retired key was reported by the check of the key. An invalid signature is still refused.
                let Some(unverified) = read(evidence.receipt) else { return broken };
                let key = evidence.keys.public(KeyUse::Chain, unverified.kid()).cloned();
                match key.and_then(|it| unverified.verify(&it)) {
                    None => broken,
                    Some(receipt) => {
                        self.receipt = Some(receipt);
                        CheckOutcome::Passed
                    }
                }
            }
            Err(_) => broken,
        }
    }

    fn check_entry(&mut self, evidence: &ReceiptEvidence<'_>) -> CheckOutcome {
        let Some(token) = evidence.entry else { return NO_ENTRY };
        let broken = DenialCode::ChainBroken;
        let Ok(unverified) = jws::read::<Entry>(token, TokenType::Entry) else {
            return fail(broken, "the text is not an entry in its canonical form, or its claims contradict each other");
        };
        let Some(key) = evidence.keys.public(KeyUse::Chain, unverified.kid()) else {
            return fail(broken, "the entry's key is not published");
        };
        match key.state() {
            KeyState::Signing | KeyState::Retired => {}
            KeyState::Revoked => return fail(broken, "the entry's key was revoked"),
            KeyState::Next => return fail(broken, "the entry's key does not sign yet"),
        }
        // Only a verified entry is stored, so later checks never compare a forged one.
        self.entry = unverified.verify(key);
        match (&self.entry, &self.receipt) {
            (None, _) => fail(broken, "the entry's signature does not match that key"),
            (Some(entry), Some(receipt)) if entry.iss != receipt.iss => {
                fail(DenialCode::IssuerMismatch, "the entry was issued by another gateway")
            }
            _ => CheckOutcome::Passed,
        }
    }

    fn of_receipt(
        &self,
        name: CheckName,
        receipt: &Receipt,
        evidence: &ReceiptEvidence<'_>,
        now: Timestamp,
    ) -> CheckOutcome {
        match name {
            CheckName::Issuer => match evidence.keys.issuer() {
                Some(issuer) => {
                    passed_if(issuer == receipt.iss, DenialCode::IssuerMismatch, "another gateway issued it")
                }
                None => CheckOutcome::NotChecked { detail: "the published keys name no issuer" },
            },
            CheckName::Time => match check_times(receipt, now) {
                Ok(()) => CheckOutcome::Passed,
                Err(code) => fail(code, code.detail()),
            },
            CheckName::Statement => match evidence.statement {
                None => NO_STATEMENT,
                Some(statement) => passed_if(
                    statement.digest() == receipt.transition,
                    DenialCode::DigestMismatch,
                    "the statement's digest is not the receipt's transition",
                ),
            },
            CheckName::Link => link(evidence, &receipt.iss),
            CheckName::Opening => opening(evidence, receipt.to),
            CheckName::Approvals => approvals::approvals(receipt, evidence.votes, evidence.passkeys),
            other => self.belongs(other, receipt, evidence.statement),
        }
    }

    /// Compares a receipt with entry and statement.
    fn belongs(&self, name: CheckName, receipt: &Receipt, statement: Option<&Statement>) -> CheckOutcome {
        let entry = self.entry.as_ref();
        // Without both there is nothing to compare, and a pass would claim too much.
        if entry.is_none() && statement.is_none() {
            return NEITHER;
        }
        let both = |entry_agrees: fn(&Receipt, &Entry) -> bool, statement_agrees: fn(&Receipt, &Statement) -> bool| {
            entry.is_none_or(|it| entry_agrees(receipt, it)) && statement.is_none_or(|it| statement_agrees(receipt, it))
        };
        let (agrees, code) = match name {
            CheckName::Thread => (
                both(|r, e| r.sub == e.thread, |r, s| r.sub == s.thread && r.flow == s.flow),
                DenialCode::ThreadMismatch,
            ),
            CheckName::Policy => {
                (both(|r, e| r.policy == e.policy, |r, s| r.policy == s.policy), DenialCode::PolicyMismatch)
            }
            CheckName::Version => {
                (both(|r, e| r.version == e.version, |r, s| r.version == s.version), DenialCode::VersionMismatch)
            }
            _ => (both(binds_entry, |r, s| r.parent == s.parent && r.to == s.to), DenialCode::DigestMismatch),
        };
        let whole = match (name, entry, statement) {
            (CheckName::Binding, Some(entry), Some(statement)) => check_binding(receipt, entry, statement),
            _ => Ok(()),
        };
        match whole {
            Ok(()) => passed_if(agrees, code, code.detail()),
            Err(code) => fail(code, code.detail()),
        }
    }
}

fn binds_entry(receipt: &Receipt, entry: &Entry) -> bool {
    let gate = matches!(&entry.gate, CommitGate::Approved { receipt: jti, .. } if *jti == receipt.jti);
    gate && receipt.transition == entry.transition && receipt.parent == entry.parent
}

fn read(receipt: &str) -> Option<Unverified<Receipt>> {
    jws::read::<Receipt>(receipt, TokenType::Receipt).ok()
}

fn form(receipt: &str) -> CheckOutcome {
    passed_if(
        read(receipt).is_some(),
        DenialCode::ReceiptMalformed,
        "the text is not a receipt in its canonical form, or its claims contradict each other",
    )
}

fn key(receipt: &str, keys: &PublicKeys) -> CheckOutcome {
    let unknown = |detail| fail(DenialCode::UnknownKey, detail);
    let Some(unverified) = read(receipt) else { return form(receipt) };
    match keys.public(KeyUse::Chain, unverified.kid()).map(|it| it.state()) {
        Some(KeyState::Signing) => CheckOutcome::Passed,
        Some(KeyState::Retired) => CheckOutcome::CouldNotTell {
            detail: "the key is retired: only the gateway can say whether it issued this receipt before",
        },
        Some(KeyState::Revoked) => unknown("the key was revoked"),
        Some(KeyState::Next) => unknown("the key does not sign yet"),
        None => unknown("no published key for receipts has this name"),
    }
}

fn link(evidence: &ReceiptEvidence<'_>, issuer: &str) -> CheckOutcome {
    let (Some(entry), Some(statement)) = (evidence.entry, evidence.statement) else {
        return CheckOutcome::NotChecked { detail: "this check needs both entry and statement" };
    };
    // The state is not part of the input. The opening has its own check against the statement's roots.
    let link = ChainLink { entry, statement, root: statement.to };
    match check_link(&link, evidence.keys, issuer) {
        Ok(_) => CheckOutcome::Passed,
        Err(code) => fail(code, "entry and statement differ"),
    }
}

fn opening(evidence: &ReceiptEvidence<'_>, to: Digest) -> CheckOutcome {
    let Some(opening) = evidence.opening else { return CheckOutcome::NotChecked { detail: "no opening was given" } };
    let before = evidence.statement.is_none_or(|it| opening.from.root() == Some(it.from));
    if !before || opening.to.root() != Some(to) {
        return fail(DenialCode::DigestMismatch, "the roots of the opening differ from the signed roots");
    }
    let salting = opening.salting();
    if !salting.kept.is_empty() {
        return fail(DenialCode::ChainBroken, "a leaf was set, but its salt did not change");
    }
    CheckOutcome::Passed
}

#[cfg(test)]
mod tests;
