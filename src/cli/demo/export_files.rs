//! Writes the files that an auditor needs (receipt, entry, statement and published keys) and prints the commands that
//! verify them.

use std::path::Path;

use serde_json::Value;

use super::DemoSetup;
use super::client::{DemoMachine, DemoRequest};
use crate::cli::CliError;

/// Writes the files of one approved version.
pub(super) async fn keep(
    host: &DemoMachine,
    stage: &DemoSetup,
    thread: &str,
    decision: &Value,
) -> Result<String, CliError> {
    let chain = host.ask_quietly(DemoRequest::Get(format!("/v1/threads/{thread}/chain"))).await?.must_be(200)?;
    let jwks = host.ask_quietly(DemoRequest::Get("/.well-known/jwks.json".to_owned())).await?.must_be(200)?;
    let version = chain.body["entries"]
        .as_array()
        // The attacks have committed another version since, so the approved one is not the last.
        .and_then(|entries| entries.iter().find(|it| it["transition"] == decision["transition_digest"]))
        .ok_or_else(|| CliError::Demo("the approved version is not in the chain".to_owned()))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    put(&stage.data, "receipt.jwt", &text(&decision["receipt"]))?;
    put(&stage.data, "entry.jwt", &text(&version["entry"]))?;
    put(&stage.data, "statement.json", &version["statement"].to_string())?;
    put(&stage.data, "jwks.json", &jwks.body.to_string())?;
    let (program, folder) = (program(), stage.data.display());
    Ok(format!(
        // The receipt expires, so the printed command names a time at which it was valid.
        "  {program} verify {folder}/receipt.jwt --jwks {folder}/jwks.json --entry {folder}/entry.jwt \
         --statement {folder}/statement.json --at {}",
        countersign_adapters::clock::Clock::now(&countersign_adapters::clock::SystemClock)
    ))
}

/// Returns the command that audits the demo's database.
pub(super) fn audit_line(stage: &DemoSetup) -> String {
    format!("  {} audit --data {}", program(), stage.data.display())
}

/// Returns the commands that verify and show the run artifacts of the `refunds` flow.
pub(super) fn episode_lines(folder: &Path) -> String {
    let (program, folder) = (program(), folder.display());
    format!(
        "  (One of its refunds was a run of agents. Its run artifacts are in a folder and can be verified:\n  \
         {program} episode verify {folder}\n  {program} episode show {folder}\n  jq .outcomes.status {folder}/state.json)"
    )
}

/// Returns the path of this program, so that printed commands work without the program in the path.
fn program() -> String {
    std::env::current_exe().map_or_else(|_| "countersign".to_owned(), |it| it.display().to_string())
}

fn put(folder: &Path, name: &str, content: &str) -> Result<(), CliError> {
    let written = std::fs::write(folder.join(name), content);
    written.map_err(|error| CliError::Demo(format!("{name} cannot be written: {error}")))
}
