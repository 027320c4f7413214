//! Branches: creates a child thread from a version and lists the branches of a thread.

pub mod fork;
pub mod list;
