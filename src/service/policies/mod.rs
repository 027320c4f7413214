//! Activating policies, and caching compiled ones.

pub mod catalog;
pub mod policy_cache;
pub(crate) mod reason_masking;
