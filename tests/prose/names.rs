//! Type names: how many are shared by several types, and which should not exist.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

/// Names that say nothing about the type. Rename the type after what it contains.
pub const FORBIDDEN: [&str; 11] =
    ["Asked", "Told", "Standing", "Place", "Found", "Seen", "Part", "Looked", "Whence", "Wish", "Heard"];

/// The count of shared names that the project aims for.
pub const SHARED_TARGET: usize = 150;

/// The places of each type by its name.
pub type DeclaredTypes = BTreeMap<String, Vec<String>>;

/// Adds the types that a file declares: structs, enums, traits, unions, and aliases outside blocks.
pub fn declared(path: &str, text: &str, all: &mut DeclaredTypes) {
    static TYPE: LazyLock<Regex> = LazyLock::new(|| {
        let keyword = r"[ \t]*(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum|trait|union)|(?:pub(?:\([^)]*\))?\s+)?type";
        Regex::new(&format!(r"^(?:{keyword})\s+([A-Z]\w*)")).unwrap()
    });
    for (at, line) in text.lines().enumerate() {
        if let Some(name) = TYPE.captures(line) {
            all.entry(name[1].to_owned()).or_default().push(format!("{path}:{}", at + 1));
        }
    }
}

/// Returns the names that more than one type has.
pub fn shared(all: &DeclaredTypes) -> Vec<(&String, &Vec<String>)> {
    all.iter().filter(|it| it.1.len() > 1).collect()
}

/// Returns the places of types with a forbidden name.
pub fn forbidden(all: &DeclaredTypes) -> Vec<(&str, &String)> {
    FORBIDDEN.iter().flat_map(|name| all.get(*name).into_iter().flatten().map(|it| (*name, it))).collect()
}
