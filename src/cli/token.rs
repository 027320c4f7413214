//! `token add|list|revoke|webhook-secret`: tokens of machines. The text of one is printed once and kept nowhere.

use serde_json::{Value, json};

use super::args::{Token as Command, TokenAdd, TokenRevoke};
use super::output::Output;
use super::{CliError, Exit, beside};
use crate::config::Config;
use crate::domain::account::Token;
use crate::service::access::NewToken;

/// Runs one of them.
pub fn run(command: &Command, config: &Config, out: &mut Output<'_>) -> Result<Exit, CliError> {
    match command {
        Command::Add(new) => add(new, config, out),
        Command::List => list(config, out),
        Command::WebhookSecret(which) => webhook_secret(which, config, out),
        Command::Revoke(which) => revoke(which, config, out),
    }
}

/// Makes a token; standard output is the token and nothing else.
fn add(add: &TokenAdd, config: &Config, out: &mut Output<'_>) -> Result<Exit, CliError> {
    beside::need_database(config)?;
    let new = NewToken {
        name: add.name.clone(),
        role: add.role,
        owner: add.owner.clone(),
        flow: add.flow.clone(),
        nodes: add.nodes.iter().cloned().collect(),
    };
    let (token, text) = beside::with_service(config, |service| async move { service.add_token(&new).await })?;
    out.answer(&text, || {
        json!({
            "token": text, "id": token.id, "name": token.name, "role": token.role, "owner": token.owner,
            "flow": token.flow, "nodes": token.nodes,
        })
    })?;
    Ok(Exit::Yes)
}

fn list(config: &Config, out: &mut Output<'_>) -> Result<Exit, CliError> {
    beside::need_database(config)?;
    let tokens = beside::with_service(config, |service| async move { service.tokens().await })?;
    let text = tokens.iter().map(line).collect::<Vec<_>>().join("\n");
    out.answer(text, || json!({"tokens": tokens.iter().map(facts).collect::<Vec<_>>()}))?;
    Ok(Exit::Yes)
}

/// What tells one token from another, in columns that begin alike.
fn line(token: &Token) -> String {
    let flow = token.flow.as_ref().map_or("-", |it| it.as_str());
    let nodes: Vec<&str> = token.nodes.iter().map(|it| it.as_str()).collect();
    let nodes = if nodes.is_empty() { "-".to_owned() } else { nodes.join(",") };
    let word = if token.revoked { "revoked" } else { "good" };
    format!("{} {word} {} {flow} {nodes} {} {}", token.id, token.role.as_str(), token.owner, token.name)
}

fn facts(token: &Token) -> Value {
    json!({
        "id": token.id, "revoked": token.revoked, "name": token.name, "role": token.role, "owner": token.owner,
        "flow": token.flow, "nodes": token.nodes, "created_at": token.created_at,
    })
}

/// Makes a host's signing secret; standard output is the secret and nothing else.
fn webhook_secret(TokenRevoke { id }: &TokenRevoke, config: &Config, out: &mut Output<'_>) -> Result<Exit, CliError> {
    beside::need_database(config)?;
    let (token, secret) = beside::with_service(config, |service| async move { service.make_post_secret(id).await })?;
    let generation = token.signing.map(|it| it.generation);
    out.answer(secret.expose(), || json!({"secret": secret.expose(), "id": id, "generation": generation}))?;
    Ok(Exit::Yes)
}

fn revoke(TokenRevoke { id }: &TokenRevoke, config: &Config, out: &mut Output<'_>) -> Result<Exit, CliError> {
    beside::need_database(config)?;
    beside::with_service(config, |service| async move { service.revoke_token(id).await })?;
    out.answer(format!("revoked {id}"), || json!({"id": id, "revoked": true}))?;
    Ok(Exit::Yes)
}
