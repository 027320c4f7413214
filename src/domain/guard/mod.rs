//! The state guard: whether a state fits its schema, and whether it may follow another. Pure, and frozen once made.

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

/// A thousand violations say as much as ten thousand; what is beyond is counted.
pub const VIOLATIONS_MAX: usize = 1_000;

/// Levels a state may have: what the schema does not descend into may be deeper than the schema.
const LIMITS: Limits = Limits { bytes_max: super::json::parse::BYTES_MAX, depth_max: DEPTH_CEILING };

/// Why a schema or rules are not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} not accepted at {at:?}: {why}", what = self.code.what(), at = self.at.as_str())]
pub struct ConfigError {
    /// Which of the two.
    pub code: ConfigCode,
    /// Where in it.
    pub at: Pointer,
    /// What is wrong.
    pub why: String,
}

/// Which text is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigCode {
    /// The schema.
    Schema,
    /// The rules.
    Rules,
}

impl ConfigCode {
    /// The code, as answers carry it.
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

/// What is wrong with what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// The state before.
    Current,
    /// The state proposed.
    Proposed,
    /// The rules themselves.
    Rules,
    /// The file to be written.
    Target,
}

impl Subject {
    /// As answers carry it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Proposed => "proposed",
            Self::Rules => "rules",
            Self::Target => "target",
        }
    }
}

/// One thing that a state, a transition or a target does wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// What.
    pub code: Code,
    /// The code's number at AgentStateGuard.
    pub alias: Alias,
    /// In what.
    pub subject: Subject,
    /// Where in that state; the root for what is no state.
    pub pointer: Pointer,
}

/// Everything that is wrong, in the order of the checks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Violations {
    /// The first [`VIOLATIONS_MAX`].
    pub list: Vec<Violation>,
    /// How many more there are.
    pub omitted: usize,
}

impl Violations {
    /// Something that is wrong with what is no state.
    pub fn add(&mut self, alias: Alias, subject: Subject, code: Code) {
        self.add_at(alias, subject, code, Pointer::root);
    }

    /// Whether nothing is wrong.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// These, and then those.
    #[must_use]
    pub fn and(mut self, those: Self) -> Self {
        self.omitted += those.omitted;
        for it in those.list {
            self.add_at(it.alias, it.subject, it.code, || it.pointer);
        }
        self
    }

    /// The pointer is only made if it is told: what is wrong a million times costs no million texts.
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

/// A state that fits, in its one form.
#[derive(Clone, PartialEq, Debug)]
pub struct Normal {
    /// The state.
    pub state: Value,
    /// Its canonical text (RFC 8785).
    pub text: String,
}

impl Normal {
    fn of(state: Value) -> Self {
        Self { text: canonical(&state), state }
    }

    /// `sha256:` and the hex digest of the canonical text, as `sha256sum` gives it.
    pub fn proof(&self) -> String {
        let hash = Sha256::digest(self.text.as_bytes());
        hash.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
    }
}

/// A transition that is allowed.
#[derive(Clone, PartialEq, Debug)]
pub struct Allowed {
    /// The state before.
    pub previous: Normal,
    /// The state proposed.
    pub proposed: Normal,
}

/// A schema and rules. Nothing changes them after they were accepted.
#[derive(Clone, Debug)]
pub struct Guard {
    schema: Schema,
    rules: Rules,
}

impl Guard {
    /// Reads a schema and, for transitions, rules. What would have no effect is refused, not ignored.
    pub fn new(schema: &[u8], rules: Option<&[u8]>) -> Result<Self, ConfigError> {
        let schema = Schema::read(schema)?;
        let rules = match rules {
            Some(text) => Rules::read(&ConfigCode::Rules.read(text)?)?,
            None => Rules::default(),
        };
        Ok(Self { schema, rules })
    }

    /// Which dialect the schema is written in.
    pub const fn dialect(&self) -> Dialect {
        self.schema.dialect()
    }

    /// Whether the state fits the schema.
    pub fn check(&self, proposed: &[u8]) -> Result<Normal, Violations> {
        let mut found = Violations::default();
        let state = self.structure(proposed, Subject::Proposed, &mut found);
        state.filter(|_| found.is_empty()).map(Normal::of).ok_or(found)
    }

    /// Whether the state may be the first: it fits the schema, and the rules find in it what they speak of, or no
    /// state could ever follow it.
    pub fn first(&self, proposed: &[u8]) -> Result<Normal, Violations> {
        let mut found = Violations::default();
        let state = self.structure(proposed, Subject::Proposed, &mut found);
        if let Some(state) = &state {
            self.rules.judge((state, Side::After), state, &mut found);
        }
        state.filter(|_| found.is_empty()).map(Normal::of).ok_or(found)
    }

    /// Whether the proposed state fits the schema and may follow the current one.
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

    /// The state, if it can be read; what is wrong with it is in `found`, for the current one under one alias.
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

/// Whether a text of nothing but such characters is no text. The information separators are white space to
/// AgentStateGuard, and not to Unicode.
fn is_blank(it: char) -> bool {
    it.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&it)
}

/// A state as it lies in a file, in its one form; `None` if it cannot be read.
pub fn normal_form(text: &[u8]) -> Option<String> {
    parse(text, &LIMITS).ok().map(|state| canonical(&state))
}
