//! Whether two worlds can be told apart by what was fetched from them: everything is equal but what is random.

use std::collections::BTreeMap;

use regex::Regex;

/// Patterns of random values: signed tokens, digests and their prefixes, identifiers, seconds, ports and form tokens.
/// The longest forms come first.
const RANDOM: [&str; 7] = [
    r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"\b[0-9a-f]{32,64}\b",
    r"\b1[789]\d{8}\b",
    r"localhost:\d+",
    r"<code>[0-9a-f]{10}…</code>",
    r"[A-Za-z0-9_-]{22,}",
];

/// Patterns of times, because the two gateways are not called in the same second.
const MOMENTS: [&str; 6] = [
    r"(?s)<time.*?</time>",
    r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z",
    r#"data-ends-in="\d+""#,
    r"\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d UTC",
    r"\b\d+ (?:s|min) ago\b",
    // A slow machine shows the same moment as some seconds ago.
    r"\bjust now\b",
];

/// Fails where the first difference is.
pub fn nothing(one: &[(String, String)], other: &[(String, String)]) {
    let (mut left, mut right) = (NameNormalizer::new(), NameNormalizer::new());
    assert_eq!(one.len(), other.len(), "as much was fetched of both");
    for ((place, seen), (same_place, also)) in one.iter().zip(other) {
        let (place, same_place) = (left.plain(place), right.plain(same_place));
        assert_eq!(place, same_place);
        let (seen, also) = (left.plain(seen), right.plain(also));
        if seen != also {
            let at = seen.bytes().zip(also.bytes()).take_while(|(a, b)| a == b).count();
            let from = at.saturating_sub(300);
            let cut = |text: &str| text.chars().skip(from).take(700).collect::<String>();
            panic!("{place} tells the worlds apart:\n--- one\n{}\n--- other\n{}", cut(&seen), cut(&also));
        }
    }
}

/// Replaces random values with numbered names. Equal values get equal names.
struct NameNormalizer {
    moments: Regex,
    random: Regex,
    known: BTreeMap<String, usize>,
}

impl NameNormalizer {
    fn new() -> Self {
        let any = |forms: &[&str]| Regex::new(&forms.join("|")).unwrap();
        Self { moments: any(&MOMENTS), random: any(&RANDOM), known: BTreeMap::new() }
    }

    fn plain(&mut self, text: &str) -> String {
        let (text, known) = (self.moments.replace_all(text, "[moment]"), &mut self.known);
        self.random
            .replace_all(&text, |found: &regex::Captures<'_>| {
                let next = known.len();
                format!("[random {}]", known.entry(found[0].to_owned()).or_insert(next))
            })
            .into_owned()
    }
}
