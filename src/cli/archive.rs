//! `archive list|verify|restore`: archived versions, which are in files and no longer in the database.

use std::path::Path;

use countersign_adapters::archives::{Archives, read_bounded, unpacked};
use countersign_domain::json::parse::{ParseLimits, parse};
use countersign_domain::keys::PublicKeys;
use countersign_domain::threads::archive::{Archive, ArchiveContent, PLAIN_BYTES_MAX, check};
use serde_json::{Value, json};

use super::args;
use super::output::CommandOutput;
use super::{CliError, CommandExit, open_service};
use crate::config::{Config, ConfigError};

/// Runs `archive …`.
pub fn run(
    command: &args::ArchiveCommand,
    config: impl FnOnce() -> Result<Config, ConfigError>,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    match command {
        // Files are verified offline, so this must work without a configuration.
        args::ArchiveCommand::Verify(ask) => verify(ask, out),
        args::ArchiveCommand::List(ask) => list(ask, &config()?, out),
        args::ArchiveCommand::Restore(ask) => restore(ask, &config()?, out),
    }
}

fn list(ask: &args::ArchiveList, config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
    let of = ask.thread.clone();
    let found = open_service::with_service(config, |it| async move { it.archive.list_archives(of.as_ref()).await })?;
    let archives = Archives::in_folder(&config.archives);
    let line = |it: &Archive| {
        let (place, bytes) = (archives.path(it), it.bytes);
        let erased = if it.kept.has_values() { "" } else { ", its values erased" };
        format!("{} {} to {}: {bytes} bytes in {}{erased}", it.thread, it.from, it.to, place.display())
    };
    let lines: Vec<String> = found.iter().map(line).collect();
    let text = if lines.is_empty() { "no archives".to_owned() } else { lines.join("\n") };
    let told = |it: &Archive| {
        let (file, kept) = (it.file, it.kept.word());
        json!({"thread": it.thread, "from": it.from, "to": it.to, "bytes": it.bytes, "kept": kept, "sha256": file,
            "path": archives.path(it)})
    };
    out.answer(text, || json!({"archives": found.iter().map(told).collect::<Vec<_>>()}))?;
    Ok(CommandExit::Yes)
}

fn verify(ask: &args::ArchiveVerify, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    let jwks = read(&ask.jwks)?;
    // The limit for files already bounds the size, so the parser's lower default does not apply.
    let keys = parse(&jwks, &ParseLimits { bytes_max: jwks.len(), ..ParseLimits::default() }).ok();
    let keys = keys.and_then(|it| PublicKeys::from_jwks(&it).ok());
    let keys = keys.ok_or_else(|| {
        CliError::Given(format!(
            "{} is not a set of published keys: save the response of `GET /.well-known/jwks.json`",
            ask.jwks.display()
        ))
    })?;
    let (mut lines, mut told, mut sound) = (Vec::new(), Vec::new(), true);
    for file in &ask.files {
        let name = file.display();
        let content = unpacked(&read(file)?, PLAIN_BYTES_MAX).and_then(|it| ArchiveContent::read(&it));
        let checked = match &content {
            None => Err("the file is not an archive, or it is incomplete".to_owned()),
            Some(content) => check(content, &keys).map_err(|error| error.to_string()),
        };
        // The other files are still checked, so that one run lists all problems.
        sound &= checked.is_ok();
        let (line, said) = answer(&name.to_string(), content.as_ref(), checked.err());
        lines.push(line);
        told.push(said);
    }
    out.answer(lines.join("\n"), || json!({"sound": sound, "files": told}))?;
    Ok(if sound { CommandExit::Yes } else { CommandExit::No })
}

fn answer(name: &str, content: Option<&ArchiveContent>, why: Option<String>) -> (String, Value) {
    match (content, why) {
        (Some(content), None) => {
            let (thread, versions) = (content.thread(), content.versions());
            let (from, to) = (versions.start(), versions.end());
            let values = content.has_values();
            let words = if values { "" } else { "; their values are erased" };
            let line = format!("{name}: sound, versions {from} to {to} of {thread}, linked and signed{words}");
            (line, json!({"file": name, "sound": true, "thread": thread, "from": from, "to": to, "values": values}))
        }
        (_, why) => {
            let why = why.unwrap_or_default();
            (format!("{name}: not sound, {why}"), json!({"file": name, "sound": false, "detail": why}))
        }
    }
}

fn restore(ask: &args::ArchiveRestore, config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
    let (by, thread) = (open_service::principal(), ask.thread.clone());
    let count =
        open_service::with_service(config, |it| async move { it.archive.restore_archives(&by, &thread).await })?;
    let text = format!("restored {count} archives of {} to the database", ask.thread);
    out.answer(text, || json!({"thread": ask.thread, "restored": count}))?;
    Ok(CommandExit::Yes)
}

fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    read_bounded(path, PLAIN_BYTES_MAX).map_err(|source| CliError::Read { what: path.display().to_string(), source })
}
