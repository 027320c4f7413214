//! Test cases for policies: requests with the expected result. They need no gateway.
//!
//! One case is one line of JSON. Unknown members are errors, because an ignored expectation would always pass.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use super::hypothetical_context::HypotheticalContext;
use super::judgement::{ReasonCode, RejectCode};
use super::model::Policy;
use super::reason_wording::current_wording;
use super::what_if::{HypotheticalRequest, JudgedOutcome, WhatIf, what_if};
use crate::json::parse::{ParseLimits, parse};
use crate::json::patch::PatchFormat;
use crate::json::pointer::Pointer;
use crate::json::size::StateLimits;
use crate::primitives::id::NodeId;
use crate::threads::usage::InvalidUsage;

/// Maximum number of cases. Each one costs a judgement.
pub const CASES_MAX: usize = 10_000;

/// A name must fit into one line of a report.
const NAME_CHARS_MAX: usize = 200;

/// A request with its expected result.
#[derive(Clone, Debug)]
pub struct PolicyTestCase {
    pub name: String,
    /// Line number in the file, from 1.
    pub line: usize,
    pub expected: ExpectedJudgement,
    state: Value,
    node: NodeId,
    format: PatchFormat,
    patch: Value,
    around: HypotheticalContext,
}

/// Expected result of a case. A set is compared as a whole. A set that is left out is not compared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ExpectedJudgement {
    /// Expected outcome.
    pub outcome: JudgedOutcome,
    /// Codes of its errors, or of the reasons for its review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codes: Option<BTreeSet<String>>,
    /// Paths of its errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointers: Option<BTreeSet<String>>,
    /// Rules that its errors name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<BTreeSet<String>>,
    /// Texts of the reasons for its review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasons: Option<BTreeSet<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<BTreeSet<String>>,
}

/// Error in a file of cases.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaseError {
    /// Line number, from 1. `None` if the error concerns the whole file.
    pub line: Option<usize>,
    pub detail: String,
}

/// Reads all cases. Blank lines are ignored. One invalid case makes the whole file invalid.
pub fn read_cases(text: &str) -> Result<Vec<PolicyTestCase>, CaseError> {
    let mut cases: Vec<PolicyTestCase> = Vec::new();
    let mut names = BTreeSet::new();
    for (line, text) in (1..).zip(text.lines()).filter(|(_, it)| !it.trim().is_empty()) {
        let wrong = |detail: String| CaseError { line: Some(line), detail };
        if cases.len() == CASES_MAX {
            return Err(wrong(format!("at most {CASES_MAX} cases are read from one file")));
        }
        let case = read(text, line).map_err(wrong)?;
        // The report identifies a case by its name.
        if !names.insert(case.name.clone()) {
            return Err(wrong(format!("an earlier case already has the name {}", quoted(&case.name))));
        }
        cases.push(case);
    }
    if cases.is_empty() {
        return Err(CaseError { line: None, detail: "the file has no case".to_owned() });
    }
    Ok(cases)
}

impl PolicyTestCase {
    /// Judges the case by a policy.
    pub fn judged(&self, policy: &Policy, limits: &StateLimits) -> WhatIf {
        let Self { state, node, format, patch, around, .. } = self;
        what_if(policy, &HypotheticalRequest { state, node, format: *format, patch, around }, limits)
    }
}

impl ExpectedJudgement {
    /// Returns whether the judgement matches the expectation.
    pub fn agrees(&self, told: &WhatIf) -> bool {
        let found = Self::all_of(told);
        let same = |expected: &Option<_>, found: Option<BTreeSet<String>>| {
            expected.as_ref().is_none_or(|it| *it == found.unwrap_or_default())
        };
        self.outcome == found.outcome
            && same(&self.codes, found.codes)
            && same(&self.pointers, found.pointers)
            && same(&self.rules, found.rules)
            && same(&self.reasons.as_ref().map(|it| with_current_wording(it, told)), found.reasons)
            && same(&self.warnings, found.warnings)
    }

    /// Returns the complete expectation that matches a judgement.
    pub fn all_of(told: &WhatIf) -> Self {
        let errors = || told.errors.iter();
        let of_errors = errors().map(|it| it.code.as_str());
        let codes = of_errors.chain(told.reasons.iter().map(|it| it.code.as_str()));
        Self {
            outcome: told.outcome,
            codes: Some(codes.map(str::to_owned).collect()),
            pointers: Some(errors().map(|it| it.pointer.to_string()).collect()),
            rules: Some(errors().filter_map(|it| it.rule.clone()).collect()),
            reasons: Some(told.reasons.iter().map(|it| it.text.clone()).collect()),
            warnings: Some(told.warnings.iter().map(|it| it.rule.clone()).collect()),
        }
    }

    fn take(members: &mut Map<String, Value>) -> Result<Self, String> {
        let word = text(members, "expect")?.ok_or("a case needs `expect`")?;
        let all = [JudgedOutcome::Commit, JudgedOutcome::Hold, JudgedOutcome::Reject];
        let outcome = all.into_iter().find(|it| it.as_str() == word);
        let outcome = outcome.ok_or("`expect` is commit, hold or reject")?;
        let expected = Self {
            outcome,
            codes: texts(members, "codes")?,
            pointers: texts(members, "pointers")?,
            rules: texts(members, "rules")?,
            reasons: texts(members, "reasons")?,
            warnings: texts(members, "warnings")?,
        };
        expected.can_be()?;
        Ok(expected)
    }

    /// Rejects an expectation that no judgement can meet, because it is a mistake of the author.
    fn can_be(&self) -> Result<(), String> {
        let of_errors = [("pointers", &self.pointers), ("rules", &self.rules)];
        let of_holds = [("reasons", &self.reasons)];
        let outcome = self.outcome.as_str();
        let is = |list: &[(&str, &Option<BTreeSet<String>>)]| {
            // An empty set only states that there is none, which is true for this outcome.
            let said = list.iter().find(|(_, it)| it.as_ref().is_some_and(|it| !it.is_empty()));
            said.map_or(Ok(()), |(name, _)| Err(format!("an expected {outcome} has no `{name}`")))
        };
        match self.outcome {
            JudgedOutcome::Commit => is(&[("codes", &self.codes)]).and(is(&of_errors)).and(is(&of_holds))?,
            JudgedOutcome::Hold => is(&of_errors)?,
            JudgedOutcome::Reject => is(&of_holds).and(is(&[("warnings", &self.warnings)]))?,
        }
        for code in self.codes.iter().flatten() {
            let known = match self.outcome {
                JudgedOutcome::Hold => ReasonCode::ALL.iter().any(|it| it.as_str() == code),
                JudgedOutcome::Commit | JudgedOutcome::Reject => RejectCode::ALL.iter().any(|it| it.as_str() == code),
            };
            if !known {
                return Err(format!("an expected {outcome} has no code {}", quoted(code)));
            }
        }
        for pointer in self.pointers.iter().flatten() {
            Pointer::try_from(pointer.as_str()).map_err(|_| format!("{} is not a JSON Pointer", quoted(pointer)))?;
        }
        Ok(())
    }
}

/// Returns expected reasons in the current wording, so that files with the sentences of an earlier release still agree.
/// A text that the judgement has as it is, such as the words of a rule, stays.
fn with_current_wording(expected: &BTreeSet<String>, judged: &WhatIf) -> BTreeSet<String> {
    let is_found = |text: &str| judged.reasons.iter().any(|it| it.text == text);
    let current = |it: &String| if is_found(it) { it.clone() } else { current_wording(it).into_owned() };
    expected.iter().map(current).collect()
}

fn read(line: &str, number: usize) -> Result<PolicyTestCase, String> {
    let value = parse(line.as_bytes(), &ParseLimits::default()).map_err(|error| error.to_string())?;
    let Value::Object(mut members) = value else { return Err("a case is a JSON object".to_owned()) };
    let name = text(&mut members, "name")?.ok_or("a case needs `name`")?;
    let fits = (1..=NAME_CHARS_MAX).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if !fits {
        return Err(format!("a case's name is one line of 1 to {NAME_CHARS_MAX} characters"));
    }
    let expected = ExpectedJudgement::take(&mut members)?;
    let around = HypotheticalContext::take(&mut members).map_err(|it| told(&it))?;
    let node = text(&mut members, "node")?.ok_or("a case needs `node`")?;
    let format = match text(&mut members, "format")? {
        Some(word) => format_of(&word)?,
        // The default is the same as for a proposal.
        None => PatchFormat::Merge,
    };
    let state = members.remove("state").filter(Value::is_object).ok_or("a case needs `state`, an object")?;
    let patch = members.remove("patch").ok_or("a case needs `patch`")?;
    // Every known member was removed above.
    if let Some(key) = members.keys().next() {
        return Err(format!("a case has no key {}", quoted(key)));
    }
    let node = NodeId::try_from(node).map_err(|error| format!("`node`: {error}"))?;
    Ok(PolicyTestCase { name, line: number, expected, state, node, format, patch, around })
}

fn format_of(word: &str) -> Result<PatchFormat, String> {
    let all = [PatchFormat::Merge, PatchFormat::MergePatch, PatchFormat::JsonPatch];
    let named = all.into_iter().find(|it| it.as_str() == word);
    named.ok_or_else(|| "`format` is merge, merge-patch or json-patch".to_owned())
}

fn text(members: &mut Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match members.remove(name) {
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` is a text")),
        None => Ok(None),
    }
}

fn texts(members: &mut Map<String, Value>, name: &str) -> Result<Option<BTreeSet<String>>, String> {
    let wrong = || format!("`{name}` is a list of texts, each once");
    let Some(value) = members.remove(name) else { return Ok(None) };
    let Value::Array(items) = value else { return Err(wrong()) };
    let mut set = BTreeSet::new();
    for item in items {
        let Value::String(text) = item else { return Err(wrong()) };
        // A set has each text once, so a repeated one is a mistake of the author.
        if !set.insert(text) {
            return Err(wrong());
        }
    }
    Ok(Some(set))
}

fn told(wrong: &InvalidUsage) -> String {
    format!("at {}: {}", quoted(wrong.pointer.as_str()), wrong.detail)
}

/// Returns a text of the file as JSON, so that it cannot break the line of the message.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
