//! Halts.

pub mod halt;
