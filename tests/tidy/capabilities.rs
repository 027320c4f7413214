//! Forbids imports upward between the capabilities of the service.

use std::collections::BTreeSet;

use super::circles::imported_paths;
use super::rules::{is_ours, module};
use super::source::File;

/// The capability folders, the lowest first. `crates/service/src/lib.rs` creates their structs in this order.
const ORDER: [&str; 17] = [
    "platform",
    "policies",
    "identity",
    "threads",
    "archive",
    "proposals",
    "branches",
    "writes",
    "log",
    "reviews",
    "interrupts",
    "policy_changes",
    "inbox",
    "episodes",
    "delivery",
    "operations",
    "audit",
];

/// Complains about each import of a capability from one below it. A call needs such an import: the struct of the higher
/// capability has to be a field or a parameter.
pub fn upward_imports(files: &[File]) -> Vec<String> {
    files
        .iter()
        .filter(|it| it.path.starts_with("crates/service/src/") && is_ours(it))
        .flat_map(upward_imports_of)
        .collect()
}

fn upward_imports_of(file: &File) -> Vec<String> {
    let own = module(file);
    // `crates/service/src/lib.rs` is above all of them.
    let Some(own) = own.first().filter(|it| rank(it).is_some()) else { return Vec::new() };
    let above: BTreeSet<String> = imported_paths(file)
        .into_iter()
        .filter_map(|it| it.into_iter().next())
        .filter(|it| rank(it) > rank(own))
        .collect();
    above.into_iter().map(|to| format!("{}: {own} must not use {to}, a capability above it", file.path)).collect()
}

fn rank(folder: &str) -> Option<usize> {
    ORDER.iter().position(|it| *it == folder)
}
