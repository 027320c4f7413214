//! Pure: no IO, no async, no clock, no randomness (both are arguments).

pub mod chain;
pub mod context;
pub mod delivery;
pub mod episode;
pub mod guard;
pub mod identity;
pub mod interrupts;
pub mod json;
pub mod keys;
pub mod log;
pub mod operations;
pub mod platform;
pub mod policy;
pub mod policy_changes;
pub mod primitives;
pub mod reviews;
mod schema;
#[cfg(test)]
mod test_random;
pub mod threads;
pub mod transition_rules;
pub mod writes;
