//! Pure: no IO, no async, no clock, no randomness (both are arguments).

pub mod account;
pub mod id;
pub mod keys;
pub mod secret;
pub mod time;
