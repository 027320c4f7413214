//! Policy change requests: opens them, counts their votes, and activates the approved policy.

pub mod activate;
pub mod dry_run;
pub mod replay;
pub mod requests;
