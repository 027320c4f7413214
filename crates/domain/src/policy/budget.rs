//! Budgets: limits of requests, nodes and threads.

use crate::threads::usage::Cost;

/// One table of limits. A limit that is left out does not apply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) calls: Option<u64>,
    pub(super) tokens: Option<u64>,
    pub(super) cost: Option<Cost>,
    pub(super) context_tokens: Option<u64>,
    pub(super) then: OnBreach,
}

/// Result of exceeding a limit.
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
