//! `guard`: judges states in files. No gateway, no network, no database, and nothing is written.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};

use super::args;
use super::output::Output;
use super::{CliError, Exit};
use crate::domain::guard::{Guard, Normal, Violations};
use crate::domain::json::parse::BYTES_MAX;

/// One byte more than a state may have, so that a longer one is told as such.
const READ_BYTES_MAX: u64 = BYTES_MAX as u64 + 1;

const FITS: &str = "the state fits the schema";
const MAY_FOLLOW: &str = "the proposed state fits the schema and may follow the current one";

/// Judges.
pub fn run(command: &args::Guard, out: &mut Output<'_>) -> Result<Exit, CliError> {
    match command {
        args::Guard::Check(it) => {
            let guard = guard(&it.schema, it.rules.as_deref())?;
            match guard.check(&read(&it.proposed)?) {
                Ok(state) => verified(FITS, &state, None, out),
                Err(found) => blocked(&found, out),
            }
        }
        args::Guard::Transition(it) => {
            let guard = guard(&it.schema, it.rules.as_deref())?;
            match guard.transition(&read(&it.current)?, &read(&it.proposed)?) {
                Ok(allowed) => verified(MAY_FOLLOW, &allowed.proposed, Some(&allowed.previous), out),
                Err(found) => blocked(&found, out),
            }
        }
        args::Guard::Commit(_) => Err(CliError::NotBuilt("`countersign guard commit`")),
    }
}

fn guard(schema: &Path, rules: Option<&Path>) -> Result<Guard, CliError> {
    let schema = read(schema)?;
    let rules = rules.map(read).transpose()?;
    Guard::new(&schema, rules.as_deref()).map_err(|error| CliError::Given(format!("{}: {error}", error.code.as_str())))
}

fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(READ_BYTES_MAX).read_to_end(&mut text))
        .map_err(|source| CliError::Read { what: path.display().to_string(), source })?;
    Ok(text)
}

fn verified(message: &str, state: &Normal, previous: Option<&Normal>, out: &mut Output<'_>) -> Result<Exit, CliError> {
    let proof = state.proof();
    out.answer(format_args!("verified: {message}\n{proof}"), || {
        let mut answer = json!({
            "verified": true, "status": "VERIFIED", "message": message, "proof": proof, "normalized_state": state.state,
        });
        if let (Value::Object(members), Some(previous)) = (&mut answer, previous) {
            members.insert("normalized_previous_state".to_owned(), previous.state.clone());
        }
        answer
    })?;
    Ok(Exit::Yes)
}

fn blocked(found: &Violations, out: &mut Output<'_>) -> Result<Exit, CliError> {
    let mut text = String::from("blocked");
    for it in &found.list {
        let (code, detail) = (it.code.as_str(), it.code.detail());
        write!(text, "\n{code} at {:?}: {detail} [{}]", it.pointer.as_str(), it.alias.as_str()).expect("text grows");
    }
    if found.omitted > 0 {
        write!(text, "\nand {} more", found.omitted).expect("text grows");
    }
    out.answer(text, || {
        let rows = found.list.iter().map(|it| {
            json!({
                "code": it.code.as_str(), "alias": it.alias.as_str(), "pointer": it.pointer,
                "message": it.code.detail(),
            })
        });
        let first = found.list.first();
        json!({
            "verified": false, "status": "BLOCKED", "error_code": first.map(|it| it.alias.as_str()),
            "message": first.map(|it| it.code.detail()), "violations": rows.collect::<Vec<_>>(),
            "omitted": found.omitted,
        })
    })?;
    Ok(Exit::No)
}
