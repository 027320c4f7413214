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
use super::json::parse::{DEPTH_CEILING, JsonCode, ParseLimits, parse};
use super::json::pointer::Pointer;
pub use super::schema::SchemaViolationKind;
use super::transition_rules::{StateSide, TransitionViolation, ViolationSink};
pub use code::{AgentStateGuardCode, GuardCode};
use rules::GuardRules;
use schema::GuardSchema;
pub use schema::SchemaDialect;

use crate::primitives::named_enum::named_enum;

/// Maximum number of reported violations. A thousand are as useful as ten thousand, and the rest is counted.
pub const VIOLATIONS_MAX: usize = 1_000;

/// Limits of a state. It may be deeper than the schema, in parts that the schema does not describe.
const LIMITS: ParseLimits = ParseLimits { bytes_max: super::json::parse::BYTES_MAX, depth_max: DEPTH_CEILING };

/// The schema or the rules are invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} not accepted at {at:?}: {why}", what = self.code.what(), at = self.at.as_str())]
pub struct GuardConfigError {
    pub code: GuardConfigCode,
    pub at: Pointer,
    pub why: String,
}

named_enum! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum GuardConfigCode {
        Schema = "guard_schema_invalid",
        Rules = "guard_rules_invalid",
    }
}

impl GuardConfigCode {
    const fn what(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Rules => "rules",
        }
    }

    fn at(self, at: &Pointer, why: impl Into<String>) -> GuardConfigError {
        GuardConfigError { code: self, at: at.clone(), why: why.into() }
    }

    fn read(self, text: &[u8]) -> Result<Value, GuardConfigError> {
        parse(text, &LIMITS).map_err(|error| self.at(&error.pointer, error.code.detail()))
    }
}

named_enum! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum ViolationSubject {
        Current = "current",
        Proposed = "proposed",
        Rules = "rules",
        Target = "target",
    }
}

/// One violation by a state, a transition or a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuardViolation {
    pub code: GuardCode,
    /// Number of the code at AgentStateGuard.
    pub alias: AgentStateGuardCode,
    pub subject: ViolationSubject,
    /// Path in that state. The root if the subject is no state.
    pub pointer: Pointer,
}

/// All violations, in the order of the checks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Violations {
    /// The first [`VIOLATIONS_MAX`].
    pub list: Vec<GuardViolation>,
    /// Number of further violations.
    pub omitted: usize,
}

impl Violations {
    /// Adds a violation whose subject is no state.
    pub fn add(&mut self, alias: AgentStateGuardCode, subject: ViolationSubject, code: GuardCode) {
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
    fn add_at(
        &mut self,
        alias: AgentStateGuardCode,
        subject: ViolationSubject,
        code: GuardCode,
        pointer: impl FnOnce() -> Pointer,
    ) {
        if self.list.len() < VIOLATIONS_MAX {
            self.list.push(GuardViolation { code, alias, subject, pointer: pointer() });
        } else {
            self.omitted += 1;
        }
    }
}

impl ViolationSink for Violations {
    fn broken(&mut self, side: StateSide, broken: TransitionViolation, pointer: impl FnOnce() -> Pointer) {
        let subject = match side {
            StateSide::Before => ViolationSubject::Current,
            StateSide::After => ViolationSubject::Proposed,
        };
        self.add_at(AgentStateGuardCode::Rule, subject, GuardCode::Rule(broken), pointer);
    }
}

/// A valid state in canonical form.
#[derive(Clone, PartialEq, Debug)]
pub struct NormalizedState {
    pub state: Value,
    /// Its canonical JSON (RFC 8785).
    pub text: String,
}

impl NormalizedState {
    fn of(state: Value) -> Self {
        Self { text: canonical(&state), state }
    }

    /// Returns `sha256:` and the hex digest of the canonical JSON, as `sha256sum` prints it.
    pub fn proof(&self) -> String {
        let hash = Sha256::digest(self.text.as_bytes());
        hash.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct AllowedTransition {
    pub previous: NormalizedState,
    pub proposed: NormalizedState,
}

/// A schema and rules. Immutable once accepted.
#[derive(Clone, Debug)]
pub struct StateGuard {
    schema: GuardSchema,
    rules: GuardRules,
}

impl StateGuard {
    /// Reads a schema and, for transitions, rules. Refuses a keyword that would have no effect.
    pub fn new(schema: &[u8], rules: Option<&[u8]>) -> Result<Self, GuardConfigError> {
        let schema = GuardSchema::read(schema)?;
        let rules = match rules {
            Some(text) => GuardRules::read(&GuardConfigCode::Rules.read(text)?)?,
            None => GuardRules::default(),
        };
        Ok(Self { schema, rules })
    }

    /// Returns the dialect of the schema.
    pub const fn dialect(&self) -> SchemaDialect {
        self.schema.dialect()
    }

    /// Checks whether the state fits the schema.
    pub fn check(&self, proposed: &[u8]) -> Result<NormalizedState, Violations> {
        let mut found = Violations::default();
        let state = self.structure(proposed, ViolationSubject::Proposed, &mut found);
        state.filter(|_| found.is_empty()).map(NormalizedState::of).ok_or(found)
    }

    /// Checks whether the state may be the first. It fits the schema, and every path of the rules exists. Otherwise no
    /// state could ever follow it.
    pub fn first(&self, proposed: &[u8]) -> Result<NormalizedState, Violations> {
        let mut found = Violations::default();
        let state = self.structure(proposed, ViolationSubject::Proposed, &mut found);
        if let Some(state) = &state {
            // Compared with itself, a state can only violate rules that do not fit it at all.
            self.rules.judge((state, StateSide::After), state, &mut found);
        }
        state.filter(|_| found.is_empty()).map(NormalizedState::of).ok_or(found)
    }

    /// Checks whether the proposed state fits the schema and may follow the current one.
    pub fn transition(&self, current: &[u8], proposed: &[u8]) -> Result<AllowedTransition, Violations> {
        let mut found = Violations::default();
        // Without rules every change would pass, which the caller could take for a check.
        if self.rules.is_empty() {
            found.add(AgentStateGuardCode::NoRules, ViolationSubject::Rules, GuardCode::NoRules);
        }
        let before = self.structure(current, ViolationSubject::Current, &mut found);
        let after = self.structure(proposed, ViolationSubject::Proposed, &mut found);
        // Both states are read first, so the answer lists the violations of both.
        let (Some(before), Some(after)) = (before, after) else { return Err(found) };
        self.rules.judge((&before, StateSide::Before), &after, &mut found);
        if !found.is_empty() {
            return Err(found);
        }
        Ok(AllowedTransition { previous: NormalizedState::of(before), proposed: NormalizedState::of(after) })
    }

    /// Reads a state and adds its violations to `found`. The current state's have one alias. Returns `None` if the text
    /// cannot be read.
    fn structure(&self, text: &[u8], subject: ViolationSubject, found: &mut Violations) -> Option<Value> {
        let alias = |own: AgentStateGuardCode| {
            // AgentStateGuard has one number for every error of the current state.
            if subject == ViolationSubject::Current { AgentStateGuardCode::Current } else { own }
        };
        // AgentStateGuard has its own number for a blank text.
        let blank = std::str::from_utf8(text).is_ok_and(|it| it.chars().all(is_blank));
        if blank {
            found.add(alias(AgentStateGuardCode::Input), subject, GuardCode::Json(JsonCode::Empty));
            return None;
        }
        match parse(text, &LIMITS) {
            Ok(state) => {
                self.schema.check(&state, &mut |kind, at| {
                    found.add_at(alias(AgentStateGuardCode::Schema), subject, GuardCode::Schema(kind), at);
                });
                Some(state)
            }
            Err(error) => {
                found.add_at(alias(AgentStateGuardCode::Json), subject, GuardCode::Json(error.code), || error.pointer);
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
