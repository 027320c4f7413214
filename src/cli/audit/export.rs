//! `audit --export`: replays exported files with published keys and nothing else. No gateway, no network, no database.

mod files;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::super::output::CommandOutput;
use super::super::{CliError, CommandExit};
use crate::domain::chain::verify_export::{CrossChainCheck, ExportError, ExportedEntry, GenuineReceipt, VerifiedChain};
use crate::domain::keys::PublicKeys;
use crate::domain::primitives::id::{Jti, ThreadId};
use files::{ChainSegment, ExportFiles, TrustedKeys};

/// Something that is not so.
struct ExportFinding {
    place: String,
    version: Option<u64>,
    broken: ExportError,
}

/// A chain, and what is known of it besides.
struct CheckedChain {
    chain: VerifiedChain,
    /// The last of its pages says that no more follow.
    is_whole: bool,
    /// Receipts of its approvals.
    receipts: BTreeSet<Jti>,
}

/// What was found of everything.
#[derive(Default)]
struct AuditedExport {
    findings: Vec<ExportFinding>,
    /// What could not be told, and keeps the answer from being yes.
    doubts: Vec<String>,
    /// What another file would have told of what is here.
    unseen: Vec<String>,
    passed_over: Vec<String>,
    chains: BTreeMap<ThreadId, CheckedChain>,
}

/// Yes if all of it holds, no with a list of what does not, could not tell where something is missing that would.
pub fn run(folder: &Path, jwks: Option<&Path>, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    let keys = TrustedKeys::read(folder, jwks)?;
    let mut audited = AuditedExport::default();
    audited.doubts.extend(keys.doubt());
    let files = ExportFiles::read(folder, &keys, &mut audited)?;
    audited.replay(files.pieces, &keys.believed);
    audited.hold_issuers();
    audited.hold_branches();
    audited.hold_receipts(files.receipts, &keys.believed);
    if audited.chains.is_empty() && audited.findings.is_empty() && audited.doubts.is_empty() {
        return Err(CliError::Given(format!(
            "{} holds no chain: save the pages of `GET /v1/threads/THREAD/chain` there, each as a file that ends in .json",
            folder.display()
        )));
    }
    out.answer(report::text(&audited, &keys), || report::json(&audited, &keys))?;
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
            pieces.sort_by_key(ChainSegment::ends);
            match replayed(&pieces, keys) {
                Ok(it) if it.chain.first() > 0 => {
                    let before = it.chain.first() - 1;
                    self.doubts.push(format!("{thread}: versions 0 to {before} are not here, nor what they owed"));
                    self.chains.insert(thread, it);
                }
                Ok(it) => _ = self.chains.insert(thread, it),
                Err(finding) => self.findings.push(finding),
            }
        }
    }

    /// Where the keys do not say whose they are, the chains do, and all of them the same.
    fn hold_issuers(&mut self) {
        let mut issuers = self.chains.iter().map(|(thread, it)| (thread, &it.chain.issuer));
        let first = issuers.next();
        let another = issuers.find(|(_, issuer)| first.is_some_and(|it| it.1 != *issuer));
        if let Some((thread, _)) = another {
            let broken =
                ExportError { code: "issuer_mismatch", what: "another gateway signed it than another thread here" };
            self.find(thread.to_string(), None, broken);
        }
    }

    /// What branches say of each other's threads, where both are here.
    fn hold_branches(&mut self) {
        let (mut findings, mut unseen) = (Vec::new(), Vec::new());
        for (thread, CheckedChain { chain, .. }) in &self.chains {
            let mut hold = |other: &ThreadId, held: Option<Result<CrossChainCheck, ExportError>>| match held {
                Some(Ok(CrossChainCheck::Agreed)) => {}
                Some(Err(broken)) => findings.push(ExportFinding { place: thread.to_string(), version: None, broken }),
                Some(Ok(CrossChainCheck::NotSeen)) => {
                    unseen.push(format!("the version of {other} that {thread} is made of"))
                }
                None => unseen.push(format!("{other}, which {thread} is made of")),
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

    fn hold_receipts(&mut self, receipts: Vec<(String, String)>, keys: &PublicKeys) {
        for (file, token) in receipts {
            let GenuineReceipt { receipt, certain } = match GenuineReceipt::read(&token, keys) {
                Ok(it) => it,
                Err(broken) => {
                    self.find(file, None, broken);
                    continue;
                }
            };
            let Some(replayed) = self.chains.get_mut(&receipt.sub) else {
                self.doubts.push(format!("{file}: the chain of its thread is not here, or does not hold"));
                continue;
            };
            match replayed.chain.receipt(&receipt) {
                Err(broken) => self.find(file, None, broken),
                Ok(CrossChainCheck::NotSeen) => {
                    self.doubts.push(format!("{file}: the version that it approves is not here"))
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
                None if it.version > 0 && !piece.is_archive => {
                    return Err(found(chain("the versions before it are not here")));
                }
                None => so_far = Some(VerifiedChain::begin(&it, keys).map_err(found)?),
                Some(chain) if it.version < chain.next_version() => chain.again(&it, keys).map_err(found)?,
                Some(chain) => chain.follow(&it, keys).map_err(found)?,
            }
        }
    }
    let nothing = || ExportFinding { place: String::new(), version: None, broken: chain("it has no versions") };
    let so_far = so_far.ok_or_else(nothing)?;
    let end = so_far.next_version();
    let last: Vec<&ChainSegment> = pieces.iter().filter(|it| it.ends().1 + 1 == end && !it.is_archive).collect();
    if let Some(ChainSegment { file, .. }) = last.iter().find(|it| it.more) {
        return Err(ExportFinding { place: file.clone(), version: None, broken: chain("there are more pages") });
    }
    Ok(CheckedChain { chain: so_far, is_whole: !last.is_empty(), receipts: BTreeSet::new() })
}
