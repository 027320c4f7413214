//! `episode import`: imports the folder of a run as a read-only thread.

use countersign_domain::episode::imported::{RunImport, RunSigner};
use countersign_domain::primitives::sanitize::printed_line;
use countersign_service::episodes::import::ImportOutcome;
use serde_json::{Value, json};

use super::{exit, keys, read, told};
use crate::cli::args;
use crate::cli::output::CommandOutput;
use crate::cli::{CliError, CommandExit, open_service};
use crate::config::Config;

/// Verifies the folder, and imports it if it has no errors.
pub(super) fn run(
    asked: &args::EpisodeImport,
    config: &Config,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
    let given = asked.jwks.as_deref().map(keys).transpose()?;
    let (folder, by) = (read(&asked.folder)?, open_service::principal());
    let done = open_service::with_service(config, |service| async move {
        service.episodes.import_episode(&by, &folder, given.as_ref()).await
    })?;
    match done {
        ImportOutcome::Refused(report) => {
            let text = format!("{}\nnothing was imported", told(&report));
            out.answer(text, || json!({"imported": false, "report": report.json()}))?;
            Ok(exit(&report))
        }
        ImportOutcome::Kept(import, report) => {
            let text = format!("{}\n{}: imported, {}", told(&report), import.id, vouched(&import.voucher));
            out.answer(text, || answer(&import, &report.json()))?;
            Ok(CommandExit::Yes)
        }
        // A repeated import has the wanted result, so it succeeds.
        ImportOutcome::KeptBefore(import, report) => {
            let text = format!("{}: was imported before, {}", import.id, vouched(&import.voucher));
            out.answer(text, || answer(&import, &report.json()))?;
            Ok(CommandExit::Yes)
        }
    }
}

fn answer(import: &RunImport, report: &Value) -> Value {
    let voucher = match &import.voucher {
        RunSigner::Nobody {} => json!({"by": "nobody"}),
        RunSigner::Unchecked { kid } => json!({"by": "unchecked", "kid": kid}),
        RunSigner::Gateway { kid } => json!({"by": "gateway", "kid": kid}),
        RunSigner::Other { issuer, kid, .. } => json!({"by": "other", "issuer": issuer, "kid": kid}),
    };
    json!({
        "imported": true, "thread": import.id, "episode_id": import.episode_id, "at": import.at, "signed": voucher,
        "report": report,
    })
}

fn vouched(voucher: &RunSigner) -> String {
    match voucher {
        RunSigner::Nobody {} => "signed by nobody".to_owned(),
        // An unchecked manifest can contain any text as its key, so it is sanitized.
        RunSigner::Unchecked { kid } => format!("signed by {}, which was not checked", printed_line(kid)),
        RunSigner::Gateway { kid } => format!("signed by this gateway ({kid})"),
        RunSigner::Other { issuer, kid, .. } => format!("signed by {} ({kid})", printed_line(issuer)),
    }
}
