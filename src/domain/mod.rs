//! Pure: no IO, no async, no clock, no randomness. Both are arguments.

pub mod json;
