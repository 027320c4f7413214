//! The ratchet: a committed count for each area, which may only fall.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// AllowedCounts by table (a source kind, or `names`) and by area. An area that is not listed is at 0.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct AllowedCounts(pub BTreeMap<String, BTreeMap<String, usize>>);

/// The table of type names. Its counts never rise, whatever moved.
pub const NAMES: &str = "names";

const HEADER: &str = "\
# Sentences that break a rule of STYLE.md, by source kind and area, and type names, by the kind of problem.
# A count may only fall. After it fell: RENEW=1 cargo test --test prose
# If text moved to another area and the total did not rise: RENEW=1 MOVED=1 cargo test --test prose
# An area that is not listed has to be clean.
";

impl AllowedCounts {
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text).map(Self)
    }

    pub fn get(&self, kind: &str, area: &str) -> usize {
        self.0.get(kind).and_then(|it| it.get(area)).copied().unwrap_or_default()
    }

    pub fn add(&mut self, kind: &str, area: &str, count: usize) {
        *self.0.entry(kind.to_owned()).or_default().entry(area.to_owned()).or_default() += count;
    }

    pub fn total(&self, kind: &str) -> usize {
        self.0.get(kind).into_iter().flat_map(BTreeMap::values).sum()
    }

    /// Counts the sentences of all kinds. A page that becomes a specification changes its kind.
    fn sentences(&self) -> usize {
        self.0.keys().filter(|it| *it != NAMES).map(|it| self.total(it)).sum()
    }

    /// Writes the file. Areas at 0 are left out.
    pub fn text(&self) -> String {
        let mut text = HEADER.to_owned();
        for (kind, areas) in &self.0 {
            if self.total(kind) > 0 {
                writeln!(text, "\n[{kind}]").unwrap();
            }
            for (area, count) in areas.iter().filter(|it| *it.1 > 0) {
                writeln!(text, "{area:?} = {count}").unwrap();
            }
        }
        text
    }
}

/// An area whose count is not the committed one.
#[derive(Debug, PartialEq, Eq)]
pub struct CountChange {
    pub kind: String,
    pub area: String,
    pub allowed: usize,
    pub found: usize,
}

/// Returns each area that differs from the committed counts.
pub fn changes(allowed: &AllowedCounts, found: &AllowedCounts) -> Vec<CountChange> {
    let keys = |it: &AllowedCounts| -> Vec<(String, String)> {
        it.0.iter().flat_map(|(kind, areas)| areas.keys().map(|area| (kind.clone(), area.clone()))).collect()
    };
    let mut all = [keys(allowed), keys(found)].concat();
    all.sort();
    all.dedup();
    let change = |(kind, area): (String, String)| {
        let (allowed, found) = (allowed.get(&kind, &area), found.get(&kind, &area));
        CountChange { kind, area, allowed, found }
    };
    all.into_iter().map(change).filter(|it| it.allowed != it.found).collect()
}

/// Returns the counts to commit: those that fell. With `moved`, an area may rise if the total over all areas does not.
pub fn renewed(allowed: &AllowedCounts, found: &AllowedCounts, moved: TextMoved) -> AllowedCounts {
    let all = moved == TextMoved::Yes && found.sentences() <= allowed.sentences();
    let mut new = AllowedCounts::default();
    for (kind, areas) in &found.0 {
        for (area, count) in areas {
            let committed = if all && kind != NAMES { *count } else { (*count).min(allowed.get(kind, area)) };
            new.add(kind, area, committed);
        }
    }
    new
}

/// Whether text moved from one area to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextMoved {
    Yes,
    No,
}
