//! Writes: reservations, leases and fencing tokens.

pub mod write;
