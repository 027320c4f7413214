//! The answers of `init`, from flags and from questions.

use std::io::{self, BufRead, IsTerminal as _, Read as _, Write as _};

use countersign_domain::primitives::id::{FlowId, GroupName};

use crate::cli::CliError;
use crate::cli::args::InitArgs;
use crate::cli::user::read_password;

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 4 * 1024;

/// The source of the answers.
pub struct AnswerSource<'a> {
    pub lines: &'a mut dyn BufRead,
    pub typed: AnswerInput,
}

/// Whether a person can type a password that is not shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnswerInput {
    Terminal,
    File,
}

impl AnswerInput {
    pub fn of_stdin() -> Self {
        if io::stdin().is_terminal() { Self::Terminal } else { Self::File }
    }
}

/// The flow to set up.
pub(super) struct SetupAnswers {
    pub(super) flow: FlowId,
    pub(super) subject: SetupSubject,
    pub(super) approver: String,
    pub(super) group: GroupName,
    /// The password of a new account.
    pub(super) password: Option<String>,
}

/// The requests that need approval.
pub(super) enum SetupSubject {
    /// Calls of tools. The names have the prefix of the server.
    Tools { server: Option<String>, allow: Vec<String>, ask: Vec<String> },
    /// Changes of keys in a state.
    Keys(Vec<String>),
}

impl SetupAnswers {
    /// Reads the flags, and asks on standard error for everything that they leave out.
    pub(super) fn read(args: &InitArgs, from: &mut AnswerSource<'_>) -> Result<Self, CliError> {
        let stdin = &mut *from.lines;
        let flow = match &args.flow {
            Some(flow) => flow.clone(),
            None => {
                let name = ask("Name of the flow", stdin)?;
                FlowId::try_from(name).map_err(|error| CliError::Given(format!("the flow: {error}")))?
            }
        };
        let subject = match (args.keys.as_slice(), args.ask.as_slice()) {
            ([], []) => {
                let server = match &args.server {
                    Some(server) => Some(server.clone()),
                    None => ask_optional("Name of the MCP server, or nothing if the tools are of no server", stdin)?,
                };
                let question = "Tools whose calls need approval, separated by commas (* for every tool)";
                tools(server, &args.allow, &listed(&ask(question, stdin)?))
            }
            ([], named) => tools(args.server.clone(), &args.allow, named),
            (keys, _) => SetupSubject::Keys(keys.to_vec()),
        };
        let approver = match &args.approver {
            Some(name) => name.clone(),
            None => ask("User name of the reviewer who approves", stdin)?,
        };
        let password = args.password_stdin.then(|| read_password(stdin)).transpose()?;
        Ok(Self { flow, subject, approver, group: args.group.clone(), password })
    }

    /// Returns a tool whose call needs approval, for an example.
    pub(super) fn first_tool(&self) -> String {
        match &self.subject {
            SetupSubject::Tools { ask, .. } => ask.first().map(|it| it.replace('*', "example")).unwrap_or_default(),
            SetupSubject::Keys(_) => String::new(),
        }
    }
}

fn tools(server: Option<String>, allow: &[String], ask: &[String]) -> SetupSubject {
    let of_server = |names: &[String]| {
        let named = |it: &String| server.as_ref().map_or_else(|| it.clone(), |server| format!("{server}:{it}"));
        names.iter().map(named).collect::<Vec<_>>()
    };
    let every = ["*".to_owned()];
    let allow = if allow.is_empty() { &every[..] } else { allow };
    let (allow, ask) = (of_server(allow), of_server(ask));
    SetupSubject::Tools { server, allow, ask }
}

fn listed(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// Asks a question and returns the answer. The question is no result, so it goes to standard error.
fn ask(question: &str, stdin: &mut dyn BufRead) -> Result<String, CliError> {
    ask_optional(question, stdin)?.ok_or_else(|| {
        CliError::Given(format!("there is no answer to \"{question}\": answer it, or pass the flag (--help)"))
    })
}

/// Asks a question whose answer can be empty.
fn ask_optional(question: &str, stdin: &mut dyn BufRead) -> Result<Option<String>, CliError> {
    let mut line = String::new();
    let mut error = io::stderr();
    let _ = write!(error, "{question}: ").and_then(|()| error.flush());
    let read = stdin.take(ANSWER_BYTES_MAX).read_line(&mut line);
    read.map_err(|source| CliError::Read { what: "an answer from standard input".to_owned(), source })?;
    Ok(Some(line.trim()).filter(|it| !it.is_empty()).map(str::to_owned))
}
