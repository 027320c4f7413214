//! `guard`: judges states in files, and writes them. No gateway, no network, no database.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::args;
use super::output::{Form, Output};
use super::{CliError, Exit, causes};
use crate::domain::guard::{Allowed, Code, ConfigCode, Dialect, Guard, Normal, Subject, Violation, Violations};
use crate::domain::json::parse::BYTES_MAX;
use crate::domain::json::pointer::Pointer;
use crate::state_file::{Before, Commit, Committed, Refused, Roots, RootsError, commit};

/// One byte more than a state may have, so that a longer one is told as such.
const READ_BYTES_MAX: u64 = BYTES_MAX as u64 + 1;

#[cfg(test)]
mod tests;

const FITS: &str = "the state fits the schema";
const MAY_FOLLOW: &str = "the proposed state fits the schema and may follow the current one";
const WRITTEN: &str = "the state was written";

/// Judges. What could not be judged is told in JSON too, where JSON is asked for: scripts read one thing.
pub fn run(command: &args::Guard, out: &mut Output<'_>) -> Result<Exit, CliError> {
    match judge(command) {
        Ok((dialect, verdict)) => tell(dialect, verdict, out),
        Err(unclear) if out.form() == Form::Json => could_not_tell(&unclear, out),
        Err(unclear) => Err(*unclear.error),
    }
}

fn tell(dialect: Dialect, verdict: Verdict, out: &mut Output<'_>) -> Result<Exit, CliError> {
    match verdict {
        Verdict::Passed { message, state, previous, file } => {
            let passed = Passed { dialect, message, state: &state, previous: previous.as_ref(), file: file.as_ref() };
            out.answer(passed.text("verified"), || passed.json(Status::Verified))?;
            Ok(Exit::Yes)
        }
        Verdict::Blocked { found, cause } => blocked(dialect, &found, cause.as_ref(), out),
        Verdict::Unsynced { committed, cause } => {
            let Committed { state, previous, .. } = &*committed;
            let file = FileWritten::of(&committed);
            let passed = Passed {
                dialect,
                message: Code::Unsynced.detail(),
                state,
                previous: previous.as_ref(),
                file: Some(&file),
            };
            out.answer(format_args!("{}\n{cause}", passed.text("could not tell")), || {
                let mut answer = passed.json(Status::CouldNotTell);
                answer["code"] = Code::Unsynced.as_str().into();
                answer["cause"] = cause.to_string().into();
                answer
            })?;
            Ok(Exit::CouldNotTell)
        }
    }
}

/// What the guard says.
enum Verdict {
    Passed { message: &'static str, state: Normal, previous: Option<Normal>, file: Option<FileWritten> },
    Blocked { found: Violations, cause: Option<io::Error> },
    Unsynced { committed: Box<Committed>, cause: io::Error },
}

impl From<Violations> for Verdict {
    fn from(found: Violations) -> Self {
        Self::Blocked { found, cause: None }
    }
}

/// Where a state was written.
struct FileWritten {
    path: String,
    bytes: usize,
}

impl FileWritten {
    fn of(committed: &Committed) -> Self {
        Self { path: committed.path.display().to_string(), bytes: committed.bytes }
    }
}

/// Why there is no verdict.
struct Unclear {
    code: &'static str,
    pointer: Pointer,
    error: Box<CliError>,
}

fn judge(command: &args::Guard) -> Result<(Dialect, Verdict), Unclear> {
    let (schema, dialect, rules) = command.files();
    let guard = guard(schema, rules)?;
    if let Some(wanted) = dialect.filter(|it| *it != guard.dialect()) {
        let (wanted, found) = (wanted.as_str(), guard.dialect().as_str());
        let text = format!("{}: the schema is in the dialect {found}, not {wanted}", ConfigCode::Schema.as_str());
        let error = Box::new(CliError::Given(text));
        return Err(Unclear { code: ConfigCode::Schema.as_str(), pointer: Pointer::root(), error });
    }
    let verdict = match command {
        args::Guard::Payload(it) => {
            let passed = |state| Verdict::Passed { message: FITS, state, previous: None, file: None };
            guard.check(&read(&it.proposed)?).map_or_else(Verdict::from, passed)
        }
        args::Guard::Transition(it) => {
            let judged = guard.transition(&read(&it.current)?, &read(&it.proposed)?);
            judged.map_or_else(Verdict::from, |Allowed { previous, proposed }| Verdict::Passed {
                message: MAY_FOLLOW,
                state: proposed,
                previous: Some(previous),
                file: None,
            })
        }
        args::Guard::Commit(it) => {
            let current = read(&it.current)?;
            let before = if it.absent { Before::Elsewhere(&current) } else { Before::Held(&current) };
            let request = Commit { target: &it.target, before, proposed: &read(&it.proposed)? };
            written(commit(&guard, &roots(&it.roots)?, &request))
        }
        args::Guard::Create(it) => {
            let request = Commit { target: &it.target, before: Before::Nothing, proposed: &read(&it.proposed)? };
            written(commit(&guard, &roots(&it.roots)?, &request))
        }
    };
    Ok((guard.dialect(), verdict))
}

fn written(result: Result<Committed, Refused>) -> Verdict {
    match result {
        Ok(committed) => Verdict::Passed {
            message: WRITTEN,
            file: Some(FileWritten::of(&committed)),
            state: committed.state,
            previous: committed.previous,
        },
        Err(Refused::Blocked { found, cause }) => Verdict::Blocked { found, cause },
        Err(Refused::Unsynced { committed, cause }) => Verdict::Unsynced { committed, cause },
    }
}

fn guard(schema: &Path, rules: Option<&Path>) -> Result<Guard, Unclear> {
    let schema = read(schema)?;
    let rules = rules.map(read).transpose()?;
    Guard::new(&schema, rules.as_deref()).map_err(|error| {
        let code = error.code.as_str();
        Unclear { code, error: Box::new(CliError::Given(format!("{code}: {error}"))), pointer: error.at }
    })
}

fn roots(folders: &[PathBuf]) -> Result<Roots, Unclear> {
    Roots::new(folders.iter().cloned()).map_err(|error| {
        let (code, pointer) = (RootsError::CODE, Pointer::root());
        Unclear { code, pointer, error: Box::new(CliError::Given(format!("{code}: {error}"))) }
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Unclear> {
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
            Err(Unclear { code: "unreadable", pointer: Pointer::root(), error: Box::new(error) })
        }
    }
}

fn could_not_tell(unclear: &Unclear, out: &mut Output<'_>) -> Result<Exit, CliError> {
    out.answer("", || {
        let mut answer = Status::CouldNotTell.json(&causes(&*unclear.error));
        answer["code"] = unclear.code.into();
        answer["pointer"] = unclear.pointer.as_str().into();
        answer
    })?;
    Ok(Exit::CouldNotTell)
}

/// How it ended, for people, for scripts, and as AgentStateGuard says it.
#[derive(Clone, Copy)]
enum Status {
    Verified,
    Blocked,
    CouldNotTell,
}

impl Status {
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

/// A state that passed.
struct Passed<'a> {
    dialect: Dialect,
    message: &'static str,
    state: &'a Normal,
    previous: Option<&'a Normal>,
    file: Option<&'a FileWritten>,
}

impl Passed<'_> {
    fn text(&self, verdict: &str) -> String {
        let mut text = format!("{verdict}: {}\n{}", self.message, self.state.proof());
        if let Some(FileWritten { path, bytes }) = self.file {
            write!(text, "\n{path}: {bytes} bytes").expect("text grows");
        }
        text
    }

    fn json(&self, status: Status) -> Value {
        let mut answer = status.json(self.message);
        answer["dialect"] = self.dialect.as_str().into();
        answer["proof"] = self.state.proof().into();
        answer["normalized_state"] = self.state.state.clone();
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
    dialect: Dialect,
    found: &Violations,
    cause: Option<&io::Error>,
    out: &mut Output<'_>,
) -> Result<Exit, CliError> {
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
        let mut answer = Status::Blocked.json(first.map_or("", |it| it.code.detail()));
        answer["dialect"] = dialect.as_str().into();
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
    Ok(Exit::No)
}

fn line(it: &Violation) -> String {
    let (code, detail, alias) = (it.code.as_str(), it.code.detail(), it.alias.as_str());
    match it.subject {
        Subject::Proposed => format!("{code} at {:?}: {detail} [{alias}]", it.pointer.as_str()),
        Subject::Current => format!("{code} at {:?} of the current state: {detail} [{alias}]", it.pointer.as_str()),
        Subject::Rules | Subject::Target => format!("{code}: {detail} [{alias}]"),
    }
}

fn row(it: &Violation) -> Value {
    json!({
        "code": it.code.as_str(), "error_code": it.alias.as_str(), "in": it.subject.as_str(), "pointer": it.pointer,
        "detail": it.code.detail(),
    })
}
