//! The rules as a table: a sentence goes in, the rules that it breaks come out.
//!
//! Some words of the language guide have a second, plain meaning that no pattern can tell apart. They have no rule here,
//! and a reviewer has to look for them:
//!
//! - "turn", "log", "place", "guard", "stop", "try" as a verb, "past" as a preposition: `the log` may be the audit log or
//!   the server log, and a `place` may be a path, a position or a location.
//! - "goes", "say" and "says", "tell", "stand" in the plural, "holds" after a noun: each is also a common verb.
//! - "elsewhere" and "hide" are only found beside the nouns that this project uses them with.
//! - "Neither has": it may be the subject.
//! - Semicolons, the passive voice, and a pronoun without a noun: each is right in some sentences.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use crate::terms::TERMS;

/// The language guide asks for 25 words. The test leaves room for a name or a number, and fails above this.
pub const WORDS_MAX: usize = 30;

/// A sentence of fewer words is a label, such as the head of a column. Openings do not apply to it.
const LABEL_WORDS_MAX: usize = 2;

/// A pattern, the exceptions to it, and the advice that the failure prints.
pub struct ProseRule {
    pub name: &'static str,
    pub pattern: &'static str,
    /// Matches of this pattern are removed first. Empty if there is no such text.
    pub unless: &'static str,
    pub instead: &'static str,
}

/// The first words that a sentence must not have. Questions are exempt.
pub const OPENINGS: &[ProseRule] = &[
    ProseRule {
        name: "opening",
        pattern: "^(What|Whatever|Whoever|Whomever|Whom|Whose|Where|Of|Nor)\\b",
        unless: "^(Of course|Where (possible|available|necessary|needed|supported))\\b",
        instead: "name the subject and put it first: the gateway, the agent, the writer, a reviewer",
    },
    ProseRule {
        name: "inversion",
        pattern: "^(So|Not|Never|Nowhere|Seldom|Rarely|Only then) \
                  (is|are|was|were|be|do|does|did|can|could|may|must|has|have|had|will|would|should)\\b",
        unless: "",
        instead: "put the subject before the verb",
    },
    ProseRule {
        name: "inversion",
        pattern: "^([A-Z][a-z]+ed|Told|Kept|Left|Gone|Shown|Meant|Known|Written|Sent|Given|Taken|Held|Found|Made|Lost|Said) \
                  (is|are|was|were)\\b",
        unless: "^(Seed|Feed|Speed|Need|Bed|Embed) ",
        instead: "put the subject before the verb: \"The gateway emails every reviewer\", not \"Told is every reviewer\"",
    },
];

/// A rule that a sentence breaks, with the advice for it.
#[derive(Debug, PartialEq, Eq)]
pub struct BrokenRule {
    pub rule: String,
    pub instead: String,
}

struct CompiledRule {
    rule: &'static ProseRule,
    pattern: Regex,
    unless: Option<Regex>,
}

impl CompiledRule {
    fn new(rule: &'static ProseRule, flags: &str) -> Self {
        let regex = |pattern: &str| Regex::new(&format!("{flags}{pattern}")).unwrap();
        Self { rule, pattern: regex(rule.pattern), unless: (!rule.unless.is_empty()).then(|| regex(rule.unless)) }
    }

    fn broken(&self, sentence: &str) -> Option<BrokenRule> {
        let without = self.unless.as_ref().map(|it| it.replace_all(sentence, "\u{2026}"));
        let found = self.pattern.find(without.as_deref().unwrap_or(sentence))?;
        let rule = format!("{} \"{}\"", self.rule.name, found.as_str());
        Some(BrokenRule { rule, instead: self.rule.instead.to_owned() })
    }
}

static OPENING_RULES: LazyLock<Vec<CompiledRule>> =
    LazyLock::new(|| OPENINGS.iter().map(|it| CompiledRule::new(it, "")).collect());
static TERM_RULES: LazyLock<Vec<CompiledRule>> =
    LazyLock::new(|| TERMS.iter().map(|it| CompiledRule::new(it, "(?i)")).collect());
/// All terms in one automaton, so that a sentence without any is read once.
static ANY_TERM: LazyLock<RegexSet> =
    LazyLock::new(|| RegexSet::new(TERMS.iter().map(|it| format!("(?i){}", it.pattern))).unwrap());

/// Returns the rules that one sentence breaks. Without a `limit` a sentence may have any length.
pub fn broken(sentence: &str, limit: Option<usize>) -> Vec<BrokenRule> {
    let words = words(sentence);
    let mut found = Vec::new();
    if words > LABEL_WORDS_MAX && !sentence.ends_with('?') {
        found.extend(OPENING_RULES.iter().find_map(|it| it.broken(sentence)));
    }
    found.extend(ANY_TERM.matches(sentence).iter().filter_map(|it| TERM_RULES[it].broken(sentence)));
    if limit.is_some_and(|max| words > max) {
        let instead = "make two sentences, or a list".to_owned();
        found.push(BrokenRule { rule: format!("{words} words, at most {WORDS_MAX}"), instead });
    }
    found
}

/// AllowedCounts the words. A dash or another mark between spaces is none.
pub fn words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|it| it.contains(char::is_alphanumeric)).count()
}
