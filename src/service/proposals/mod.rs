//! Proposals: the only way to change the state of a thread.

pub mod branch_hold;
pub(crate) mod context;
pub(crate) mod context_tokens;
pub mod denied_attempts;
pub mod hold;
pub mod join_merge;
pub mod join_request;
pub mod judge_queue;
pub mod outcome;
pub mod propose;
pub(crate) mod proposer;
pub mod reject;
pub mod rejection_list;
pub mod request;
pub mod rollback;
pub(crate) mod steps;
