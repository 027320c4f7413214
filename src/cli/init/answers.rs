//! The answers of `init`, from flags and from questions.

use std::io::BufRead;

use countersign_domain::primitives::id::{FlowId, GroupName};

use crate::cli::CliError;
use crate::cli::args::InitArgs;
use crate::cli::user::read_password;

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 4 * 1024;

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
    pub(super) fn read(args: &InitArgs, stdin: &mut dyn BufRead) -> Result<Self, CliError> {
        let flow = match &args.flow {
            Some(flow) => flow.clone(),
            None => {
                let name = ask("Name of the flow", stdin)?;
                FlowId::try_from(name).map_err(|error| CliError::Given(format!("the flow: {error}")))?
            }
        };
        let subject = match (args.keys.as_slice(), args.ask.as_slice()) {
            ([], []) => {
                let question = "Tools whose calls need approval, separated by commas (* for every tool)";
                tools(args, &listed(&ask(question, stdin)?))
            }
            ([], named) => tools(args, named),
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

fn tools(args: &InitArgs, ask: &[String]) -> SetupSubject {
    let of_server = |names: &[String]| {
        let named = |it: &String| args.server.as_ref().map_or_else(|| it.clone(), |server| format!("{server}:{it}"));
        names.iter().map(named).collect::<Vec<_>>()
    };
    let every = ["*".to_owned()];
    let allow = if args.allow.is_empty() { &every[..] } else { &args.allow };
    SetupSubject::Tools { server: args.server.clone(), allow: of_server(allow), ask: of_server(ask) }
}

fn listed(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// Asks a question and returns the answer. The question is no result, so it goes to standard error.
fn ask(question: &str, stdin: &mut dyn BufRead) -> Result<String, CliError> {
    use std::io::{Read as _, Write as _};
    let mut line = String::new();
    let mut error = std::io::stderr();
    let _ = write!(error, "{question}: ").and_then(|()| error.flush());
    let read = stdin.take(ANSWER_BYTES_MAX).read_line(&mut line);
    read.map_err(|source| CliError::Read { what: "an answer from standard input".to_owned(), source })?;
    match line.trim() {
        "" => {
            Err(CliError::Given(format!("there is no answer to \"{question}\": answer it, or pass the flag (--help)")))
        }
        answer => Ok(answer.to_owned()),
    }
}
