//! JSON for machines: one file for each resource.

pub mod problem;
