//! `guard`: checks states in files with the state guard, and writes them. Works offline and without a database.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use countersign_domain::guard::{
    AllowedTransition, GuardCode, GuardConfigCode, GuardViolation, NormalizedState, SchemaDialect, StateGuard,
    ViolationSubject, Violations,
};
use countersign_domain::json::parse::BYTES_MAX;
use countersign_domain::json::pointer::Pointer;
use serde_json::{Value, json};

use super::args;
use super::output::{CommandOutput, OutputFormat};
use super::{CliError, CommandExit, causes};
use crate::state_file::{AllowedRoots, PreviousContent, RootsError, StateCommit, StateFileError, WrittenState, commit};

/// One byte more than the limit, so that a longer state is detected.
const READ_BYTES_MAX: u64 = BYTES_MAX as u64 + 1;

#[cfg(test)]
mod tests;

const FITS: &str = "the state fits the schema";
const MAY_FOLLOW: &str = "the proposed state fits the schema and may follow the current one";
const WRITTEN: &str = "the state was written";

/// Runs the check. With `--json` an unclear result is JSON on standard output too, so that scripts read one format.
pub fn run(command: &args::GuardCommand, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    match judge(command) {
        Ok((dialect, verdict)) => tell(dialect, verdict, out),
        Err(unclear) if out.form() == OutputFormat::Json => could_not_tell(&unclear, out),
        Err(unclear) => Err(*unclear.error),
    }
}

fn tell(dialect: SchemaDialect, verdict: GuardResult, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    match verdict {
        GuardResult::Passed { message, state, previous, file } => {
            let passed =
                PassedState { dialect, message, state: &state, previous: previous.as_ref(), file: file.as_ref() };
            out.answer(passed.text("verified"), || passed.json(GuardStatus::Verified))?;
            // Exit code 0 means that the state is valid and, for a commit, that it survives a crash.
            Ok(CommandExit::Yes)
        }
        GuardResult::Blocked { found, cause } => blocked(dialect, &found, cause.as_ref(), out),
        GuardResult::Unsynced { committed, cause } => {
            let WrittenState { state, previous, .. } = &*committed;
            let file = FileWritten::of(&committed);
            let passed = PassedState {
                dialect,
                message: GuardCode::Unsynced.detail(),
                state,
                previous: previous.as_ref(),
                file: Some(&file),
            };
            out.answer(format_args!("{}\n{cause}", passed.text("could not tell")), || {
                let mut answer = passed.json(GuardStatus::CouldNotTell);
                answer["code"] = GuardCode::Unsynced.as_str().into();
                answer["cause"] = cause.to_string().into();
                answer
            })?;
            // The file is replaced, so 1 would be wrong, and it may not survive a crash, so 0 would be too.
            Ok(CommandExit::CouldNotTell)
        }
    }
}

enum GuardResult {
    Passed {
        message: &'static str,
        state: NormalizedState,
        previous: Option<NormalizedState>,
        file: Option<FileWritten>,
    },
    Blocked {
        found: Violations,
        cause: Option<io::Error>,
    },
    Unsynced {
        committed: Box<WrittenState>,
        cause: io::Error,
    },
}

impl From<Violations> for GuardResult {
    fn from(found: Violations) -> Self {
        Self::Blocked { found, cause: None }
    }
}

/// A file that was written.
struct FileWritten {
    path: String,
    bytes: usize,
}

impl FileWritten {
    fn of(committed: &WrittenState) -> Self {
        Self { path: committed.path.display().to_string(), bytes: committed.bytes }
    }
}

struct GuardError {
    code: &'static str,
    pointer: Pointer,
    error: Box<CliError>,
}

fn judge(command: &args::GuardCommand) -> Result<(SchemaDialect, GuardResult), GuardError> {
    let (schema, dialect, rules) = command.files();
    let guard = guard(schema, rules)?;
    // A script that expects the stricter dialect must not pass with the other one.
    if let Some(wanted) = dialect.filter(|it| *it != guard.dialect()) {
        let (wanted, found) = (wanted.as_str(), guard.dialect().as_str());
        let text = format!("{}: the schema is in the dialect {found}, not {wanted}", GuardConfigCode::Schema.as_str());
        let error = Box::new(CliError::Given(text));
        return Err(GuardError { code: GuardConfigCode::Schema.as_str(), pointer: Pointer::root(), error });
    }
    let verdict = match command {
        args::GuardCommand::Payload(it) => {
            let passed = |state| GuardResult::Passed { message: FITS, state, previous: None, file: None };
            guard.check(&read(&it.proposed)?).map_or_else(GuardResult::from, passed)
        }
        args::GuardCommand::Transition(it) => {
            let judged = guard.transition(&read(&it.current)?, &read(&it.proposed)?);
            judged.map_or_else(GuardResult::from, |AllowedTransition { previous, proposed }| GuardResult::Passed {
                message: MAY_FOLLOW,
                state: proposed,
                previous: Some(previous),
                file: None,
            })
        }
        args::GuardCommand::Commit(it) => {
            let current = read(&it.current)?;
            let before = if it.absent { PreviousContent::Elsewhere(&current) } else { PreviousContent::Held(&current) };
            let request = StateCommit { target: &it.target, before, proposed: &read(&it.proposed)? };
            written(commit(&guard, &roots(&it.roots)?, &request))
        }
        args::GuardCommand::Create(it) => {
            let request =
                StateCommit { target: &it.target, before: PreviousContent::Nothing, proposed: &read(&it.proposed)? };
            written(commit(&guard, &roots(&it.roots)?, &request))
        }
    };
    Ok((guard.dialect(), verdict))
}

fn written(result: Result<WrittenState, StateFileError>) -> GuardResult {
    match result {
        Ok(committed) => GuardResult::Passed {
            message: WRITTEN,
            file: Some(FileWritten::of(&committed)),
            state: committed.state,
            previous: committed.previous,
        },
        Err(StateFileError::Blocked { found, cause }) => GuardResult::Blocked { found, cause },
        Err(StateFileError::Unsynced { committed, cause }) => GuardResult::Unsynced { committed, cause },
    }
}

fn guard(schema: &Path, rules: Option<&Path>) -> Result<StateGuard, GuardError> {
    let schema = read(schema)?;
    let rules = rules.map(read).transpose()?;
    StateGuard::new(&schema, rules.as_deref()).map_err(|error| {
        let code = error.code.as_str();
        GuardError { code, error: Box::new(CliError::Given(format!("{code}: {error}"))), pointer: error.at }
    })
}

fn roots(folders: &[PathBuf]) -> Result<AllowedRoots, GuardError> {
    AllowedRoots::new(folders.iter().cloned()).map_err(|error| {
        let (code, pointer) = (RootsError::CODE, Pointer::root());
        GuardError { code, pointer, error: Box::new(CliError::Given(format!("{code}: {error}"))) }
    })
}

fn read(path: &Path) -> Result<Vec<u8>, GuardError> {
    let mut text = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(READ_BYTES_MAX).read_to_end(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(READ_BYTES_MAX).read_to_end(&mut text))
    };
    match read {
        Ok(_) => Ok(text),
        Err(source) => {
            let error = CliError::Read { what: path.display().to_string(), source };
            Err(GuardError { code: "unreadable", pointer: Pointer::root(), error: Box::new(error) })
        }
    }
}

fn could_not_tell(unclear: &GuardError, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    // Only `--json` leads here, so there is no text.
    out.answer("", || {
        let mut answer = GuardStatus::CouldNotTell.json(&causes(&*unclear.error));
        answer["code"] = unclear.code.into();
        answer["pointer"] = unclear.pointer.as_str().into();
        answer
    })?;
    Ok(CommandExit::CouldNotTell)
}

/// The result, in the words for people, for scripts and of AgentStateGuard.
#[derive(Clone, Copy)]
enum GuardStatus {
    Verified,
    Blocked,
    CouldNotTell,
}

impl GuardStatus {
    fn json(self, message: &str) -> Value {
        let (verdict, status) = match self {
            Self::Verified => ("verified", "VERIFIED"),
            Self::Blocked => ("blocked", "BLOCKED"),
            Self::CouldNotTell => ("could_not_tell", "UNKNOWN"),
        };
        json!({
            "verdict": verdict, "verified": matches!(self, Self::Verified), "status": status, "message": message,
        })
    }
}

struct PassedState<'a> {
    dialect: SchemaDialect,
    message: &'static str,
    state: &'a NormalizedState,
    previous: Option<&'a NormalizedState>,
    file: Option<&'a FileWritten>,
}

impl PassedState<'_> {
    fn text(&self, verdict: &str) -> String {
        let mut text = format!("{verdict}: {}\n{}", self.message, self.state.proof());
        if let Some(FileWritten { path, bytes }) = self.file {
            write!(text, "\n{path}: {bytes} bytes").expect("text grows");
        }
        text
    }

    fn json(&self, status: GuardStatus) -> Value {
        let mut answer = status.json(self.message);
        answer["dialect"] = self.dialect.as_str().into();
        answer["proof"] = self.state.proof().into();
        answer["normalized_state"] = self.state.state.clone();
        // Members without content are omitted, so that a script only checks whether a member exists.
        if let Some(previous) = self.previous {
            answer["normalized_previous_state"] = previous.state.clone();
        }
        if let Some(FileWritten { path, bytes }) = self.file {
            answer["committed_path"] = path.as_str().into();
            answer["committed_bytes"] = (*bytes).into();
        }
        answer
    }
}

fn blocked(
    dialect: SchemaDialect,
    found: &Violations,
    cause: Option<&io::Error>,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    let mut text = String::from("blocked");
    for it in &found.list {
        write!(text, "\n{}", line(it)).expect("text grows");
    }
    if found.omitted > 0 {
        write!(text, "\nand {} more", found.omitted).expect("text grows");
    }
    if let Some(cause) = cause {
        write!(text, "\n{cause}").expect("text grows");
    }
    out.answer(text, || {
        let first = found.list.first();
        let mut answer = GuardStatus::Blocked.json(first.map_or("", |it| it.code.detail()));
        answer["dialect"] = dialect.as_str().into();
        // These members repeat the first violation, so that a script that needs one code reads no list.
        answer["code"] = first.map(|it| it.code.as_str()).into();
        answer["error_code"] = first.map(|it| it.alias.as_str()).into();
        answer["pointer"] = first.map(|it| it.pointer.as_str()).into();
        answer["errors"] = found.list.iter().map(row).collect();
        answer["omitted"] = found.omitted.into();
        if let Some(cause) = cause {
            answer["cause"] = cause.to_string().into();
        }
        answer
    })?;
    Ok(CommandExit::No)
}

fn line(it: &GuardViolation) -> String {
    let (code, detail, alias) = (it.code.as_str(), it.code.detail(), it.alias.as_str());
    match it.subject {
        ViolationSubject::Proposed => format!("{code} at {:?}: {detail} [{alias}]", it.pointer.as_str()),
        ViolationSubject::Current => {
            format!("{code} at {:?} of the current state: {detail} [{alias}]", it.pointer.as_str())
        }
        // These violations are not about a value of a state, so they have no pointer.
        ViolationSubject::Rules | ViolationSubject::Target => format!("{code}: {detail} [{alias}]"),
    }
}

fn row(it: &GuardViolation) -> Value {
    json!({
        "code": it.code.as_str(), "error_code": it.alias.as_str(), "in": it.subject.as_str(), "pointer": it.pointer,
        "detail": it.code.detail(),
    })
}
