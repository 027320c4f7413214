//! The walkthroughs of ARCHITECTURE.md name functions and types with their files. Each has to be there.

use std::collections::BTreeMap;

use super::source::File;

/// Complains about each "`name` in `src/file.rs`" and "`name` (`src/file.rs`)" whose file does not define the name.
pub fn stale_names(page: &str, files: &[File]) -> Vec<String> {
    let texts: BTreeMap<&str, &str> = files.iter().map(|it| (it.path.as_str(), it.text.as_str())).collect();
    let spans: Vec<&str> = page.split('`').collect();
    let named = spans.windows(3).skip(1).step_by(2);
    named.filter_map(|it| complaint(it, &texts)).collect()
}

fn complaint(spans: &[&str], texts: &BTreeMap<&str, &str>) -> Option<String> {
    let [name, between, path] = spans else { return None };
    let joined = [" in ", " ("].contains(between)
        && (path.starts_with("src/") || path.starts_with("crates/"))
        && path.ends_with(".rs");
    let name = name.rsplit("::").next().filter(|it| joined && !it.contains(['/', '.', ' ']))?;
    let defined = |text: &&str| {
        ["fn", "struct", "enum", "trait"].iter().any(|kind| {
            let defines = |after: &str| !after.starts_with(|it: char| it.is_alphanumeric() || it == '_');
            text.match_indices(&format!("{kind} {name}")).any(|(at, it)| defines(&text[at + it.len()..]))
        })
    };
    (!texts.get(path).is_some_and(defined)).then(|| format!("ARCHITECTURE.md: {path} does not define {name}"))
}
