//! `user add|list|set-groups|set-role|password-link|disable|enable|remove-passkeys`: manages accounts.

use std::collections::BTreeSet;
use std::io::{BufRead, Read as _};

use countersign_domain::identity::account::{Account, PersonRole};
use countersign_domain::primitives::id::GroupName;
use countersign_service::identity::accounts::NewAccount;
use countersign_service::identity::revocation::SignInAccess;
use serde_json::{Value, json};

use super::args::{UserAdd, UserCommand, UserName, UserSetGroups, UserSetRole};
use super::output::CommandOutput;
use super::{CliError, CommandExit, open_service};
use crate::config::Config;

/// The limit on a password, so that a large file on standard input is not read to its end.
pub(super) const PASSWORD_BYTES_MAX: u64 = 4 * 1024;

pub fn run(
    command: &UserCommand,
    config: &Config,
    stdin: &mut dyn BufRead,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    match command {
        UserCommand::Add(new) => add(new, config, stdin, out),
        UserCommand::List => list(config, out),
        UserCommand::SetGroups(set) => set_groups(set, config, out),
        UserCommand::SetRole(set) => set_role(set, config, out),
        UserCommand::PasswordLink(name) => password_link(name, config, out),
        UserCommand::Disable(name) => admit(name, SignInAccess::Barred, config, out),
        UserCommand::Enable(name) => admit(name, SignInAccess::Open, config, out),
        UserCommand::RemovePasskeys(name) => remove_passkeys(name, config, out),
    }
}

/// Lists all accounts by name.
fn list(config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    let people = open_service::with_service(config, |service| async move { service.identity.people().await })?;
    let line = |it: &Account| {
        let word = if it.disabled { "disabled" } else { "enabled" };
        format!("{} {word} {} {}", it.name, it.role.as_str(), joined(&it.groups))
    };
    let text = people.iter().map(line).collect::<Vec<_>>().join("\n");
    out.answer(text, || json!({"accounts": people.iter().map(facts).collect::<Vec<_>>()}))?;
    Ok(CommandExit::Yes)
}

fn joined(groups: &BTreeSet<GroupName>) -> String {
    let names: Vec<&str> = groups.iter().map(GroupName::as_str).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

fn facts(account: &Account) -> Value {
    json!({
        "account": account.id, "name": account.name, "role": account.role, "groups": account.groups,
        "disabled": account.disabled, "created_at": account.created_at,
    })
}

fn set_groups(set: &UserSetGroups, config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    let named = set.groups.split(',').map(str::trim).filter(|it| !it.is_empty()).map(GroupName::try_from);
    let groups: Result<BTreeSet<GroupName>, _> = named.collect();
    let groups = groups.map_err(|error| CliError::Given(format!("a group: {error}")))?;
    set_access(&set.name, None, Some(groups), config, out)
}

fn set_role(set: &UserSetRole, config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    set_access(&set.name, Some(set.role), None, config, out)
}

fn set_access(
    name: &str,
    role: Option<PersonRole>,
    groups: Option<BTreeSet<GroupName>>,
    config: &Config,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    let account = open_service::with_service(config, |service| async move {
        service.identity.set_access(name, role, groups.as_ref()).await
    })?;
    let text = format!("{} is {} in {}", account.name, account.role.as_str(), joined(&account.groups));
    out.answer(text, || facts(&account))?;
    Ok(CommandExit::Yes)
}

/// Prints a link with which a person chooses a new password.
fn password_link(
    UserName { name }: &UserName,
    config: &Config,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    let secret =
        open_service::with_service(config, |service| async move { service.identity.reset_link_for(name).await })?;
    let link = format!("{}/password/{secret}", config.public_url(config.listen).as_str());
    out.answer(&link, || json!({"name": name, "link": link}))?;
    Ok(CommandExit::Yes)
}

/// Enables or disables an account.
fn admit(
    UserName { name }: &UserName,
    admission: SignInAccess,
    config: &Config,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    let account =
        open_service::with_service(
            config,
            |service| async move { service.identity.set_admission(name, admission).await },
        )?;
    let word = if account.disabled { "disabled" } else { "enabled" };
    out.answer(
        format!("{name} is {word}"),
        || json!({"account": account.id, "name": account.name, "disabled": account.disabled}),
    )?;
    Ok(CommandExit::Yes)
}

/// Removes all passkeys of an account.
fn remove_passkeys(
    UserName { name }: &UserName,
    config: &Config,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    let by = open_service::principal();
    let done =
        open_service::with_service(
            config,
            |service| async move { service.identity.remove_passkeys_of(&by, name).await },
        )?;
    let (account, removed) = done;
    out.answer(
        format!("removed {removed} passkeys of {name}"),
        || json!({"account": account.id, "name": account.name, "removed": removed}),
    )?;
    Ok(CommandExit::Yes)
}

/// Adds an account. The first line of standard input is its password.
fn add(
    add: &UserAdd,
    config: &Config,
    stdin: &mut dyn BufRead,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    let new = NewAccount { name: add.name.clone(), role: add.role, groups: add.groups.iter().cloned().collect() };
    let password = read_password(stdin)?;
    let account =
        open_service::with_service(
            config,
            |service| async move { service.identity.add_account(&new, password).await },
        )?;
    out.answer(
        &account.id,
        || json!({"account": account.id, "name": account.name, "role": account.role, "groups": account.groups}),
    )?;
    Ok(CommandExit::Yes)
}

pub(super) fn read_password(stdin: &mut dyn BufRead) -> Result<String, CliError> {
    let mut line = String::new();
    let read = stdin.take(PASSWORD_BYTES_MAX).read_line(&mut line);
    read.map_err(|source| CliError::Read { what: "the password from standard input".to_owned(), source })?;
    // Only the line break is removed, because a password may begin or end with a space.
    let password = line.trim_end_matches(['\r', '\n']);
    match password {
        "" => Err(CliError::Given("standard input has no password: pipe it in as one line".to_owned())),
        password => Ok(password.to_owned()),
    }
}
