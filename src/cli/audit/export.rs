//! `audit --export`: replays exported files with published keys only. Works offline and without a database.

mod files;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use countersign_domain::chain::verify_export::{
    CrossChainCheck, ExportError, ExportedEntry, GenuineReceipt, VerifiedChain,
};
use countersign_domain::keys::PublicKeys;
use countersign_domain::primitives::id::{Jti, ThreadId};

use super::super::output::CommandOutput;
use super::super::{CliError, CommandExit};
use files::{ChainSegment, ExportFiles, TrustedKeys};

/// A problem in the export.
struct ExportFinding {
    place: String,
    version: Option<u64>,
    broken: ExportError,
}

/// A verified chain and facts about it.
struct CheckedChain {
    chain: VerifiedChain,
    /// Whether the last page reports that no more pages follow.
    is_whole: bool,
    /// The receipts of its approvals.
    receipts: BTreeSet<Jti>,
}

/// The result of the audit.
#[derive(Default)]
struct AuditedExport {
    findings: Vec<ExportFinding>,
    /// Checks without a result. Each of them makes the exit code 2.
    doubts: Vec<String>,
    /// Checks that need files which the export does not contain.
    unseen: Vec<String>,
    passed_over: Vec<String>,
    chains: BTreeMap<ThreadId, CheckedChain>,
}

/// Exits with 0 if every check passes, 1 with a list of findings, and 2 if a missing file prevents a check.
pub fn run(folder: &Path, jwks: Option<&Path>, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    let keys = TrustedKeys::read(folder, jwks)?;
    let mut audited = AuditedExport::default();
    audited.doubts.extend(keys.doubt());
    let files = ExportFiles::read(folder, &keys, &mut audited)?;
    audited.replay(files.pieces, &keys.believed);
    audited.check_issuers();
    audited.check_branches();
    // Receipts come last, because they are compared with the replayed chains.
    audited.check_receipts(files.receipts, &keys.believed);
    // Without any file the result would be "no problems", which an empty folder must not get.
    if audited.chains.is_empty() && audited.findings.is_empty() && audited.doubts.is_empty() {
        return Err(CliError::Given(format!(
            "{} contains no chain: save the pages of `GET /v1/threads/THREAD/chain` there, each as a file that ends in .json",
            folder.display()
        )));
    }
    out.answer(report::text(&audited, &keys), || report::json(&audited, &keys))?;
    // A finding decides the exit code, even if other checks have no result.
    Ok(match (audited.findings.is_empty(), audited.doubts.is_empty()) {
        (false, _) => CommandExit::No,
        (true, false) => CommandExit::CouldNotTell,
        (true, true) => CommandExit::Yes,
    })
}

const fn chain(what: &'static str) -> ExportError {
    ExportError { code: "chain", what }
}

impl AuditedExport {
    fn find(&mut self, place: impl Into<String>, version: Option<u64>, broken: ExportError) {
        self.findings.push(ExportFinding { place: place.into(), version, broken });
    }

    fn replay(&mut self, pieces: BTreeMap<ThreadId, Vec<ChainSegment>>, keys: &PublicKeys) {
        for (thread, mut pieces) in pieces {
            // Files have any names, so the order comes from the versions in them.
            pieces.sort_by_key(ChainSegment::ends);
            match replayed(&pieces, keys) {
                Ok(it) if it.chain.first() > 0 => {
                    // An archive can begin in the middle of a chain, so its first entry is trusted by its signature
                    // alone.
                    let before = it.chain.first() - 1;
                    self.doubts.push(format!(
                        "{thread}: versions 0 to {before} are missing, so approvals that they required are unknown"
                    ));
                    self.chains.insert(thread, it);
                }
                Ok(it) => _ = self.chains.insert(thread, it),
                Err(finding) => self.findings.push(finding),
            }
        }
    }

    /// Checks that all chains have the same issuer, if the keys do not name one.
    fn check_issuers(&mut self) {
        let mut issuers = self.chains.iter().map(|(thread, it)| (thread, &it.chain.issuer));
        let first = issuers.next();
        let another = issuers.find(|(_, issuer)| first.is_some_and(|it| it.1 != *issuer));
        if let Some((thread, _)) = another {
            let broken = ExportError {
                code: "issuer_mismatch",
                what: "another gateway signed the other threads of this export",
            };
            self.find(thread.to_string(), None, broken);
        }
    }

    /// Checks forks and joins against the chains of the other threads, if they are in the export.
    fn check_branches(&mut self) {
        let (mut findings, mut unseen) = (Vec::new(), Vec::new());
        for (thread, CheckedChain { chain, .. }) in &self.chains {
            let mut hold = |other: &ThreadId, held: Option<Result<CrossChainCheck, ExportError>>| match held {
                Some(Ok(CrossChainCheck::Agreed)) => {}
                Some(Err(broken)) => findings.push(ExportFinding { place: thread.to_string(), version: None, broken }),
                Some(Ok(CrossChainCheck::NotSeen)) => {
                    unseen.push(format!("the version of {other} that {thread} was created from"))
                }
                // A missing thread is no finding, because an export may contain only some threads.
                None => unseen.push(format!("{other}, which {thread} was created from")),
            };
            if let Some(fork) = &chain.fork {
                hold(&fork.thread, self.chains.get(&fork.thread).map(|it| it.chain.branch(chain)));
            }
            for joined in chain.joined() {
                let branch = self.chains.get(joined.thread());
                hold(joined.thread(), branch.map(|it| joined.of(&it.chain, it.is_whole)));
            }
        }
        self.findings.extend(findings);
        self.unseen.extend(unseen);
    }

    fn check_receipts(&mut self, receipts: Vec<(String, String)>, keys: &PublicKeys) {
        for (file, token) in receipts {
            let GenuineReceipt { receipt, certain } = match GenuineReceipt::read(&token, keys) {
                Ok(it) => it,
                Err(broken) => {
                    // The other receipts are still checked, so that one run lists all problems.
                    self.find(file, None, broken);
                    continue;
                }
            };
            // A receipt can only be compared with a chain, so without one the check has no result.
            let Some(replayed) = self.chains.get_mut(&receipt.sub) else {
                self.doubts.push(format!("{file}: the chain of its thread is missing or invalid"));
                continue;
            };
            match replayed.chain.receipt(&receipt) {
                Err(broken) => self.find(file, None, broken),
                Ok(CrossChainCheck::NotSeen) => {
                    self.doubts.push(format!("{file}: the version that it approves is missing"))
                }
                Ok(CrossChainCheck::Agreed) if certain => _ = replayed.receipts.insert(receipt.jti),
                Ok(CrossChainCheck::Agreed) => self.doubts.push(format!(
                    "{file}: its key is retired, so only the gateway can say whether it issued this receipt before"
                )),
            }
        }
    }
}

fn replayed(pieces: &[ChainSegment], keys: &PublicKeys) -> Result<CheckedChain, ExportFinding> {
    let mut so_far: Option<VerifiedChain> = None;
    for piece in pieces {
        for it in piece.items.iter().map(ExportedEntry::exhibit) {
            let found = |broken| ExportFinding { place: piece.file.clone(), version: Some(it.version), broken };
            match &mut so_far {
                // Only archives may begin in the middle, because a page without its predecessors is an incomplete
                // export.
                None if it.version > 0 && !piece.is_archive => {
                    return Err(found(chain("the versions before it are missing")));
                }
                None => so_far = Some(VerifiedChain::begin(&it, keys).map_err(found)?),
                // Overlapping files must agree on the versions that both contain.
                Some(chain) if it.version < chain.next_version() => chain.again(&it, keys).map_err(found)?,
                Some(chain) => chain.follow(&it, keys).map_err(found)?,
            }
        }
    }
    let nothing = || ExportFinding { place: String::new(), version: None, broken: chain("it has no versions") };
    let so_far = so_far.ok_or_else(nothing)?;
    let end = so_far.next_version();
    // An archive does not say whether versions follow, so only a page can prove the end of a chain.
    let last: Vec<&ChainSegment> = pieces.iter().filter(|it| it.ends().1 + 1 == end && !it.is_archive).collect();
    if let Some(ChainSegment { file, .. }) = last.iter().find(|it| it.more) {
        return Err(ExportFinding {
            place: file.clone(),
            version: None,
            broken: chain("more pages follow, and they are missing"),
        });
    }
    Ok(CheckedChain { chain: so_far, is_whole: !last.is_empty(), receipts: BTreeSet::new() })
}
