//! `verify`: checks a receipt offline, with published keys and files only.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use countersign_adapters::clock::Clock;
use countersign_domain::chain::opening::Opening;
use countersign_domain::chain::signed_vote;
use countersign_domain::chain::statement::Statement;
use countersign_domain::chain::verify_receipt_offline;
use countersign_domain::chain::verify_receipt_offline::{
    CheckName, CheckOutcome, Conclusion, PinnedPasskey, ReceiptCheck, ReceiptEvidence,
};
use countersign_domain::json::parse::{ParseLimits, parse};
use countersign_domain::keys::PublicKeys;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::args::{self, InputSource};
use super::output::CommandOutput;
use super::{CliError, CommandExit};

/// The limit for files. Tokens, statements and key sets have kilobytes, and an opening has at most the size of a state.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The response of `GET /v1/receipts/{jti}/evidence`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EvidenceFile {
    evidence: Vec<signed_vote::VoteEvidence>,
}

/// The response of `GET /v1/passkeys`, or passkeys that an auditor collected from the events.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PasskeyEnrolments {
    passkeys: Vec<PinnedPasskey>,
}

/// Runs all checks and prints each of them.
pub fn run(
    verify: &args::VerifyCommand,
    clock: &impl Clock,
    stdin: &mut dyn Read,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    let receipt = token(&verify.receipt, stdin)?;
    let entry = verify.entry.as_ref().map(|it| token(it, stdin)).transpose()?;
    let keys: Value = document(&verify.jwks, "a set of published keys")?;
    // One unknown key refuses the whole set: a partly understood set could hide a revocation.
    let keys = PublicKeys::from_jwks(&keys)
        .map_err(|error| CliError::Given(format!("{} is not a valid key set: {error}", verify.jwks.display())))?;
    let statement: Option<Statement> = optional(verify.statement.as_deref(), "a statement")?;
    let opening: Option<Opening> = optional(verify.opening.as_deref(), "an opening")?;
    let votes = optional::<EvidenceFile>(verify.evidence.as_deref(), "a list of evidence")?
        .map_or(Vec::new(), |it| it.evidence);
    let pinned = optional::<PasskeyEnrolments>(verify.passkeys.as_deref(), "a list of passkeys")?.map(|it| it.passkeys);
    let evidence = ReceiptEvidence {
        receipt: &receipt,
        keys: &keys,
        entry: entry.as_deref(),
        statement: statement.as_ref(),
        opening: opening.as_ref(),
        votes: &votes,
        passkeys: pinned.as_deref(),
    };
    // An auditor can check with the time of an incident instead of the current time.
    let now = verify.at.unwrap_or_else(|| clock.now());
    let checks = verify_receipt_offline::check(&evidence, now);
    let conclusion = verify_receipt_offline::conclusion(&checks);
    out.answer(text(&checks, conclusion), || {
        json!({
            "conclusion": word(conclusion),
            "is_bound": is_bound(&checks),
            "checked_at": now,
            "checks": checks.iter().map(row).collect::<Vec<_>>(),
        })
    })?;
    Ok(match conclusion {
        Conclusion::Genuine => CommandExit::Yes,
        Conclusion::Refused => CommandExit::No,
        Conclusion::CouldNotTell => CommandExit::CouldNotTell,
    })
}

const fn word(conclusion: Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Genuine => "genuine",
        Conclusion::Refused => "refused",
        Conclusion::CouldNotTell => "could_not_tell",
    }
}

/// Returns the outcome, its code if it has one, and its description.
fn parts(check: &ReceiptCheck) -> (&'static str, Option<&'static str>, &'static str) {
    match check.outcome {
        CheckOutcome::Passed => ("passed", None, check.name.detail()),
        CheckOutcome::Failed { code, detail } => ("failed", Some(code.as_str()), detail),
        CheckOutcome::CouldNotTell { detail } => ("could_not_tell", None, detail),
        CheckOutcome::NotChecked { detail } => ("not_checked", None, detail),
    }
}

fn text(checks: &[ReceiptCheck], conclusion: Conclusion) -> String {
    let mut text = String::new();
    for check in checks {
        let (outcome, code, says) = parts(check);
        let outcome = outcome.replace('_', " ");
        write!(text, "{:<10} {outcome:<15} {says}", check.name.as_str()).expect("text grows");
        if let Some(code) = code {
            write!(text, " [{code}]").expect("text grows");
        }
        text.push('\n');
    }
    text.push_str(match conclusion {
        // Without the entry and the statement, the receipt names digests only.
        Conclusion::Genuine if !is_bound(checks) => {
            "genuine receipt; what it approves was not checked (give --entry and --statement)"
        }
        Conclusion::Genuine => "genuine: people approved exactly this",
        Conclusion::Refused => "refused: the receipt authorizes no write",
        Conclusion::CouldNotTell => "could not tell",
    });
    text
}

/// Returns true if the receipt was compared with the entry and the statement that it approves.
fn is_bound(checks: &[ReceiptCheck]) -> bool {
    let passed = |name| checks.iter().any(|it| it.name == name && it.outcome == CheckOutcome::Passed);
    passed(CheckName::Entry) && passed(CheckName::Statement) && passed(CheckName::Binding)
}

fn row(check: &ReceiptCheck) -> Value {
    let (outcome, code, detail) = parts(check);
    json!({"check": check.name.as_str(), "outcome": outcome, "code": code, "detail": detail})
}

/// Reads a token. Only a line break at the end of a file is ignored.
fn token(input: &InputSource, stdin: &mut dyn Read) -> Result<String, CliError> {
    let (what, text) = match input {
        InputSource::Given(text) => return Ok(text.clone()),
        InputSource::Stdin => ("standard input".to_owned(), read(stdin)),
        InputSource::File(path) => (path.display().to_string(), File::open(path).and_then(|mut file| read(&mut file))),
    };
    let text = text.map_err(|source| CliError::Read { what, source })?;
    // Other white space is not removed: a token with it is invalid everywhere else too.
    let bare = text.strip_suffix('\n').map_or(text.as_str(), |it| it.strip_suffix('\r').unwrap_or(it));
    Ok(bare.to_owned())
}

fn optional<T: DeserializeOwned>(path: Option<&Path>, what: &str) -> Result<Option<T>, CliError> {
    path.map(|path| document(path, what)).transpose()
}

fn document<T: DeserializeOwned>(path: &Path, what: &str) -> Result<T, CliError> {
    let named = path.display().to_string();
    let text = File::open(path).and_then(|mut file| read(&mut file));
    let text = text.map_err(|source| CliError::Read { what: named.clone(), source })?;
    // The limit for files already bounds the size, so the parser's lower default does not apply.
    let limits = ParseLimits { bytes_max: text.len(), ..ParseLimits::default() };
    let value = parse(text.as_bytes(), &limits)
        .map_err(|error| CliError::Given(format!("{named} is not strict JSON: {}", error.code.as_str())))?;
    serde_json::from_value(value).map_err(|error| CliError::Given(format!("{named} is not {what}: {error}")))
}

fn read(from: &mut dyn Read) -> io::Result<String> {
    let mut text = String::new();
    // A cut file fails to parse, so the limit needs no error of its own.
    from.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}
