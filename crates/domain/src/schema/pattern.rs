//! Matches `pattern` at a cost that is known in advance.
//!
//! Without a lazy automaton, the time of a regular expression is proportional to the text and to its own size:
//! `1(0|1){400}x` takes twenty seconds for a megabyte of digits. The validator's own engine switches to that mode
//! silently. Here a long text is matched by the automaton alone. If the automaton gives up, the check pays for the
//! worst case before it continues.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jsonschema::json::Node as _;
use jsonschema::{Keyword, ValidationError};
use jsonschema_regex::PatternAnalysis;
use regex::{Regex, RegexBuilder};
use regex_automata::Input;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson;
use serde_json::Value;

use super::REGEX_BYTES_MAX;
use super::meter::{end, matching, reading, spend};
use super::metered::{MeteredJson, MeteredValue};

/// The keyword that this module implements.
pub(super) const KEYWORD: &str = "pattern";

pub(super) enum RegexPattern {
    /// A pattern that is decided without an expression, as in the validator.
    Literal(PatternAnalysis<'static>),
    Expression(Box<Expression>),
}

/// An expression, and an automaton that decides most texts.
pub(super) struct Expression {
    regex: Regex,
    automaton: DFA,
}

/// Steps to build an automaton. A text that needs no more steps at worst is matched without one.
const AUTOMATON_STEPS: u64 = 500;

/// Steps after which an automaton gives up.
const GIVEN_UP_STEPS: u64 = 50_000;

/// Memory of an automaton. It gives up on a text that needs more.
const AUTOMATON_BYTES_MAX: usize = 256 * 1024;

impl RegexPattern {
    /// Compiles a pattern like the validator. Returns `None` if it is invalid or too large.
    pub(super) fn compile(pattern: &str) -> Option<Self> {
        match jsonschema_regex::analyze_pattern(pattern) {
            Some(PatternAnalysis::Prefix(prefix)) => {
                Some(Self::Literal(PatternAnalysis::Prefix(prefix.into_owned().into())))
            }
            Some(PatternAnalysis::Exact(exact)) => {
                Some(Self::Literal(PatternAnalysis::Exact(exact.into_owned().into())))
            }
            Some(PatternAnalysis::Alternation(all)) => Some(Self::Literal(PatternAnalysis::Alternation(all))),
            Some(PatternAnalysis::NoWhitespace) => Some(Self::Literal(PatternAnalysis::NoWhitespace)),
            None => Expression::compile(pattern).map(|it| Self::Expression(Box::new(it))),
        }
    }

    /// Returns how many states its expression has.
    pub(super) fn states(&self) -> u64 {
        match self {
            Self::Literal(_) => 1,
            Self::Expression(it) => it.states(),
        }
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Literal(PatternAnalysis::Prefix(prefix)) => text.starts_with(prefix.as_ref()),
            Self::Literal(PatternAnalysis::Exact(exact)) => text == exact.as_ref(),
            Self::Literal(PatternAnalysis::Alternation(all)) => {
                spend(reading(all.len()));
                all.iter().any(|it| it == text)
            }
            Self::Literal(PatternAnalysis::NoWhitespace) => !jsonschema_regex::contains_ecma_whitespace(text),
            Self::Expression(it) => it.is_match(text),
        }
    }
}

impl Expression {
    fn compile(pattern: &str) -> Option<Self> {
        let translated = jsonschema_regex::to_rust_regex(pattern).ok()?;
        let mut builder = RegexBuilder::new(&translated);
        let regex = builder.size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX).build().ok()?;
        let config = DFA::config()
            .cache_capacity(AUTOMATON_BYTES_MAX)
            // A pattern that is too large for the cache must compile, because the other engine still decides it.
            .skip_cache_capacity_check(true)
            // A cache that fills up again and again is slower than the other engine.
            .minimum_cache_clear_count(Some(1))
            .unicode_word_boundary(true);
        // The answer is yes or no, and captures would enlarge the automaton.
        let thompson = thompson::Config::new().which_captures(thompson::WhichCaptures::None);
        let automaton = DFA::builder().configure(config).thompson(thompson).build(&translated).ok()?;
        Some(Self { regex, automaton })
    }

    fn states(&self) -> u64 {
        self.automaton.get_nfa().states().len() as u64
    }

    fn is_match(&self, text: &str) -> bool {
        let worst = matching(text.len(), self.states());
        if worst > AUTOMATON_STEPS {
            spend(AUTOMATON_STEPS);
            if let Some(found) = guarded(|| self.decided(text)) {
                return found;
            }
            spend(GIVEN_UP_STEPS);
        }
        // The engine cannot be stopped in a text, so the worst case is paid before it starts.
        spend(worst);
        guarded(|| self.regex.is_match(text))
    }

    /// Returns the automaton's result, if it finishes. Each text has its own automaton, because one that remembers an
    /// earlier text would give up at another position.
    fn decided(&self, text: &str) -> Option<bool> {
        let mut cache = self.automaton.create_cache();
        let found = self.automaton.try_search_fwd(&mut cache, &Input::new(text).earliest(true)).ok()?;
        Some(found.is_some())
    }
}

/// Catches panics of the engine, which some expressions cause (rust-lang/regex#1344). An undecided expression ends
/// the check.
fn guarded<T>(search: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(search)).unwrap_or_else(|_| end())
}

impl<'i> Keyword<'i, MeteredJson> for RegexPattern {
    fn validate(&self, instance: MeteredValue<'i>) -> Result<(), ValidationError<'i>> {
        let fits = Keyword::<MeteredJson>::is_valid(self, instance);
        if fits { Ok(()) } else { Err(ValidationError::custom("the text does not match")) }
    }

    fn is_valid(&self, instance: MeteredValue<'i>) -> bool {
        // JSON Schema applies `pattern` only to texts.
        instance.as_string().is_none_or(|text| self.is_match(&text))
    }
}

/// Creates the keyword. An invalid pattern is an error, as in the validator.
pub(super) fn keyword<'a>(value: &'a Value) -> Result<Box<dyn for<'i> Keyword<'i, MeteredJson>>, ValidationError<'a>> {
    let pattern = value.as_str().and_then(RegexPattern::compile);
    let refused = || ValidationError::custom("this is no regular expression, or it is too large, or it looks around");
    pattern.map(|it| Box::new(it) as Box<_>).ok_or_else(refused)
}
