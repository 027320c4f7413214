//! Pure: no IO, no async, no clock, no randomness (both are arguments).

pub mod account;
pub mod amendment;
pub mod chain;
pub mod edit;
pub mod enrolment;
pub mod event;
pub mod flow;
pub mod guard;
pub mod halt;
pub mod id;
pub mod insight;
pub mod json;
pub mod kept;
pub mod keys;
pub mod passkey;
pub mod policy;
pub mod review;
mod schema;
pub mod secret;
pub mod thread;
pub mod time;
pub mod tool;
pub mod transition;
pub mod transition_rules;
pub mod tries;
pub mod usage;
pub mod write;
