//! Join requests, and the branches that they name.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_domain::json::pointer::Pointer;
use countersign_domain::primitives::id::BranchName;
use countersign_domain::threads::branch::{BRANCHES_MAX, JoinStatement, Strategy};
use countersign_domain::threads::join::Resolutions;
use countersign_domain::threads::join_carryover::JoinCarryover;
use countersign_domain::threads::rejected_request::{RejectedJoin, RejectedRequest};
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::Transition;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::platform::fair_queue::QueuePermit;

/// A request to join branches.
#[derive(Clone, Debug)]
pub struct JoinProposal {
    /// The branches, in the order of the request.
    pub(crate) branches: Vec<BranchName>,
    pub(crate) strategy: Strategy,
    /// The resolutions of conflicts, as the request contains them.
    pub(crate) resolve: Option<Value>,
    pub(crate) resolutions: Resolutions,
    pub(crate) source: JoinSource,
    /// The permit of the fair queue.
    pub(crate) turn: Option<QueuePermit>,
}

/// The versions of the branches that a join uses.
#[derive(Clone, Debug)]
pub(crate) enum JoinSource {
    /// The current versions. They are not loaded yet.
    Named,
    /// The versions of an earlier statement, even if the branches have changed since then.
    Stated(JoinStatement, JoinCarryover),
    Found(Arc<GatheredBranches>),
}

#[derive(Clone, Debug)]
pub(crate) struct GatheredBranches {
    pub(crate) joining: JoinStatement,
    pub(crate) carried: JoinCarryover,
    /// The states, in the order of the request.
    pub(crate) states: Vec<Value>,
    /// Every leaf that a node set on a branch, even to the same value. Otherwise a node could confirm a guess
    /// of a value that it may not read.
    pub(crate) set: BTreeSet<Pointer>,
    /// The branches, which must be unchanged at the commit.
    pub(crate) rows: Vec<Stored<Thread>>,
}

impl JoinProposal {
    pub fn read(branches: Vec<BranchName>, strategy: Strategy, resolve: Option<Value>) -> Result<Self> {
        if branches.is_empty() || branches.len() > BRANCHES_MAX as usize {
            return Err(Error::invalid("/branches", format!("a join needs 1 to {BRANCHES_MAX} branches")));
        }
        if branches.iter().collect::<BTreeSet<_>>().len() < branches.len() {
            return Err(Error::invalid("/branches", "a branch occurs twice. Name each branch once"));
        }
        if resolve.is_some() != (strategy == Strategy::Explicit) {
            return Err(Error::invalid(
                "/resolve",
                "the strategy `explicit` requires `resolve`, and no other strategy allows it",
            ));
        }
        let resolutions = resolve.as_ref().map(Resolutions::read).transpose();
        let resolutions = resolutions.map_err(|it| Error::invalid(&format!("/resolve{}", it.pointer), it.detail))?;
        let resolutions = resolutions.unwrap_or_default();
        Ok(Self { branches, strategy, resolve, resolutions, source: JoinSource::Named, turn: None })
    }

    /// Returns the request of a stored join, with its branches as they were then.
    pub(crate) fn of(transition: &Transition) -> Option<Self> {
        let carried = transition.carried.as_deref()?.clone();
        Self::asked(&transition.patch, transition.statement.join.clone()?, carried)
    }

    /// Returns the request of a rejected join.
    pub(crate) fn of_kept(request: &RejectedRequest) -> Option<Self> {
        let RejectedJoin { joining, carried } = request.join.as_deref()?.clone();
        Self::asked(&request.content, joining, carried)
    }

    fn asked(content: &Value, joining: JoinStatement, carried: JoinCarryover) -> Option<Self> {
        let branches = serde_json::from_value(content.get("branches")?.clone()).ok()?;
        let strategy = serde_json::from_value(content.get("strategy")?.clone()).ok()?;
        let asked = Self::read(branches, strategy, content.get("resolve").cloned()).ok()?;
        Some(Self { source: JoinSource::Stated(joining, carried), ..asked })
    }

    /// Returns the content that the digest of the request covers.
    pub(crate) fn content(&self) -> Value {
        let mut content = self.told();
        if let Some(resolve) = &self.resolve {
            content["resolve"] = resolve.clone();
        }
        content
    }

    /// Returns the resolutions of conflicts: patch operations that set values at paths of the state.
    pub(crate) const fn resolve(&self) -> Option<&Value> {
        self.resolve.as_ref()
    }

    /// Returns the request without state values and paths. The paths in `resolve` may be redacted.
    pub(crate) fn told(&self) -> Value {
        json!({"branches": self.branches, "strategy": self.strategy})
    }

    pub(crate) fn found(&self) -> Result<&Arc<GatheredBranches>> {
        match &self.source {
            JoinSource::Found(found) => Ok(found),
            JoinSource::Named | JoinSource::Stated(..) => Err(Error::Broken("a join without loaded branches")),
        }
    }
}
