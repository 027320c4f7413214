//! `init`: sets up a flow with its policy, its first reviewer and the tokens of its agent.

mod answers;
mod starter_policy;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use countersign_domain::identity::account::{MachineRole, PersonRole};
use countersign_domain::policy::{Policy, PolicySource};
use countersign_service::Service;
use countersign_service::identity::accounts::{NewAccount, NewToken};
use countersign_service::identity::owner_names::NewOwner;
use serde_json::{Value, json};

use super::args::InitArgs;
use super::findings::warn_of_findings;
use super::output::CommandOutput;
use super::{CliError, CommandExit, hidden_input, open_service};
use crate::config::Config;
pub use answers::{AnswerInput, AnswerSource};
use answers::{SetupAnswers, SetupSubject};
use starter_policy::starter_policy;

/// The node of the agent in a new policy.
const NODE: &str = "agent";

/// The files of a new flow. Neither exists before.
struct SetupFiles {
    policy: PathBuf,
    env: PathBuf,
}

/// A token with the name of its variable in `.env`.
struct NamedToken {
    variable: &'static str,
    role: MachineRole,
}

pub fn run(
    args: &InitArgs,
    config: &Config,
    from: &mut AnswerSource<'_>,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    let mut wanted = SetupAnswers::read(args, from)?;
    if wanted.password.is_none() && !has_account(config, &wanted.approver)? {
        wanted.password = Some(new_password(&wanted.approver, from)?);
    }
    let files = SetupFiles::reserve(&args.folder, wanted.flow.as_str())?;
    let text = starter_policy(&wanted);
    let source = PolicySource { text: text.clone(), ..PolicySource::default() };
    Policy::compile_submitted(&source).map_err(|error| CliError::Given(format!("the names do not fit: {error}")))?;
    let url = config.public_url(config.listen).as_str().to_owned();
    let names = tokens_of(&wanted.subject);
    let before = DataBefore::of(config);
    let prepared = open_service::with_new_service(config, |service| async move {
        let prepared = prepare(&service, &wanted, source, names).await;
        prepared.map(|it| (it, wanted))
    });
    let ((tokens, created), wanted) = prepared.inspect_err(|_| {
        files.give_back();
        before.iter().for_each(DataBefore::restore);
    })?;
    let mut env = format!("GATE={url}\n");
    for (name, token) in &tokens {
        env.push_str(&format!("{name}={token}\n"));
    }
    files.fill(&text, &env)?;
    let flow = wanted.flow.clone();
    let findings =
        open_service::with_service(config, |service| async move { service.policy_changes.findings_of(&flow).await })?;
    warn_of_findings(&findings, out);
    let lines = lines_to_paste(&wanted, &files.env);
    out.answer(summary(&wanted, &files, &url, created, &lines), || {
        json!({
            "flow": wanted.flow, "policy": files.policy, "env": files.env, "approver": wanted.approver,
            "group": wanted.group, "account_created": created, "url": url, "paste": lines, "findings": findings,
        })
    })?;
    Ok(CommandExit::Yes)
}

fn has_account(config: &Config, name: &str) -> Result<bool, CliError> {
    if !open_service::has_database(config) {
        return Ok(false);
    }
    let people = open_service::with_service(config, |service| async move { service.identity.people().await })?;
    Ok(people.iter().any(|it| it.name == name))
}

/// Asks for the password of a new account. Nothing was created before.
fn new_password(name: &str, from: &mut AnswerSource<'_>) -> Result<String, CliError> {
    match from.typed {
        AnswerInput::Terminal => hidden_input::new_password(name, from.lines),
        AnswerInput::File => Err(CliError::Given(format!(
            "the account {name} does not exist, so it needs a password: pass it with --password-stdin"
        ))),
    }
}

/// Returns the tokens that an agent of this kind needs.
fn tokens_of(subject: &SetupSubject) -> Vec<NamedToken> {
    match subject {
        SetupSubject::Tools { .. } => vec![NamedToken { variable: "INSTANCE", role: MachineRole::Instance }],
        SetupSubject::Keys(_) => vec![
            NamedToken { variable: "HOST", role: MachineRole::Host },
            NamedToken { variable: "AGENT", role: MachineRole::Agent },
        ],
    }
}

type Tokens = Vec<(&'static str, String)>;

/// Creates the account, activates the policy and creates the tokens. Returns the tokens, and whether the account is new.
async fn prepare(
    service: &Service,
    wanted: &SetupAnswers,
    source: PolicySource,
    names: Vec<NamedToken>,
) -> countersign_service::error::Result<(Tokens, bool)> {
    use countersign_service::error::Error;
    if service.policies.flows().await?.contains(&wanted.flow) {
        return Err(Error::Exists("the flow has a policy already, and it was not changed: choose another name"));
    }
    let people = service.identity.people().await?;
    let known = people.iter().find(|it| it.name == wanted.approver);
    match (known, &wanted.password) {
        (Some(account), _) if account.groups.contains(&wanted.group) && account.role == PersonRole::Reviewer => {}
        (Some(_), _) => {
            return Err(Error::WrongState(
                "the account exists, and it is not a reviewer in this group: run `countersign user set-groups`, or name another approver",
            ));
        }
        (None, password) => {
            // The account existed when the password was asked for, and another command has removed it since then.
            let password = password.as_ref().ok_or(Error::NotFound("account"))?;
            let groups = [wanted.group.clone()].into();
            let new = NewAccount { name: wanted.approver.clone(), role: PersonRole::Reviewer, groups };
            service.identity.add_account(&new, password.clone()).await?;
        }
    }
    let by = open_service::principal();
    service.policy_changes.activate_policy(&by, Some(&wanted.flow), source, Default::default()).await?;
    let mut tokens = Vec::new();
    for NamedToken { variable, role } in names {
        let nodes = if role == MachineRole::Host { Vec::new() } else { vec![NODE] };
        let new = NewToken {
            name: format!("{}-{}", wanted.flow, role.as_str()),
            role,
            // A team without members excludes no reviewer, so the approver can approve what the agent proposes.
            owner: NewOwner::Group(format!("{}-agents", wanted.flow)),
            flow: Some(wanted.flow.clone()),
            nodes: nodes.into_iter().filter_map(|it| it.try_into().ok()).collect(),
        };
        tokens.push((variable, service.identity.add_token(&new).await?.1));
    }
    Ok((tokens, known.is_none()))
}

/// The content of a data directory before `init` created a database in it.
struct DataBefore<'a> {
    folder: &'a Path,
    /// `None` if the folder did not exist.
    files: Option<BTreeSet<OsString>>,
}

impl<'a> DataBefore<'a> {
    /// Returns `None` if there is a database, because others may use the folder at the same time.
    fn of(config: &'a Config) -> Option<Self> {
        let folder = config.data.as_path();
        (!open_service::has_database(config)).then(|| Self { folder, files: names_in(folder) })
    }

    /// Removes what `init` made. The errors are ignored: the first error is the one to report.
    fn restore(&self) {
        for name in names_in(self.folder).unwrap_or_default() {
            if !self.files.as_ref().is_some_and(|it| it.contains(&name)) {
                let _ = fs::remove_file(self.folder.join(name));
            }
        }
        if self.files.is_none() {
            let _ = fs::remove_dir(self.folder);
        }
    }
}

fn names_in(folder: &Path) -> Option<BTreeSet<OsString>> {
    Some(fs::read_dir(folder).ok()?.filter_map(|it| Some(it.ok()?.file_name())).collect())
}

impl SetupFiles {
    /// Creates both files empty. An existing file is never opened, so no earlier token or policy is lost.
    fn reserve(folder: &Path, flow: &str) -> Result<Self, CliError> {
        let files = Self { policy: folder.join(format!("{flow}.toml")), env: folder.join(".env") };
        create(&files.policy)?;
        create(&files.env).inspect_err(|_| drop(fs::remove_file(&files.policy)))?;
        Ok(files)
    }

    fn fill(&self, policy: &str, env: &str) -> Result<(), CliError> {
        for (path, text) in [(&self.policy, policy), (&self.env, env)] {
            let written = OpenOptions::new().write(true).open(path).and_then(|mut it| it.write_all(text.as_bytes()));
            written.map_err(|source| CliError::Write { what: path.display().to_string(), source })?;
        }
        Ok(())
    }

    /// Removes the empty files after an error.
    fn give_back(&self) {
        for path in [&self.policy, &self.env] {
            // The error is ignored: the first error is the one to report.
            let _ = fs::remove_file(path);
        }
    }
}

/// Creates a file that only its owner can read, and fails if it exists.
fn create(path: &Path) -> Result<(), CliError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(|source| match source.kind() {
        std::io::ErrorKind::AlreadyExists => CliError::Given(format!(
            "{} exists already, and it was not changed: move it, or use --folder DIR",
            path.display()
        )),
        _ => CliError::Write { what: path.display().to_string(), source },
    })
}

fn summary(wanted: &SetupAnswers, files: &SetupFiles, url: &str, created: bool, lines: &Value) -> String {
    let account = if created { "Created the account" } else { "Kept the account" };
    let mut text = format!(
        "Activated the policy {} and wrote the tokens to {}, which only you can read.\n{account} {} in the group {}.\n\
         Start the gateway with `countersign serve`, and sign in at {url}.",
        files.policy.display(),
        files.env.display(),
        wanted.approver,
        wanted.group
    );
    for (kind, title) in [("curl", "curl"), ("python", "Python"), ("mcp", "MCP client")] {
        if let Some(line) = lines[kind].as_str() {
            text.push_str(&format!("\n\n{title}:\n{line}"));
        }
    }
    text
}

/// Returns the lines to paste for each kind of client.
fn lines_to_paste(wanted: &SetupAnswers, env: &Path) -> Value {
    // MCP clients start the guard from another folder.
    let whole = fs::canonicalize(env).unwrap_or_else(|_| env.to_owned());
    let SetupSubject::Tools { server, .. } = &wanted.subject else {
        let post = format!("'{{\"flow\": \"{}\", \"state\": {{}}}}'", wanted.flow);
        return json!({
            "curl": format!(". {}; curl -sS $GATE/v1/threads -H \"Authorization: Bearer $HOST\" -H 'Content-Type: application/json' -d {post}", env.display()),
            "python": "agent = countersign.Client(os.environ[\"GATE\"], os.environ[\"AGENT\"])",
        });
    };
    let tool = wanted.first_tool();
    let call = format!("'{{\"tool\": \"{tool}\", \"arguments\": {{}}, \"timeout\": \"10m\"}}'");
    let curl = format!(
        ". {}; curl -sS $GATE/aap/v1/requests -H \"Authorization: Bearer $INSTANCE\" -H \"Idempotency-Key: $(date +%s)\" -H 'Content-Type: application/json' -d {call}",
        env.display()
    );
    let name = server.as_deref().unwrap_or(wanted.flow.as_str());
    // The token stays in `.env`, so the configuration of the client has no secret.
    let script =
        ". \"$0\"; export COUNTERSIGN_URL=\"$GATE\" COUNTERSIGN_TOKEN=\"$INSTANCE\"; exec countersign mcp guard \"$@\"";
    let mut words = vec!["-c".to_owned(), script.to_owned(), whole.display().to_string()];
    words.extend(server.iter().flat_map(|it| ["--name".to_owned(), it.clone()]));
    // A restarted guard finds changed descriptions of tools.
    let state = whole.with_file_name("guard").display().to_string();
    words.extend(["--state".to_owned(), state]);
    words.extend(["--", "COMMAND", "ARGUMENTS"].map(str::to_owned));
    let mcp = json!({"mcpServers": {name: {"command": "sh", "args": words}}});
    let python = "client = agentapprovalprotocol.Client(os.environ[\"GATE\"] + \"/aap\", os.environ[\"INSTANCE\"])";
    json!({"curl": curl, "python": python, "mcp": mcp.to_string()})
}
