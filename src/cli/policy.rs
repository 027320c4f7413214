//! `policy check|activate`: a policy file, with the schemas that it names beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::json;

use super::args;
use super::output::Output;
use super::{CliError, Exit, beside};
use crate::config::{Config, ConfigError};
use crate::domain::chain::hash::Digest;
use crate::domain::policy::{Policy, PolicySource};
use crate::service::error::Error;

/// Longer files are no policies; the domain's own bound is below this and says so with more words.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Runs one of them. Checking needs no gateway, so it reads no configuration.
pub fn run(
    command: &args::Policy,
    config: impl FnOnce() -> Result<Config, ConfigError>,
    out: &mut Output<'_>,
) -> Result<Exit, CliError> {
    match command {
        args::Policy::Check(check) => say_if_sound(&check.file, out),
        args::Policy::Activate(activate) => put_in_force(activate, &config()?, out),
        args::Policy::WhatIf(_) => Err(CliError::NotBuilt("`countersign policy what-if`")),
    }
}

fn say_if_sound(file: &Path, out: &mut Output<'_>) -> Result<Exit, CliError> {
    match Policy::compile(&source_of(file)?) {
        Ok(policy) => {
            let nodes: Vec<_> = policy.nodes().map(|(node, _)| node).collect();
            let text = format!("sound: flow {}, {} nodes, {}", policy.flow(), nodes.len(), policy.digest());
            out.answer(
                text,
                || json!({"sound": true, "flow": policy.flow(), "policy": policy.digest(), "nodes": nodes}),
            )?;
            Ok(Exit::Yes)
        }
        Err(error) => {
            let text = format!("{}: {error} [{}]", file.display(), error.code);
            out.answer(text, || {
                json!({
                    "sound": false, "code": error.code.as_str(), "line": error.line, "column": error.column,
                    "detail": error.message,
                })
            })?;
            Ok(Exit::No)
        }
    }
}

fn put_in_force(activate: &args::PolicyActivate, config: &Config, out: &mut Output<'_>) -> Result<Exit, CliError> {
    let source = source_of(&activate.file)?;
    let read = |text: &String| Digest::try_from(text.as_str()).map_err(|error| CliError::Given(error.to_string()));
    let accepts = activate.accepts.iter().map(read).collect::<Result<BTreeSet<_>, _>>()?;
    let by = beside::principal();
    let activated =
        beside::with_service(
            config,
            |service| async move { service.activate_policy(&by, None, source, accepts).await },
        );
    let activated = match activated {
        Err(CliError::Service(Error::Policy(_))) => return say_if_sound(&activate.file, out),
        other => other?,
    };
    out.answer(
        activated.policy,
        || json!({"flow": activated.flow, "policy": activated.policy, "accepts": activated.accepts}),
    )?;
    Ok(Exit::Yes)
}

/// The text and the schemas beside it. A schema that is not there is left out: what names it says so, with its line.
pub fn source_of(file: &Path) -> Result<PolicySource, CliError> {
    let text = read(file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut schemas = BTreeMap::new();
    for name in schema_names(&text) {
        let path = folder.join(&name);
        if is_beside(&name) && path.is_file() {
            schemas.insert(name, read(&path)?);
        }
    }
    Ok(PolicySource { text, schemas })
}

/// A policy names files of its own folder, and reaches nowhere else.
fn is_beside(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

/// What `schema = "…"` names, for the state and for each node. Compiling reads the text again, strictly.
fn schema_names(text: &str) -> BTreeSet<String> {
    let Ok(document) = text.parse::<toml::Table>() else { return BTreeSet::new() };
    let nodes = document.get("nodes").and_then(toml::Value::as_table);
    let of_nodes = nodes.into_iter().flat_map(|it| it.values()).filter_map(|node| node.get("schema"));
    let named = document.get("schema").into_iter().chain(of_nodes);
    named.filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

fn read(path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let opened = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    opened.map_err(|source| CliError::Read { what: path.display().to_string(), source })?;
    Ok(text)
}
