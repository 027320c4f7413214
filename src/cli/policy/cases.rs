//! `policy test`: evaluates a policy on test cases and compares the results with the expected ones.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use countersign_domain::policy::{
    CaseError, ExpectedJudgement, Policy, PolicyTestCase, StateLimits, WhatIf, read_cases,
};
use serde_json::{Value, json};

use super::{canonical_ascii, source_of, unsound};
use crate::cli::output::CommandOutput;
use crate::cli::{CliError, CommandExit, args};

/// Enough for ten thousand cases of a few kilobytes.
const CASES_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A case with another result than expected.
struct CaseFailure {
    case: PolicyTestCase,
    told: WhatIf,
}

/// Exits with 0 if all cases agree, 1 if some differ, and 2 if the policy or the cases are invalid.
pub(super) fn run(test: &args::PolicyTest, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    let Ok(policy) = Policy::compile(&source_of(&test.file)?) else { return unsound(&test.file, out) };
    let cases = read_cases(&text(&test.cases)?).map_err(|it| not_understood(&test.cases, &it))?;
    let all = cases.len();
    let judged = cases.into_iter().map(|case| {
        let told = case.judged(&policy, &StateLimits::default());
        CaseFailure { case, told }
    });
    let failures: Vec<CaseFailure> = judged.filter(|it| !it.case.expected.agrees(&it.told)).collect();
    let (passed, failed) = (all - failures.len(), failures.len());
    let mut report: String = failures.iter().map(|it| line(it) + "\n").collect();
    report.push_str(&format!("{passed} passed, {failed} failed"));
    out.answer(report, || {
        let failures: Vec<Value> = failures.iter().map(row).collect();
        json!({"policy": policy.digest(), "passed": passed, "failed": failed, "failures": failures})
    })?;
    Ok(if failed == 0 { CommandExit::Yes } else { CommandExit::No })
}

fn text(path: &Path) -> Result<String, CliError> {
    let unread = |source| CliError::Read { what: path.display().to_string(), source };
    let mut text = String::new();
    let file = File::open(path).map_err(unread)?;
    // One byte more than the limit is read, so that a longer file is refused and no case is dropped silently.
    let bytes = file.take(CASES_BYTES_MAX + 1).read_to_string(&mut text).map_err(unread)?;
    match u64::try_from(bytes) {
        Ok(bytes) if bytes <= CASES_BYTES_MAX => Ok(text),
        _ => Err(CliError::Given(format!("{}: at most 64 MiB of cases are read", path.display()))),
    }
}

fn not_understood(path: &Path, error: &CaseError) -> CliError {
    let place = error.line.map(|it| format!(":{it}")).unwrap_or_default();
    CliError::Given(format!("{}{place}: {}", path.display(), error.detail))
}

fn row(failure: &CaseFailure) -> Value {
    let CaseFailure { case, told } = failure;
    json!({"name": case.name, "line": case.line, "expected": case.expected, "got": told})
}

/// Formats a failure: name, expected, got, reason. The name can be any text, so it is escaped.
fn line(failure: &CaseFailure) -> String {
    let CaseFailure { case, told } = failure;
    let got = ExpectedJudgement::all_of(told);
    let got = ExpectedJudgement {
        // Sets that the case does not name are not compared, so printing them would distract.
        codes: got.codes.filter(|it| case.expected.codes.is_some() || !it.is_empty()),
        pointers: got.pointers.filter(|_| case.expected.pointers.is_some()),
        rules: got.rules.filter(|_| case.expected.rules.is_some()),
        reasons: got.reasons.filter(|_| case.expected.reasons.is_some()),
        warnings: got.warnings.filter(|_| case.expected.warnings.is_some()),
        outcome: got.outcome,
    };
    let errors = told.errors.iter().map(|it| {
        let rule = it.rule.as_ref().map(|rule| format!(" (rule {})", ascii(rule))).unwrap_or_default();
        format!("{} at {}{rule}: {}", it.code, ascii(it.pointer.as_str()), it.detail)
    });
    let why: Vec<_> = told.reasons.iter().map(|it| it.text.clone()).chain(errors).collect();
    let why = if why.is_empty() { String::new() } else { format!(": {}", why.join("; ")) };
    format!("FAILED {}: expected {}, got {}{why}", ascii(&case.name), words(&case.expected), words(&got))
}

fn words(it: &ExpectedJudgement) -> String {
    let sets = [
        ("codes", &it.codes),
        ("pointers", &it.pointers),
        ("rules", &it.rules),
        ("reasons", &it.reasons),
        ("warnings", &it.warnings),
    ];
    let said =
        sets.into_iter().filter_map(|(name, set)| Some(format!(" {name} {}", canonical_ascii(&json!(set.as_ref()?)))));
    format!("{}{}", it.outcome.as_str(), said.collect::<String>())
}

fn ascii(text: &str) -> String {
    canonical_ascii(&json!(text))
}
