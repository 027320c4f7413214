//! `token add`: tokens of machines. The text is printed once and kept nowhere.

use serde_json::json;

use super::args::TokenAdd;
use super::output::Output;
use super::{CliError, Exit, beside};
use crate::config::Config;
use crate::service::access::NewToken;

/// Makes a token; standard output is the token and nothing else.
pub fn add(add: &TokenAdd, config: &Config, out: &mut Output<'_>) -> Result<Exit, CliError> {
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
