//! Threads, transitions, branches, joins and archived segments.

pub mod approval_request;
pub mod archive;
pub mod branch;
pub mod flow;
pub mod join;
pub mod join_carryover;
pub mod rejected_request;
pub mod step;
pub mod thread;
pub mod tool_call;
pub mod transition;
pub mod unapproved_policies;
pub mod usage;
