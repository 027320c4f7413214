//! Forbids import cycles, also between a file and the files in its folder. A file may declare its children without
//! importing from them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::rules::{in_crate, is_ours, module, squeezed};
use super::source::{File, RustSource};

/// The imports of each module, by names such as `chain::verify`.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Returns every cycle in a crate once, starting at the first of its modules.
pub fn circles(files: &[File]) -> Vec<String> {
    let mut crates: BTreeMap<Option<&str>, Vec<&File>> = BTreeMap::new();
    for file in files.iter().filter(|it| it.path.ends_with(".rs") && is_ours(it)) {
        crates.entry(in_crate(file)).or_default().push(file);
    }
    crates.values().flat_map(|it| circles_of(it)).collect()
}

fn circles_of(files: &[&File]) -> Vec<String> {
    let imports = imports(files);
    let around = imports.keys().filter_map(|from| way_back(&imports, from));
    let mut told = BTreeSet::new();
    around
        .filter(|way| told.insert(way.iter().cloned().collect::<BTreeSet<_>>()))
        .map(|way| {
            format!("{} -> {}: imports go in a circle; move what both need below both", way.join(" -> "), way[0])
        })
        .collect()
}

/// Returns the absolute path of everything that a file imports from its crate.
pub fn imported_paths(file: &File) -> Vec<Vec<String>> {
    let (own, code) = (module(file), squeezed(&RustSource::read(&file.text).code));
    paths(&code).into_iter().filter_map(|path| absolute(&own, &path)).collect()
}

fn imports(files: &[&File]) -> Imports {
    let names: BTreeSet<String> = files.iter().map(|it| module(it).join("::")).collect();
    let imported = |file: &&File| {
        let own = module(file);
        let modules = imported_paths(file)
            .into_iter()
            .filter_map(|path| (1..=path.len()).rev().map(|it| path[..it].join("::")).find(|it| names.contains(it)));
        let own = own.join("::");
        let modules = modules.filter(|it| *it != own).collect();
        (own, modules)
    };
    files.iter().map(imported).collect()
}

/// Returns every path in the crate that the code names. Groups are expanded.
fn paths(code: &str) -> Vec<Vec<String>> {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    let starts = ["crate::", "super::", "self::"].iter().flat_map(|start| code.match_indices(start));
    let whole = starts.filter(|(at, _)| !code[..*at].ends_with(is_word) && !code[..*at].ends_with("::"));
    whole.flat_map(|(at, _)| spread(&code[at..])).collect()
}

/// Expands `a::{b, c::d}` to a::b and a::c::d.
fn spread(path: &str) -> Vec<Vec<String>> {
    let word: String = path.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
    let Some(rest) = path[word.len()..].strip_prefix("::") else { return vec![vec![word]] };
    let below = match rest.strip_prefix('{') {
        Some(group) => parts(group).into_iter().flat_map(spread).collect(),
        None => spread(rest),
    };
    below.into_iter().map(|it| [word.clone()].into_iter().chain(it).collect()).collect()
}

/// Returns the parts of a group, after its brace.
fn parts(group: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
    for (at, it) in group.char_indices() {
        match it {
            '{' => depth += 1,
            '}' | ',' if depth == 0 => {
                parts.push(&group[from..at]);
                from = at + 1;
                if it == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => (),
        }
    }
    parts
}

/// Returns a path from the root of the crate.
fn absolute(own: &[&str], path: &[String]) -> Option<Vec<String>> {
    let up = path.iter().take_while(|it| *it == "super").count();
    let from = match path.first()?.as_str() {
        "crate" => &[][..],
        _ => own.get(..own.len().checked_sub(up)?)?,
    };
    let named = path.iter().filter(|it| !matches!(it.as_str(), "crate" | "super" | "self")).cloned();
    Some(from.iter().map(|it| (*it).to_owned()).chain(named).collect())
}

/// Returns the shortest cycle through a module.
fn way_back(imports: &Imports, from: &str) -> Option<Vec<String>> {
    let mut came: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = VecDeque::from([from]);
    while let Some(here) = next.pop_front() {
        for to in imports.get(here).into_iter().flatten() {
            if to == from {
                let back = std::iter::successors(Some(here), |it| came.get(it).copied());
                let mut way: Vec<String> = back.map(str::to_owned).collect();
                way.reverse();
                let first = (0..way.len()).min_by_key(|it| &way[*it])?;
                way.rotate_left(first);
                return Some(way);
            }
            if to != from && !came.contains_key(to.as_str()) {
                came.insert(to, here);
                next.push_back(to);
            }
        }
    }
    None
}
