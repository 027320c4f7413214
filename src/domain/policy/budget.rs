//! Budgets: what a policy lets requests, nodes and threads use.

use crate::domain::threads::usage::Cost;

/// One table of bounds. What is left out is not bounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) calls: Option<u64>,
    pub(super) tokens: Option<u64>,
    pub(super) cost: Option<Cost>,
    pub(super) context_tokens: Option<u64>,
    pub(super) then: OnBreach,
}

/// What follows if one is exceeded.
#[derive(Clone, Copy, Debug)]
pub(super) enum OnBreach {
    Hold,
    Deny,
}

/// `[budgets]`
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budgets {
    pub(super) call: Option<Budget>,
    pub(super) node: Option<Budget>,
    pub(super) thread: Option<Budget>,
}
