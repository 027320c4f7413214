//! `user add|disable|enable|remove-passkeys`: manages accounts.

use std::io::{BufRead, Read as _};

use countersign_service::identity::accounts::NewAccount;
use countersign_service::identity::revocation::SignInAccess;
use serde_json::json;

use super::args::{UserAdd, UserCommand, UserName};
use super::output::CommandOutput;
use super::{CliError, CommandExit, open_service};
use crate::config::Config;

/// The limit on a password, so that a large file on standard input is not read to its end.
const PASSWORD_BYTES_MAX: u64 = 4 * 1024;

pub fn run(
    command: &UserCommand,
    config: &Config,
    stdin: &mut dyn BufRead,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    match command {
        UserCommand::Add(new) => add(new, config, stdin, out),
        UserCommand::Disable(name) => admit(name, SignInAccess::Barred, config, out),
        UserCommand::Enable(name) => admit(name, SignInAccess::Open, config, out),
        UserCommand::RemovePasskeys(name) => remove_passkeys(name, config, out),
    }
}

/// Enables or disables an account.
fn admit(
    UserName { name }: &UserName,
    admission: SignInAccess,
    config: &Config,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
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
    open_service::need_database(config)?;
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
    open_service::need_database(config)?;
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

fn read_password(stdin: &mut dyn BufRead) -> Result<String, CliError> {
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
