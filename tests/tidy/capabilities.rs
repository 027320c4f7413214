//! Forbids imports upward between the capabilities of the service.

use std::collections::BTreeSet;

use super::circles::imported_paths;
use super::rules::{is_ours, module};
use super::source::File;

/// The capability folders, the lowest first. `src/service/mod.rs` creates their structs in this order.
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
    files.iter().filter(|it| it.path.starts_with("src/service/") && is_ours(it)).flat_map(upward_imports_of).collect()
}

fn upward_imports_of(file: &File) -> Vec<String> {
    let own = module(file);
    // `src/service/mod.rs` is above all of them.
    let Some(own) = own.get(1).filter(|it| rank(it).is_some()) else { return Vec::new() };
    let named = imported_paths(file).into_iter().filter(|it| it.first().is_some_and(|it| it == "service"));
    let above: BTreeSet<String> =
        named.filter_map(|it| it.into_iter().nth(1)).filter(|it| rank(it) > rank(own)).collect();
    above.into_iter().map(|to| format!("{}: {own} must not use {to}, a capability above it", file.path)).collect()
}

fn rank(folder: &str) -> Option<usize> {
    ORDER.iter().position(|it| *it == folder)
}
