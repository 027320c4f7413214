//! A join: what is to be joined, and what was found of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::domain::json::pointer::Pointer;
use crate::domain::primitives::id::BranchName;
use crate::domain::threads::branch::{BRANCHES_MAX, JoinStatement, Strategy};
use crate::domain::threads::join::Resolutions;
use crate::domain::threads::join_carryover::JoinCarryover;
use crate::domain::threads::rejected_request::{RejectedJoin, RejectedRequest};
use crate::domain::threads::thread::Thread;
use crate::domain::threads::transition::Transition;
use crate::service::error::{Error, Result};
use crate::service::platform::fair_queue::QueuePermit;
use crate::store::record::Stored;

/// What is to be joined, and what was found of it.
#[derive(Clone, Debug)]
pub struct JoinProposal {
    /// The branches, in the order in which they were named.
    pub(in crate::service) branches: Vec<BranchName>,
    pub(in crate::service) strategy: Strategy,
    /// What was said of conflicts, as sent.
    pub(in crate::service) resolve: Option<Value>,
    pub(in crate::service) resolutions: Resolutions,
    pub(in crate::service) source: JoinSource,
    /// Its asker's turn to have it looked at.
    pub(in crate::service) turn: Option<QueuePermit>,
}

/// Of what the branches had come to.
#[derive(Clone, Debug)]
pub(in crate::service) enum JoinSource {
    /// As they stand; nobody has looked yet.
    Named,
    /// As it was stated before, whatever became of them since.
    Stated(JoinStatement, JoinCarryover),
    Found(Arc<GatheredBranches>),
}

#[derive(Clone, Debug)]
pub(in crate::service) struct GatheredBranches {
    pub(in crate::service) joining: JoinStatement,
    pub(in crate::service) carried: JoinCarryover,
    /// In the order in which the branches were named.
    pub(in crate::service) states: Vec<Value>,
    /// Every leaf that somebody set on a branch, to whatever it was: a value that was guessed right is no change.
    pub(in crate::service) set: BTreeSet<Pointer>,
    /// The branches that must still stand like that when it is committed.
    pub(in crate::service) rows: Vec<Stored<Thread>>,
}

impl JoinProposal {
    pub fn read(branches: Vec<BranchName>, strategy: Strategy, resolve: Option<Value>) -> Result<Self> {
        if branches.is_empty() || branches.len() > BRANCHES_MAX as usize {
            return Err(Error::invalid("/branches", format!("name 1 to {BRANCHES_MAX} branches")));
        }
        if branches.iter().collect::<BTreeSet<_>>().len() < branches.len() {
            return Err(Error::invalid("/branches", "name each branch once"));
        }
        if resolve.is_some() != (strategy == Strategy::Explicit) {
            return Err(Error::invalid("/resolve", "`resolve` belongs to the strategy `explicit`, and to no other"));
        }
        let resolutions = resolve.as_ref().map(Resolutions::read).transpose();
        let resolutions = resolutions.map_err(|it| Error::invalid(&format!("/resolve{}", it.pointer), it.detail))?;
        let resolutions = resolutions.unwrap_or_default();
        Ok(Self { branches, strategy, resolve, resolutions, source: JoinSource::Named, turn: None })
    }

    /// What was asked for by a stored join, on what its branches had come to then.
    pub(in crate::service) fn of(transition: &Transition) -> Option<Self> {
        let carried = transition.carried.as_deref()?.clone();
        Self::asked(&transition.patch, transition.statement.join.clone()?, carried)
    }

    /// The same of one that was turned away.
    pub(in crate::service) fn of_kept(request: &RejectedRequest) -> Option<Self> {
        let RejectedJoin { joining, carried } = request.join.as_deref()?.clone();
        Self::asked(&request.content, joining, carried)
    }

    fn asked(content: &Value, joining: JoinStatement, carried: JoinCarryover) -> Option<Self> {
        let branches = serde_json::from_value(content.get("branches")?.clone()).ok()?;
        let strategy = serde_json::from_value(content.get("strategy")?.clone()).ok()?;
        let asked = Self::read(branches, strategy, content.get("resolve").cloned()).ok()?;
        Some(Self { source: JoinSource::Stated(joining, carried), ..asked })
    }

    /// What is hashed as the request's content.
    pub(in crate::service) fn content(&self) -> Value {
        let mut content = self.told();
        if let Some(resolve) = &self.resolve {
            content["resolve"] = resolve.clone();
        }
        content
    }

    /// What was said of conflicts: operations that put values at places of a state.
    pub(in crate::service) const fn resolve(&self) -> Option<&Value> {
        self.resolve.as_ref()
    }

    /// The same without values of states: the places of `resolve` are those of a state, and some are hidden.
    pub(in crate::service) fn told(&self) -> Value {
        json!({"branches": self.branches, "strategy": self.strategy})
    }

    pub(in crate::service) fn found(&self) -> Result<&Arc<GatheredBranches>> {
        match &self.source {
            JoinSource::Found(found) => Ok(found),
            JoinSource::Named | JoinSource::Stated(..) => Err(Error::Broken("a join whose branches nobody looked at")),
        }
    }
}
