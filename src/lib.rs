//! Countersign: the second signature that makes an order valid.

pub mod clock;
pub mod domain;
pub mod keyring;
pub mod random;
pub mod store;
