//! Compares the chains of branches with those of their parent threads.

use super::{CrossChainCheck, ExportError, VerifiedChain, VerifiedVersion, broken, say};
use crate::chain::entry::CommitGate;
use crate::primitives::id::ThreadId;
use crate::threads::branch::JoinedBranch;

impl VerifiedChain {
    /// Checks that a branch was made from a head of this chain, and sets `owes` if that head does.
    pub fn branch(&self, branch: &Self) -> Result<CrossChainCheck, ExportError> {
        let elsewhere = broken("branch", "it does not start at the head that it names");
        let fork = branch.fork.as_ref().ok_or(elsewhere)?;
        say(branch.issuer == self.issuer, "issuer_mismatch", "another gateway signed it")?;
        say(branch.flow == self.flow, "flow_mismatch", "it is of another flow")?;
        say(fork.thread == self.thread, elsewhere.code, elsewhere.what)?;
        // The export of the parent may end before the fork.
        if !self.reaches(fork.version) {
            return Ok(CrossChainCheck::NotSeen);
        }
        let head = self.at(fork.transition).filter(|(version, _)| *version == fork.version);
        let (_, head) = head.ok_or(elsewhere)?;
        let owes = branch.links.first().is_some_and(|it| it.owes);
        say(owes || !head.owes, "owes", "it drops an approval that its first head still requires")?;
        Ok(CrossChainCheck::Agreed)
    }

    /// Returns every joined branch, with the claims of its join.
    pub fn joined(&self) -> impl Iterator<Item = JoinLink<'_>> {
        let joins = self.links.iter().filter_map(|it| Some((it, it.join.as_ref()?)));
        joins.flat_map(move |(link, join)| join.branches.iter().map(move |named| JoinLink { into: self, link, named }))
    }
}

/// A branch as a join names it.
pub struct JoinLink<'c> {
    into: &'c VerifiedChain,
    link: &'c VerifiedVersion,
    named: &'c JoinedBranch,
}

impl JoinLink<'_> {
    /// Returns the thread whose chain decides.
    pub const fn thread(&self) -> &ThreadId {
        &self.named.thread
    }

    /// Checks three claims of a join. The joined transition is a version of this branch. The branch was made from the
    /// head of the join. If the joined version has `owes`, the join has it too or was approved. If the branch's chain is
    /// incomplete, the version may be a later one.
    pub fn of(&self, branch: &VerifiedChain, is_whole: bool) -> Result<CrossChainCheck, ExportError> {
        say(branch.issuer == self.into.issuer, "issuer_mismatch", "another gateway signed it")?;
        say(branch.flow == self.into.flow, "flow_mismatch", "it is of another flow")?;
        // An archive without version 0 does not contain the fork.
        if branch.first > 0 {
            return Ok(CrossChainCheck::NotSeen);
        }
        let JoinLink { into, link, named } = self;
        let of_head = branch
            .fork
            .as_ref()
            .is_some_and(|it| it.thread == into.thread && Some(it.transition) == link.parent && it.name == named.name);
        say(of_head, "join", "a branch of another head was joined")?;
        let Some((_, joined)) = branch.at(named.transition) else {
            say(!is_whole, "join", "the joined transition is not in its branch")?;
            return Ok(CrossChainCheck::NotSeen);
        };
        // An approval of the join covers the branch too.
        let settled = !joined.owes || link.owes || matches!(link.gate, CommitGate::Approved { .. });
        say(settled, "owes", "it drops an approval that a joined branch still requires")?;
        Ok(CrossChainCheck::Agreed)
    }
}
