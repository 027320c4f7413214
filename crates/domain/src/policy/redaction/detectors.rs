//! Detectors: patterns that find secrets anywhere in a value. They protect against accidents. They do not stop an
//! agent that disguises a secret on purpose.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use regex::Regex;
use serde_json::Value;

use crate::json::canonical::canonical;

/// Detector for one kind of secret.
#[derive(Clone, PartialEq)]
struct Detector {
    name: String,
    how: DetectorKind,
}

#[derive(Clone)]
enum DetectorKind {
    Pattern(Regex),
    /// Grouped digits with the check digit of a card number.
    CardNumber,
}

impl PartialEq for DetectorKind {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            // `Regex` has no equality, and equal texts compile to equal patterns.
            (Self::Pattern(one), Self::Pattern(other)) => one.as_str() == other.as_str(),
            (Self::CardNumber, Self::CardNumber) => true,
            (Self::Pattern(_), Self::CardNumber) | (Self::CardNumber, Self::Pattern(_)) => false,
        }
    }
}

/// The detectors of a policy.
#[derive(Clone, Default, PartialEq)]
pub struct Detectors {
    finders: Vec<Detector>,
}

/// The names that `detect` accepts, each with its pattern.
const BUILT_IN: &[(&str, Option<&str>)] = &[
    ("email", Some(r"(?i)[a-z0-9._%+\-]{1,64}@[a-z0-9\-]{1,63}(?:\.[a-z0-9\-]{1,63})+")),
    ("card_number", None),
    ("jwt", Some(r"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{4,}\.[A-Za-z0-9_\-]*")),
    ("aws_key", Some(r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}")),
    ("google_key", Some(r"AIza[0-9A-Za-z_\-]{35}")),
    (
        "private_key",
        Some(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)",
        ),
    ),
];

/// Compiled patterns stay in memory as long as their policy, so their size is bounded.
const PATTERN_BYTES_MAX: usize = 256 * 1024;

const CARD_DIGITS: std::ops::RangeInclusive<usize> = 13..=19;

impl Detectors {
    /// Returns the names of the built-in detectors.
    pub(in crate::policy) fn built_in() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|it| it.0)
    }

    /// Adds a built-in one; false if there is none of that name.
    pub(in crate::policy) fn add_built_in(&mut self, name: &str) -> bool {
        let Some((name, pattern)) = BUILT_IN.iter().find(|it| it.0 == name) else { return false };
        // A regular expression cannot compute the check digit of a card number.
        let how = pattern.map_or(DetectorKind::CardNumber, |it| {
            DetectorKind::Pattern(
                Regex::new(it).expect("the patterns that come with the program compile, a test says so"),
            )
        });
        self.finders.push(Detector { name: (*name).to_owned(), how });
        true
    }

    /// Adds a pattern of the policy's own; else why not.
    pub(in crate::policy) fn add(&mut self, name: &str, pattern: &str) -> Result<(), String> {
        let built = regex::RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build();
        let regex = built.map_err(|error| format!("this is no pattern: {error}"))?;
        if regex.is_match("") {
            return Err("the pattern matches the empty text, so it would redact everything".to_owned());
        }
        self.finders.push(Detector { name: name.to_owned(), how: DetectorKind::Pattern(regex) });
        Ok(())
    }

    /// Returns whether anything is found in a text.
    pub(in crate::policy) fn find(&self, text: &str) -> bool {
        self.finders.iter().any(|it| match &it.how {
            DetectorKind::Pattern(regex) => regex.is_match(text),
            DetectorKind::CardNumber => !card_numbers(text).is_empty(),
        })
    }

    /// Returns whether anything is found in a leaf. A number is looked at as it is written.
    pub(in crate::policy) fn find_in(&self, leaf: &Value) -> bool {
        match leaf {
            Value::String(text) => self.find(text),
            Value::Number(_) => !self.is_empty() && self.find(&canonical(leaf)),
            _ => false,
        }
    }

    pub(in crate::policy) fn is_empty(&self) -> bool {
        self.finders.is_empty()
    }

    /// Returns everything that is found in a text, with the kind it is of.
    pub(in crate::policy) fn find_all(&self, text: &str) -> Vec<(Range<usize>, &str)> {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        for finder in &self.finders {
            let ranges = match &finder.how {
                DetectorKind::Pattern(regex) => regex.find_iter(text).map(|it| it.range()).collect(),
                DetectorKind::CardNumber => card_numbers(text),
            };
            found.extend(ranges.into_iter().map(|it| (it, finder.name.as_str())));
        }
        found
    }
}

/// Returns the text with each match replaced by its kind, such as `[email]`.
pub(in crate::policy) fn masked<'t>(text: &'t str, mut found: Vec<(Range<usize>, &str)>) -> Cow<'t, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    // Each detector searches on its own, so the matches are in no common order.
    found.sort_by_key(|(range, _)| range.start);
    let (mut masked, mut end) = (String::with_capacity(text.len()), 0);
    for (range, name) in found {
        if range.start >= end {
            masked.push_str(&text[end..range.start]);
            masked.push('[');
            masked.push_str(name);
            masked.push(']');
        }
        // An overlapping match is merged into the one before.
        end = end.max(range.end);
    }
    masked.push_str(&text[end..]);
    Cow::Owned(masked)
}

impl fmt::Debug for Detectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Compiled patterns would be too long for a log line.
        f.debug_list().entries(self.finders.iter().map(|it| &it.name)).finish()
    }
}

/// Returns the positions of card numbers: whole groups of digits, separated by one space or hyphen, whose length,
/// first digit and check digit fit a card number.
fn card_numbers(text: &str) -> Vec<Range<usize>> {
    let groups = digit_groups(text);
    let mut found = Vec::new();
    let mut from = 0;
    while from < groups.len() {
        match card_from(text, &groups[from..]) {
            Some(count) => {
                found.push(groups[from].start..groups[from + count - 1].end);
                from += count;
            }
            None => from += 1,
        }
    }
    found
}

fn digit_groups(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (at, byte) in bytes.iter().enumerate().filter(|it| it.1.is_ascii_digit()) {
        debug_assert!(byte.is_ascii_digit());
        match groups.last_mut() {
            Some(group) if group.end == at => group.end = at + 1,
            _ => groups.push(at..at + 1),
        }
    }
    groups
}

/// Returns how many of these groups, from the first on, make up a card number; as many as can.
fn card_from(text: &str, groups: &[Range<usize>]) -> Option<usize> {
    let (mut digits, mut whole): (Vec<u8>, Option<usize>) = (Vec::new(), None);
    let mut end = groups.first()?.start;
    for (index, group) in groups.iter().enumerate() {
        let between = &text.as_bytes()[end..group.start];
        if index > 0 && !matches!(between, b" " | b"-") {
            break;
        }
        end = group.end;
        // One digit more than a card number has is enough to end the search.
        digits.extend(text.as_bytes()[group.clone()].iter().take(CARD_DIGITS.end() + 1).map(|it| it - b'0'));
        if digits.len() > *CARD_DIGITS.end() {
            break;
        }
        if is_card(&digits) {
            // The search continues, because further groups may belong to a longer card number.
            whole = Some(index + 1);
        }
    }
    whole
}

/// Checks the length, the first digit (2 to 6, which banks issue) and the check digit of ISO/IEC 7812.
fn is_card(digits: &[u8]) -> bool {
    if !CARD_DIGITS.contains(&digits.len()) || !(2..=6).contains(&digits[0]) {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| {
            let value = u32::from(*digit) * if index % 2 == 1 { 2 } else { 1 };
            // The Luhn algorithm adds the two digits of a doubled digit, which is the same as subtracting 9.
            if value > 9 { value - 9 } else { value }
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests;
