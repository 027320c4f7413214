//! `token add|list|revoke|webhook-secret`: manages machine tokens. A token is printed once and never stored.

use countersign_domain::identity::account::Token;
use countersign_service::identity::accounts::NewToken;
use countersign_service::identity::owner_names::{NewOwner, excluded_by};
use serde_json::{Value, json};

use super::args::{TokenAdd, TokenCommand, TokenRevoke};
use super::findings::warn_of_findings;
use super::output::CommandOutput;
use super::{CliError, CommandExit, open_service};
use crate::config::Config;

pub fn run(command: &TokenCommand, config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    match command {
        TokenCommand::Add(new) => add(new, config, out),
        TokenCommand::List => list(config, out),
        TokenCommand::WebhookSecret(which) => webhook_secret(which, config, out),
        TokenCommand::Revoke(which) => revoke(which, config, out),
    }
}

/// Creates a token. Standard output has only the token.
fn add(add: &TokenAdd, config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
    let new = NewToken {
        name: add.name.clone(),
        role: add.role,
        owner: if add.new_group { NewOwner::Group(add.owner.clone()) } else { NewOwner::Existing(add.owner.clone()) },
        flow: add.flow.clone(),
        nodes: add.nodes.iter().cloned().collect(),
    };
    let (token, text, excluded, findings) = open_service::with_service(config, |service| async move {
        let (token, text) = service.identity.add_token(&new).await?;
        let excluded = service.identity.excluded_by(&token.owner).await?;
        let findings = match &token.flow {
            Some(flow) => service.policy_changes.findings_of(flow).await?,
            None => Vec::new(),
        };
        Ok((token, text, excluded, findings))
    })?;
    // The warning goes to standard error, because standard output contains only the token.
    out.warn(exclusion(&token, &excluded));
    warn_of_findings(&findings, out);
    out.answer(&text, || {
        json!({
            "token": text, "id": token.id, "name": token.name, "role": token.role, "owner": token.owner,
            "flow": token.flow, "nodes": token.nodes, "excludes": excluded,
            "findings": findings,
        })
    })?;
    Ok(CommandExit::Yes)
}

fn list(config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
    let (tokens, people) = open_service::with_service(config, |service| async move {
        Ok((service.identity.tokens().await?, service.identity.people().await?))
    })?;
    let text = tokens.iter().map(line).collect::<Vec<_>>().join("\n");
    let excluded = |it: &Token| excluded_by(&it.owner, &people);
    // An owner without any reviewer may be a misspelled name, so separation of duties would have no effect.
    for token in tokens.iter().filter(|it| !it.revoked && !people.iter().any(|person| person.answers_for(&it.owner))) {
        out.warn(exclusion(token, &[]));
    }
    out.answer(text, || json!({"tokens": tokens.iter().map(|it| facts(it, &excluded(it))).collect::<Vec<_>>()}))?;
    Ok(CommandExit::Yes)
}

/// Describes which reviewers cannot approve the token's proposals.
fn exclusion(token: &Token, excluded: &[String]) -> String {
    let (name, owner) = (&token.name, &token.owner);
    match excluded {
        [] => format!(
            "token {name}: its owner {owner} excludes no reviewer, since none has that name or is in that group"
        ),
        _ => format!("token {name}: its owner {owner} excludes {} from approving its changes", excluded.join(", ")),
    }
}

/// Formats a token as one line with aligned columns.
fn line(token: &Token) -> String {
    let flow = token.flow.as_ref().map_or("-", |it| it.as_str());
    let nodes: Vec<&str> = token.nodes.iter().map(|it| it.as_str()).collect();
    let nodes = if nodes.is_empty() { "-".to_owned() } else { nodes.join(",") };
    let word = if token.revoked { "revoked" } else { "good" };
    format!("{} {word} {} {flow} {nodes} {} {}", token.id, token.role.as_str(), token.owner, token.name)
}

fn facts(token: &Token, excluded: &[String]) -> Value {
    json!({
        "id": token.id, "revoked": token.revoked, "name": token.name, "role": token.role, "owner": token.owner,
        "flow": token.flow, "nodes": token.nodes, "created_at": token.created_at, "excludes": excluded,
    })
}

/// Creates a host's signing secret. Standard output has only the secret.
fn webhook_secret(
    TokenRevoke { id }: &TokenRevoke,
    config: &Config,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
    let (token, secret) =
        open_service::with_service(config, |service| async move { service.interrupts.make_post_secret(id).await })?;
    let generation = token.signing.map(|it| it.generation);
    out.answer(secret.expose(), || json!({"secret": secret.expose(), "id": id, "generation": generation}))?;
    Ok(CommandExit::Yes)
}

fn revoke(
    TokenRevoke { id }: &TokenRevoke,
    config: &Config,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
    open_service::with_service(config, |service| async move { service.identity.revoke_token(id).await })?;
    out.answer(format!("revoked {id}"), || json!({"id": id, "revoked": true}))?;
    Ok(CommandExit::Yes)
}
