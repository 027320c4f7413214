//! State guard: checks whether a state fits its schema, and whether it may follow another. It is pure, and immutable
//! once made.

mod basic_schema;
mod code;
mod rules;
mod schema;
#[cfg(test)]
mod tests;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::json::canonical::canonical;
use super::json::parse::{DEPTH_CEILING, JsonCode, Limits, parse};
use super::json::pointer::Pointer;
pub use super::schema::FaultKind;
use super::transition_rules::{Broken, Found, Side};
pub use code::{Alias, Code};
use rules::Rules;
pub use schema::Dialect;
use schema::Schema;

/// Maximum number of reported violations. A thousand are as useful as ten thousand, and the rest is counted.
pub const VIOLATIONS_MAX: usize = 1_000;

/// Limits of a state. It may be deeper than the schema, in parts that the schema does not describe.
const LIMITS: Limits = Limits { bytes_max: super::json::parse::BYTES_MAX, depth_max: DEPTH_CEILING };

/// The schema or the rules are invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} not accepted at {at:?}: {why}", what = self.code.what(), at = self.at.as_str())]
pub struct ConfigError {
    /// Which of the two.
    pub code: ConfigCode,
    /// Path in it.
    pub at: Pointer,
    /// Cause.
    pub why: String,
}

/// Which text is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigCode {
    /// The schema.
    Schema,
    /// The rules.
    Rules,
}

impl ConfigCode {
    /// Returns the code in an answer.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schema => "guard_schema_invalid",
            Self::Rules => "guard_rules_invalid",
        }
    }

    const fn what(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Rules => "rules",
        }
    }

    fn at(self, at: &Pointer, why: impl Into<String>) -> ConfigError {
        ConfigError { code: self, at: at.clone(), why: why.into() }
    }

    fn read(self, text: &[u8]) -> Result<Value, ConfigError> {
        parse(text, &LIMITS).map_err(|error| self.at(&error.pointer, error.code.detail()))
    }
}

/// Subject of a violation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// The current state.
    Current,
    /// The proposed state.
    Proposed,
    /// The rules themselves.
    Rules,
    /// The target file.
    Target,
}

impl Subject {
    /// Returns the word in an answer.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Proposed => "proposed",
            Self::Rules => "rules",
            Self::Target => "target",
        }
    }
}

/// One violation by a state, a transition or a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Cause.
    pub code: Code,
    /// Number of the code at AgentStateGuard.
    pub alias: Alias,
    /// Subject.
    pub subject: Subject,
    /// Path in that state. The root if the subject is no state.
    pub pointer: Pointer,
}

/// All violations, in the order of the checks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Violations {
    /// The first [`VIOLATIONS_MAX`].
    pub list: Vec<Violation>,
    /// Number of further violations.
    pub omitted: usize,
}

impl Violations {
    /// Adds a violation whose subject is no state.
    pub fn add(&mut self, alias: Alias, subject: Subject, code: Code) {
        self.add_at(alias, subject, code, Pointer::root);
    }

    /// Returns whether there is no violation.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Appends other violations.
    #[must_use]
    pub fn and(mut self, those: Self) -> Self {
        self.omitted += those.omitted;
        for it in those.list {
            self.add_at(it.alias, it.subject, it.code, || it.pointer);
        }
        self
    }

    /// Adds a violation. Computes the pointer only if it is reported, so a million violations do not build a million
    /// texts.
    fn add_at(&mut self, alias: Alias, subject: Subject, code: Code, pointer: impl FnOnce() -> Pointer) {
        if self.list.len() < VIOLATIONS_MAX {
            self.list.push(Violation { code, alias, subject, pointer: pointer() });
        } else {
            self.omitted += 1;
        }
    }
}

impl Found for Violations {
    fn broken(&mut self, side: Side, broken: Broken, pointer: impl FnOnce() -> Pointer) {
        let subject = match side {
            Side::Before => Subject::Current,
            Side::After => Subject::Proposed,
        };
        self.add_at(Alias::Rule, subject, Code::Rule(broken), pointer);
    }
}

/// A valid state in canonical form.
#[derive(Clone, PartialEq, Debug)]
pub struct Normal {
    /// The state.
    pub state: Value,
    /// Its canonical JSON (RFC 8785).
    pub text: String,
}

impl Normal {
    fn of(state: Value) -> Self {
        Self { text: canonical(&state), state }
    }

    /// Returns `sha256:` and the hex digest of the canonical JSON, as `sha256sum` prints it.
    pub fn proof(&self) -> String {
        let hash = Sha256::digest(self.text.as_bytes());
        hash.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
    }
}

/// An allowed transition.
#[derive(Clone, PartialEq, Debug)]
pub struct Allowed {
    /// State before.
    pub previous: Normal,
    /// Proposed state.
    pub proposed: Normal,
}

/// A schema and rules. Immutable once accepted.
#[derive(Clone, Debug)]
pub struct Guard {
    schema: Schema,
    rules: Rules,
}

impl Guard {
    /// Reads a schema and, for transitions, rules. Refuses a keyword that would have no effect.
    pub fn new(schema: &[u8], rules: Option<&[u8]>) -> Result<Self, ConfigError> {
        let schema = Schema::read(schema)?;
        let rules = match rules {
            Some(text) => Rules::read(&ConfigCode::Rules.read(text)?)?,
            None => Rules::default(),
        };
        Ok(Self { schema, rules })
    }

    /// Returns the dialect of the schema.
    pub const fn dialect(&self) -> Dialect {
        self.schema.dialect()
    }

    /// Checks whether the state fits the schema.
    pub fn check(&self, proposed: &[u8]) -> Result<Normal, Violations> {
        let mut found = Violations::default();
        let state = self.structure(proposed, Subject::Proposed, &mut found);
        state.filter(|_| found.is_empty()).map(Normal::of).ok_or(found)
    }

    /// Checks whether the state may be the first. It fits the schema, and every path of the rules exists. Otherwise no
    /// state could ever follow it.
    pub fn first(&self, proposed: &[u8]) -> Result<Normal, Violations> {
        let mut found = Violations::default();
        let state = self.structure(proposed, Subject::Proposed, &mut found);
        if let Some(state) = &state {
            self.rules.judge((state, Side::After), state, &mut found);
        }
        state.filter(|_| found.is_empty()).map(Normal::of).ok_or(found)
    }

    /// Checks whether the proposed state fits the schema and may follow the current one.
    pub fn transition(&self, current: &[u8], proposed: &[u8]) -> Result<Allowed, Violations> {
        let mut found = Violations::default();
        if self.rules.is_empty() {
            found.add(Alias::NoRules, Subject::Rules, Code::NoRules);
        }
        let before = self.structure(current, Subject::Current, &mut found);
        let after = self.structure(proposed, Subject::Proposed, &mut found);
        let (Some(before), Some(after)) = (before, after) else { return Err(found) };
        self.rules.judge((&before, Side::Before), &after, &mut found);
        if !found.is_empty() {
            return Err(found);
        }
        Ok(Allowed { previous: Normal::of(before), proposed: Normal::of(after) })
    }

    /// Reads a state and adds its violations to `found`. The current state's have one alias. Returns `None` if the text
    /// cannot be read.
    fn structure(&self, text: &[u8], subject: Subject, found: &mut Violations) -> Option<Value> {
        let alias = |own: Alias| if subject == Subject::Current { Alias::Current } else { own };
        let blank = std::str::from_utf8(text).is_ok_and(|it| it.chars().all(is_blank));
        if blank {
            found.add(alias(Alias::Input), subject, Code::Json(JsonCode::Empty));
            return None;
        }
        match parse(text, &LIMITS) {
            Ok(state) => {
                self.schema.check(&state, &mut |kind, at| {
                    found.add_at(alias(Alias::Schema), subject, Code::Schema(kind), at);
                });
                Some(state)
            }
            Err(error) => {
                found.add_at(alias(Alias::Json), subject, Code::Json(error.code), || error.pointer);
                None
            }
        }
    }
}

/// Returns whether a character is blank. AgentStateGuard also treats the information separators as white space, and
/// Unicode does not.
fn is_blank(it: char) -> bool {
    it.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&it)
}

/// Returns the canonical form of a state in a file, or `None` if it cannot be read.
pub fn normal_form(text: &[u8]) -> Option<String> {
    parse(text, &LIMITS).ok().map(|state| canonical(&state))
}
