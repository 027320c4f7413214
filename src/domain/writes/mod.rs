//! Writes: reservation, lease and fence.

pub mod write;
