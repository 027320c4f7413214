//! `episode verify|show|export|import`: verifies and shows run artifacts offline, and exports and imports them.

mod import;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use countersign_adapters::random;
use countersign_domain::episode::event_line::EventRecord;
use countersign_domain::episode::finding::{RunFinding, RunNote};
use countersign_domain::episode::verify::{
    CheckExtent, Folder, RunFolder, RunReport, RunVerification, SignatureRequirement, verify,
};
use countersign_domain::identity::party::Party;
use countersign_domain::json::parse::{BYTES_MAX, ParseLimits, parse};
use countersign_domain::keys::PublicKeys;
use countersign_domain::primitives::sanitize::printed_line;
use serde_json::{Value, json};

use super::args;
use super::output::CommandOutput;
use super::{CliError, CommandExit, open_service};
use crate::config::{Config, ConfigError};
use crate::episode_folder;

/// The limit on the excerpt of an event, so that it fits into a line of a terminal.
const EXCERPT_CHARS: usize = 100;

/// Runs `episode …`.
pub fn run(
    command: &args::EpisodeCommand,
    config: impl FnOnce() -> Result<Config, ConfigError>,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    match command {
        args::EpisodeCommand::Verify(it) => {
            let keys = it.jwks.as_deref().map(keys).transpose()?;
            let (_, report) =
                checked(&it.folder, keys.as_ref().map_or(SignatureRequirement::Unchecked, SignatureRequirement::By))?;
            out.answer(told(&report), || report.json())?;
            Ok(exit(&report))
        }
        args::EpisodeCommand::Show(it) => {
            // Without trusted keys a signature proves nothing, so it is not checked.
            let (run, report) = checked(&it.folder, SignatureRequirement::Unchecked)?;
            out.answer(shown(&run, &report), || {
                let events: Vec<&EventRecord> = run.lines.iter().map(|it| &it.record).collect();
                json!({"verified": report.json(), "state": run.state, "events": events})
            })?;
            Ok(exit(&report))
        }
        args::EpisodeCommand::Export(it) => export(it, &config()?, out),
        args::EpisodeCommand::Import(it) => import::run(it, &config()?, out),
    }
}

fn export(asked: &args::EpisodeExport, config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
    let thread = asked.thread.clone();
    let files = open_service::with_service(config, |service| async move {
        // The command exports as much as the host application may read, so redaction applies here too.
        service.episodes.files_of_run("command line", &Party::Receiver, &thread).await
    })?;
    written(&asked.out, &files)?;
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let (folder, thread) = (asked.out.display().to_string(), &asked.thread);
    let text = format!("{folder}: {} of {thread}", names.join(", "));
    out.answer(text, || json!({"folder": folder, "thread": thread, "files": names}))?;
    Ok(CommandExit::Yes)
}

/// Writes the files of a run into a new folder.
pub(super) fn written(folder: &Path, files: &[(String, Vec<u8>)]) -> Result<(), CliError> {
    let named: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    // The random name is for the draft, which gets the folder's own name only when it is complete.
    let put = episode_folder::write(folder, &random::uuid_v4().simple().to_string(), &named);
    put.map_err(|source| CliError::Write { what: folder.display().to_string(), source })
}

fn checked(folder: &Path, signature: SignatureRequirement<'_>) -> Result<(RunFolder, RunReport), CliError> {
    Ok(verify(&read(folder)?, signature))
}

pub(super) fn read(folder: &Path) -> Result<Folder, CliError> {
    let read = episode_folder::read(folder);
    read.map_err(|source| CliError::Read { what: folder.display().to_string(), source })
}

fn exit(report: &RunReport) -> CommandExit {
    match report.verdict() {
        RunVerification::Verified => CommandExit::Yes,
        RunVerification::Refused => CommandExit::No,
        RunVerification::CouldNotTell => CommandExit::CouldNotTell,
    }
}

fn keys(path: &Path) -> Result<PublicKeys, CliError> {
    let what = path.display().to_string();
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BYTES_MAX as u64 + 1).read_to_end(&mut text));
    read.map_err(|source| CliError::Read { what: what.clone(), source })?;
    let value = parse(&text, &ParseLimits::default())
        .map_err(|error| CliError::Given(format!("{what} is not strict JSON: {}", error.code.as_str())))?;
    PublicKeys::from_jwks(&value).map_err(|error| CliError::Given(format!("{what} is not a valid key set: {error}")))
}

fn told(report: &RunReport) -> String {
    let mut text = String::new();
    for RunFinding { code, file, line, about } in &report.findings {
        let place = place(file, *line, about.as_deref());
        writeln!(text, "wrong  {place}: {} [{}]", code.detail(), code.as_str()).expect("text grows");
    }
    if report.omitted > 0 {
        writeln!(text, "wrong  and {} more", report.omitted).expect("text grows");
    }
    for RunNote { code, file, line, about } in &report.notes {
        let place = place(file, *line, about.as_deref());
        writeln!(text, "note   {place}: {} [{}]", code.detail(), code.as_str()).expect("text grows");
    }
    for extent in CheckExtent::ALL {
        let parts = report.parts.named(extent);
        if !parts.is_empty() {
            writeln!(text, "{:<10}{}", extent.as_str(), parts.join(", ")).expect("text grows");
        }
    }
    text.push_str(match report.verdict() {
        RunVerification::Verified => "verified: these are the run's files, and they belong together",
        RunVerification::Refused => "refused: these are not the run's artifacts",
        RunVerification::CouldNotTell => "could not tell: no errors, but nothing proves that the files are complete",
    });
    text
}

fn place(file: &str, line: Option<usize>, about: Option<&str>) -> String {
    let mut place = printed_line(file);
    if let Some(line) = line {
        write!(place, ":{line}").expect("text grows");
    }
    if let Some(about) = about {
        write!(place, " ({})", printed_line(about)).expect("text grows");
    }
    place
}

fn shown(run: &RunFolder, report: &RunReport) -> String {
    let mut text = String::new();
    if let Some(state) = &run.state {
        text.push_str(&state_shown(state));
    }
    text.push_str("\ntimeline\n");
    for line in &run.lines {
        let EventRecord { timestamp, phase, event_type, agent_id, .. } = &line.record;
        let what = event_type.as_deref().unwrap_or(phase);
        // The author of the folder chose these texts, so they are sanitized for the terminal.
        let (at, what, who) = (printed_line(timestamp), printed_line(what), printed_line(agent_id));
        writeln!(text, "  {at}  {what:<24} {who:<20} {}", gist(&line.record)).expect("text grows");
    }
    text.push('\n');
    text.push_str(&told(report));
    text
}

fn state_shown(state: &Value) -> String {
    // The state of another system can lack members and contain any text.
    let line = |value: &Value| printed_line(value.as_str().unwrap_or("-"));
    let mut text = format!(
        "episode  {}\ngoal     {}\nstarted  {}\nstatus   {}\n",
        line(&state["episode"]["id"]),
        line(&state["goal"]["task"]),
        line(&state["episode"]["started_at"]),
        line(&state["outcomes"]["status"]),
    );
    if let Some(summary) = state["outcomes"]["summary"].as_str() {
        writeln!(text, "summary  {}", printed_line(summary)).expect("text grows");
    }
    text.push_str("\nplan\n");
    for step in state["plan"]["steps"].as_array().into_iter().flatten() {
        let (status, kind) = (line(&step["status"]), line(&step["kind"]));
        writeln!(text, "  {status:<8} {kind:<8} {}", line(&step["description"])).expect("text grows");
    }
    text
}

/// Returns the first of the members that describe an event best.
fn gist(record: &EventRecord) -> String {
    const TELLING: [&str; 7] = ["message", "task", "input_excerpt", "rationale", "reason", "tool", "outcome"];
    let said = TELLING.iter().find_map(|it| record.text(it)).unwrap_or_default();
    let cut: String = said.chars().take(EXCERPT_CHARS).collect();
    printed_line(&cut)
}
