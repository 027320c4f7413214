//! Tool permissions of a policy, by tool name.

use std::collections::BTreeMap;
use std::fmt;

use super::pattern_set::Patterns;
use super::tool_description::ToolDescription;
use crate::primitives::id::ToolName;
use crate::primitives::named_enum::named_enum;

/// A glob for names of tools. `*` is any run of characters, dots included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ToolGlob(String);

/// A list of globs. An empty list allows no tool.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ToolGlobs(Vec<ToolGlob>);

named_enum! {
    /// The effect of a call whose tool has another definition than before.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub enum ChangedTools {
        #[default]
        Refuse = "refuse",
        /// Reviewers decide about each call.
        Hold = "hold",
    }
}

/// `[tools]`
#[derive(Debug, Default)]
pub(super) struct ToolPolicy {
    pub(super) allow: Option<ToolGlobs>,
    pub(super) deny: ToolGlobs,
    pub(super) changed: ChangedTools,
    /// Paths that are redacted in arguments.
    pub(super) hidden: Patterns,
    /// How reviewers see the calls of each described tool.
    pub(super) described: BTreeMap<ToolName, ToolDescription>,
}

impl ToolGlob {
    /// Parses a glob. The error is for the policy's author.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        // A glob that no valid name can match is a mistake of the author.
        let stands_for_name = text.replace('*', "x");
        match ToolName::try_from(stands_for_name) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => Err(format!("{error}; `*` matches any number of them")),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether some name matches both globs. Beyond the limit of steps the answer is yes.
    fn meets(&self, other: &Self, steps: &mut GlobSteps) -> bool {
        let (one, other) = (self.0.as_bytes(), other.0.as_bytes());
        if !steps.take((one.len() + 1) * (other.len() + 1)) {
            return true;
        }
        // `below[j]` is whether the rest of `one` meets the rest of `other` from `j`.
        let mut below = vec![false; other.len() + 1];
        for i in (0..=one.len()).rev() {
            let mut row = vec![false; other.len() + 1];
            for j in (0..=other.len()).rev() {
                row[j] = match (one.get(i), other.get(j)) {
                    (None, None) => true,
                    // A `*` matches nothing, or takes the next byte of the other glob.
                    (Some(b'*'), next) => below[j] || (next.is_some() && row[j + 1]),
                    (next, Some(b'*')) => row[j + 1] || (next.is_some() && below[j]),
                    (Some(a), Some(b)) => a == b && below[j + 1],
                    (None, Some(_)) | (Some(_), None) => false,
                };
            }
            below = row;
        }
        below[0]
    }

    /// Scans both texts once. A `*` first matches as little as possible, and more only if the rest does not match.
    fn matches(&self, name: &str) -> bool {
        let (glob, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut at_glob, mut at_name) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while at_name < name.len() {
            match glob.get(at_glob) {
                Some(b'*') => {
                    star = Some((at_glob, at_name));
                    at_glob += 1;
                }
                Some(byte) if *byte == name[at_name] => {
                    at_glob += 1;
                    at_name += 1;
                }
                _ => match &mut star {
                    // Only the last `*` takes more characters, so the work is at most the product of both lengths.
                    Some((back, taken)) => {
                        *taken += 1;
                        (at_glob, at_name) = (*back + 1, *taken);
                    }
                    None => return false,
                },
            }
        }
        // A `*` at the end may match nothing.
        glob[at_glob..].iter().all(|it| *it == b'*')
    }
}

impl fmt::Display for ToolGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The steps that comparing globs may still take.
pub(super) struct GlobSteps(usize);

/// Enough for thousands of normal names.
const GLOB_STEPS_MAX: usize = 20_000_000;

impl Default for GlobSteps {
    fn default() -> Self {
        Self(GLOB_STEPS_MAX)
    }
}

impl GlobSteps {
    fn take(&mut self, steps: usize) -> bool {
        let left = self.0.checked_sub(steps);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

impl ToolGlobs {
    pub(super) fn iter(&self) -> std::slice::Iter<'_, ToolGlob> {
        self.0.iter()
    }

    /// Returns whether some name matches the glob and the list.
    pub(super) fn meets(&self, glob: &ToolGlob, steps: &mut GlobSteps) -> bool {
        self.0.iter().any(|it| it.meets(glob, steps))
    }

    /// Returns whether the list has exactly this name.
    pub(super) fn names(&self, name: &ToolName) -> bool {
        self.0.iter().any(|glob| glob.0 == name.as_str())
    }

    /// Returns the names in the list, without its globs.
    pub(super) fn exact(&self) -> impl Iterator<Item = ToolName> {
        let exact = self.0.iter().filter(|it| !it.0.contains('*'));
        exact.filter_map(|it| ToolName::try_from(it.0.clone()).ok())
    }

    pub(super) fn covers(&self, name: &ToolName) -> bool {
        self.0.iter().any(|glob| glob.matches(name.as_str()))
    }
}

impl From<Vec<ToolGlob>> for ToolGlobs {
    fn from(globs: Vec<ToolGlob>) -> Self {
        Self(globs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_run_of_characters() {
        for (glob, matching, not) in [
            ("search", vec!["search"], vec!["search2", "Search", "a.search"]),
            ("crm.*", vec!["crm.a", "crm.a.b", "crm."], vec!["crm", "xcrm.a"]),
            ("*.delete", vec!["a.delete", "a.b.delete"], vec!["delete", "a.delete.x"]),
            ("*", vec!["a", "a.b:c-d_e"], vec![]),
            ("a*b*c", vec!["abc", "aXbYc", "abbc", "abcbc"], vec!["ab", "ac", "abcd"]),
            ("a**b", vec!["ab", "axb"], vec!["a", "b"]),
        ] {
            let it = ToolGlob::new(glob).unwrap();
            assert!(matching.iter().all(|name| it.matches(name)), "{glob}");
            assert!(not.iter().all(|name| !it.matches(name)), "{glob}");
        }
    }

    #[test]
    fn a_glob_that_no_name_could_match_is_refused() {
        for glob in ["", " ", "a b", "crm/*", "[a-z]", "ä*", ".a"] {
            assert!(ToolGlob::new(glob).is_err(), "{glob:?}");
        }
    }

    #[test]
    fn globs_meet_if_one_name_matches_both() {
        let meet = |one: &str, other: &str| {
            let (one, other) = (ToolGlob::new(one).unwrap(), ToolGlob::new(other).unwrap());
            let there = one.meets(&other, &mut GlobSteps::default());
            assert_eq!(there, other.meets(&one, &mut GlobSteps::default()), "{one} {other}");
            there
        };
        for (one, other) in [
            ("a", "a"),
            ("a*", "ab"),
            ("crm.*", "*.delete"),
            ("*", "x"),
            ("a*c", "ab*"),
            ("files:*", "files:write_file"),
        ] {
            assert!(meet(one, other), "{one} {other}");
        }
        for (one, other) in [("a", "b"), ("refund", "refnd"), ("crm.*", "mail.*"), ("a*c", "*d"), ("files:*", "files")]
        {
            assert!(!meet(one, other), "{one} {other}");
        }
        let stars = ToolGlob::new(&"a*".repeat(60)).unwrap();
        assert!(stars.meets(&stars, &mut GlobSteps(1)), "beyond the steps, a tool counts as allowed");
    }

    #[test]
    fn a_glob_is_matched_in_bounded_steps() {
        let glob = ToolGlob::new(&format!("{}b", "a*".repeat(60))).unwrap();
        assert!(!glob.matches(&"a".repeat(128)), "in no time, whatever the stars");
    }
}
