//! `keys list|rotate|revoke`: changes the keyring. A running gateway uses the change at its next use of a key. If there
//! is a database, the change becomes an audit event.

use std::fmt::Write as _;

use countersign_adapters::clock::Clock;
use countersign_adapters::keyring::Keyring;
use countersign_adapters::random;
use countersign_domain::keys::{KeyUse, Keys};
use serde_json::{Value, json};

use super::args;
use super::output::CommandOutput;
use super::{CliError, CommandExit, causes, open_service};
use crate::config::Config;

pub fn run(
    command: &args::KeysCommand,
    config: &Config,
    clock: &impl Clock,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    // A missing keyring is probably a wrong path, so no new one is created.
    let keyring = Keyring::existing(&config.keyring, config.issuer.as_deref())?;
    match command {
        args::KeysCommand::List => list(&*keyring.current()?, out),
        args::KeysCommand::Rotate(rotate) => {
            let keys = keyring.update(|it| it.rotate(rotate.key_use, clock.now(), &mut random::fill))?;
            note(config, rotate.key_use, None, out);
            signing(&keys, rotate.key_use, out)
        }
        args::KeysCommand::Revoke(revoke) => {
            let keys = keyring.update(|it| it.revoke(&revoke.kid, clock.now(), &mut random::fill))?;
            // The use decides which key signs next. A revoked key is still in the published set.
            let key_use = keys.published().find(|it| it.kid() == revoke.kid).map_or(KeyUse::Chain, |it| it.key_use());
            note(config, key_use, Some(&revoke.kid), out);
            signing(&keys, key_use, out)
        }
    }
}

/// Records the change as an audit event. The keyring is already changed, because keys must be revocable while the
/// database is unavailable. A failure here is a warning and no error, because a user would repeat the command and
/// rotate twice.
fn note(config: &Config, key_use: KeyUse, revoked: Option<&str>, out: &mut CommandOutput<'_>) {
    // An emergency revocation must work without a database.
    if !open_service::has_database(config) {
        return;
    }
    let by = open_service::principal();
    let noted = open_service::with_service(config, |service| async move {
        service.log.note_keys_changed(&by, key_use, revoked).await
    });
    if let Err(error) = noted {
        let why = causes(&error);
        out.warn(format!(
            "the keyring was changed, so do not repeat the command. The audit log has no event of this change: {why}"
        ));
    }
}

fn list(keys: &Keys, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    let mut text = format!("issuer {}", keys.issuer());
    for key in keys.published() {
        let since = keys.dates(key.kid()).map(|it| it.since).unwrap_or_default();
        let (key_use, state) = (key.key_use().as_str(), key.state().as_str());
        write!(text, "\n{key_use:<8} {state:<8} {} since {since}", key.kid()).expect("text grows");
    }
    out.answer(text, || json!({"issuer": keys.issuer(), "keys": rows(keys)}))?;
    Ok(CommandExit::Yes)
}

fn rows(keys: &Keys) -> Vec<Value> {
    let row = |key: &countersign_domain::keys::PublicKey| {
        let dates = keys.dates(key.kid());
        json!({
            "kid": key.kid(),
            "use": key.key_use().as_str(),
            "status": key.state().as_str(),
            "created_at": dates.map(|it| it.created_at),
            "since": dates.map(|it| it.since),
        })
    };
    keys.published().map(row).collect()
}

/// Prints the key that signs now.
fn signing(keys: &Keys, key_use: KeyUse, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    let kid = keys.signing(key_use).kid();
    out.answer(kid, || json!({"use": key_use.as_str(), "signing": kid, "keys": rows(keys)}))?;
    Ok(CommandExit::Yes)
}
