//! The state guard: whether a state fits its schema, and whether it may follow another. Pure, and frozen once made.

mod code;
mod keyed;
mod rules;
mod schema;
#[cfg(test)]
mod tests;
mod transition;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::json::canonical::canonical;
use super::json::parse::{DEPTH_CEILING, JsonCode, Limits, parse};
use super::json::pointer::Pointer;
pub use code::{Alias, Code};
use rules::Rules;
use schema::Schema;

/// More violations than this help nobody; what is beyond is counted.
pub const VIOLATIONS_MAX: usize = 256;

/// Levels a state may have: what the schema does not descend into may be deeper than the schema.
const LIMITS: Limits = Limits { bytes_max: super::json::parse::BYTES_MAX, depth_max: DEPTH_CEILING };

/// Why a schema or rules are not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} not accepted at {at:?}: {why}", what = self.code.what())]
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

/// One thing that a state or a transition does wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// What.
    pub code: Code,
    /// The code's number at AgentStateGuard.
    pub alias: Alias,
    /// Where: in the proposed state, or in the current one for what is wrong with it or went missing.
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
    fn add(&mut self, alias: Alias, code: Code, pointer: Pointer) {
        if self.list.len() < VIOLATIONS_MAX {
            self.list.push(Violation { code, alias, pointer });
        } else {
            self.omitted += 1;
        }
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
        let schema = Schema::read(&ConfigCode::Schema.read(schema)?)?;
        let rules = match rules {
            Some(text) => Rules::read(&ConfigCode::Rules.read(text)?)?,
            None => Rules::default(),
        };
        Ok(Self { schema, rules })
    }

    /// Whether the state fits the schema.
    pub fn check(&self, proposed: &[u8]) -> Result<Normal, Violations> {
        let mut found = Violations::default();
        let state = self.structure(proposed, None, &mut found);
        state.filter(|_| found.list.is_empty()).map(Normal::of).ok_or(found)
    }

    /// Whether the proposed state fits the schema and may follow the current one.
    pub fn transition(&self, current: &[u8], proposed: &[u8]) -> Result<Allowed, Violations> {
        let mut found = Violations::default();
        if self.rules.is_empty() {
            found.add(Alias::NoRules, Code::NoRules, Pointer::root());
            return Err(found);
        }
        let before = self.structure(current, Some(Alias::Current), &mut found);
        let after = self.structure(proposed, None, &mut found);
        let (Some(before), Some(after), true) = (before, after, found.list.is_empty()) else { return Err(found) };
        transition::judge(&self.rules, &before, &after, &mut found);
        if !found.list.is_empty() {
            return Err(found);
        }
        Ok(Allowed { previous: Normal::of(before), proposed: Normal::of(after) })
    }

    /// The state, if it can be read; what is wrong with it is in `found`, under one alias if one is given.
    fn structure(&self, text: &[u8], alias: Option<Alias>, found: &mut Violations) -> Option<Value> {
        let blank = std::str::from_utf8(text).is_ok_and(|it| it.trim().is_empty());
        if blank {
            found.add(alias.unwrap_or(Alias::Input), Code::Json(JsonCode::Empty), Pointer::root());
            return None;
        }
        match parse(text, &LIMITS) {
            Ok(state) => {
                self.schema.check(&state, &Pointer::root(), &mut |code, at| {
                    found.add(alias.unwrap_or(Alias::Schema), code, at);
                });
                Some(state)
            }
            Err(error) => {
                found.add(alias.unwrap_or(Alias::Json), Code::Json(error.code), error.pointer);
                None
            }
        }
    }
}
