//! Checks a policy that is submitted: its paths and tools must be able to match something.
//!
//! A misspelled path in `protected` protects nothing, and no request would ever show it. Stored policies are not checked
//! again, so a stricter check never makes an active policy unusable.

mod paths;
mod tools;

use super::error::{PolicyCode, PolicyError};
use super::model::Policy;
use super::policy_source::PolicySource;
use super::toml_reader::{TomlItem, TomlSection, parse};
use crate::primitives::named_enum::named_json_enum;
use crate::primitives::nearest::nearest;
use serde::Serialize;

/// Maximum number of warnings. More of them mean the same mistake.
const WARNINGS_MAX: usize = 32;

/// Names that a message lists if none is close.
const NAMES_LISTED: usize = 8;

named_json_enum! {
    /// Kind of a warning, for programs.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum PolicyWarningCode {
        /// The path or tool can never match, and this loosens nothing.
        NeverMatches = "never_matches",
        /// Nothing in the policy confirms that the path exists.
        UnconfirmedPath = "unconfirmed_path",
    }
}

/// A part of a valid policy that probably does not do what its author meant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicyWarning {
    /// The kind of the mistake.
    pub code: PolicyWarningCode,
    /// The line in the policy text, from 1.
    pub line: u32,
    /// The column in that line, in characters, from 1.
    pub column: u32,
    /// The probable mistake and its correction.
    pub detail: String,
}

/// A policy that may be activated.
#[derive(Debug)]
pub struct SubmittedPolicy {
    pub policy: Policy,
    pub warnings: Vec<PolicyWarning>,
}

impl Policy {
    /// Compiles a policy that is submitted. Refuses a path or tool that should restrict something and can never match.
    pub fn compile_submitted(source: &PolicySource) -> Result<SubmittedPolicy, PolicyError> {
        let policy = Self::compile(source)?;
        let document = parse(&source.text)?;
        let root = TomlSection::root(&source.text, &document);
        let mut warnings = Warnings(Vec::new());
        paths::check(&policy, &root, &mut warnings)?;
        tools::check(&policy, &root, &mut warnings)?;
        let mut warnings = warnings.0;
        warnings.sort_by_key(|it| (it.line, it.column));
        Ok(SubmittedPolicy { policy, warnings })
    }
}

/// The warnings so far.
struct Warnings(Vec<PolicyWarning>);

impl Warnings {
    fn add(&mut self, item: &TomlItem<'_>, code: PolicyWarningCode, detail: String) {
        if self.0.len() < WARNINGS_MAX {
            // An error has the position of its item.
            let PolicyError { line, column, message, .. } = item.error(PolicyCode::NeverMatches, detail);
            self.0.push(PolicyWarning { code, line, column, detail: message });
        }
    }
}

/// Returns the advice for an unknown name: the nearest known name, or the known names.
fn advice<'n>(name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    if let Some(meant) = nearest(name, known.clone()) {
        return format!("the nearest is `{meant}`");
    }
    listed(known)
}

/// Returns the advice with the known names.
fn listed<'n>(known: impl Iterator<Item = &'n str> + Clone) -> String {
    let listed: Vec<String> = known.clone().take(NAMES_LISTED).map(|it| format!("`{it}`")).collect();
    match (listed.is_empty(), known.count() > NAMES_LISTED) {
        (true, _) => "remove it".to_owned(),
        (false, true) => format!("known are {} and more", listed.join(", ")),
        (false, false) => format!("known: {}", listed.join(", ")),
    }
}
