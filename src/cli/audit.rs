//! `audit`: replays everything that is stored and changes nothing. It can run beside a running gateway, without one, or
//! on a read-only directory.

mod export;

use std::fmt::Write as _;

use countersign_adapters::archives::Archives;
use countersign_adapters::clock::Clock;
use countersign_adapters::keyring::Keyring;
use countersign_service::audit::{AuditReport, audit_with, unreadable};
use countersign_store::StoreError;
use countersign_store::outage::Outage;
use countersign_store::sqlite::OpenError;
use serde_json::json;

use super::args;
use super::output::CommandOutput;
use super::{CliError, CommandExit, open_service};
use crate::config::{Config, ConfigError};
use crate::wiring;
use crate::wiring::GatewayError;

/// Exits with 0 if it finds no problem, 1 with a list of findings, and 2 if there is no database to read.
pub fn run(
    args: &args::AuditCommand,
    config: impl FnOnce() -> Result<Config, ConfigError>,
    clock: &impl Clock,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    match &args.export {
        // An export needs no gateway, so an invalid configuration does not prevent its audit.
        Some(folder) => export::run(folder, args.jwks.as_deref(), out),
        None => stored(&config()?, clock, out),
    }
}

fn stored(config: &Config, clock: &impl Clock, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
    // An audit changes nothing, so a missing keyring is an error and is not created.
    let keyring = Keyring::existing(&config.keyring, config.issuer.as_deref())?;
    let keys = keyring.current()?;
    let report = open_service::block_on(async {
        let store = match wiring::store_to_read(config).await {
            Ok(store) => store,
            // A damaged database is a finding of the audit and not a failure to run it.
            Err(OpenError::Store(StoreError::Unavailable { outage: Outage::Damaged, detail })) => {
                return Ok(unreadable(detail));
            }
            Err(error) => return Err(GatewayError::Open(error).into()),
        };
        let archives = Archives::in_folder(&config.archives);
        let report = audit_with(&*store, Some(&archives), &keys, clock.now()).await;
        report.map_err(|error| CliError::Service(error.into()))
    })?;
    let sound = report.findings.is_empty();
    out.answer(text(&report), || json!({"sound": sound, "report": report}))?;
    Ok(if sound { CommandExit::Yes } else { CommandExit::No })
}

fn text(report: &AuditReport) -> String {
    let mut text = String::new();
    for it in &report.findings {
        writeln!(text, "{} {}: {}", it.table, it.id, it.finding).expect("text grows");
    }
    let AuditReport { rows, threads, versions, events, findings } = report;
    let verdict = match findings.len() {
        0 => "no problems found".to_owned(),
        1 => "1 finding".to_owned(),
        many => format!("{many} findings"),
    };
    write!(text, "{verdict}: {rows} rows, {threads} threads, {versions} versions, {events} events replayed")
        .expect("text grows");
    text
}
