//! `policy check|activate|list|show|what-if|test|replay`: works on a policy file and the schemas in its folder.

mod cases;
mod replay;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use countersign_domain::chain::hash::Digest;
use countersign_domain::json::canonical::canonical;
use countersign_domain::json::parse::{ParseLimits, parse};
use countersign_domain::policy::{
    HypotheticalContext, HypotheticalPrincipal, HypotheticalRequest, JudgedOutcome, JudgedWarning, Policy,
    PolicySource, PolicyStage, PolicyWarning, RedactedChange, StateLimits, SubmittedPolicy, what_if,
};
use countersign_domain::primitives::id::{GroupName, NodeId};
use countersign_domain::threads::flow::Flow;
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::usage::{InvalidUsage, Totals, Usage};
use countersign_service::error::Error;
use countersign_service::policy_changes::activate::{ActivatedPolicy, ActivationOutcome};
use serde_json::{Value, json};

use super::args;
use super::findings::warn_of_findings;
use super::output::CommandOutput;
use super::{CliError, CommandExit, open_service};
use crate::config::{Config, ConfigError};

/// The limit for files. The limit of the domain is lower and has a better error message.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Runs a command. Checks need no gateway, so they do not read the configuration.
pub fn run(
    command: &args::PolicyCommand,
    config: impl FnOnce() -> Result<Config, ConfigError>,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    match command {
        args::PolicyCommand::Check(check) => report_policy_check(&check.file, out),
        args::PolicyCommand::Activate(activate) => put_in_force(activate, &config()?, out),
        args::PolicyCommand::List => list(&config()?, out),
        args::PolicyCommand::Show(which) => show(which, &config()?, out),
        args::PolicyCommand::WhatIf(ask) => suppose(ask, out),
        args::PolicyCommand::Test(test) => cases::run(test, out),
        args::PolicyCommand::Replay(ask) => replay::run(ask, &config()?, out),
    }
}

fn report_policy_check(file: &Path, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    match Policy::compile_submitted(&source_of(file)?) {
        Ok(SubmittedPolicy { policy, warnings }) => {
            warn_of(&warnings, &file.display().to_string(), out);
            let nodes: Vec<_> = policy.nodes().map(|(node, _)| node).collect();
            let text = format!("valid: flow {}, {} nodes, {}", policy.flow(), nodes.len(), policy.digest());
            out.answer(text, || {
                json!({
                    "sound": true, "flow": policy.flow(), "policy": policy.digest(), "nodes": nodes,
                    "warnings": warnings,
                })
            })?;
            Ok(CommandExit::Yes)
        }
        Err(error) => {
            let text = format!("{}: {error} [{}]", file.display(), error.code);
            out.answer(text, || {
                json!({
                    "sound": false, "code": error.code.as_str(), "line": error.line, "column": error.column,
                    "detail": error.message,
                })
            })?;
            Ok(CommandExit::No)
        }
    }
}

/// Prints the warnings of a policy to standard error.
fn warn_of(warnings: &[PolicyWarning], file: &str, out: &mut CommandOutput<'_>) {
    for it in warnings {
        out.warn(format!("{file}: line {}, column {}: {} [{}]", it.line, it.column, it.detail, it.code.as_str()));
    }
}

/// Formats an active policy: the digest, and what the policy knows.
fn describe(active: &ActivatedPolicy) -> String {
    let names = |all: Vec<&str>| if all.is_empty() { "none".to_owned() } else { all.join(", ") };
    let nodes = names(active.nodes.iter().map(NodeId::as_str).collect());
    let mut text = format!("{}\nflow: {}\nnodes: {nodes}", active.policy, active.flow);
    for (index, stage) in active.stages.iter().enumerate() {
        let groups = names(stage.groups().iter().map(GroupName::as_str).collect());
        text.push_str(&format!("\nstage {}: {} of {groups}", index + 1, stage.need()));
    }
    text
}

fn put_in_force(
    activate: &args::PolicyActivate,
    config: &Config,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
    let source = source_of(&activate.file)?;
    let read = |text: &String| Digest::try_from(text.as_str()).map_err(|error| CliError::Given(error.to_string()));
    let accepts = activate.accepts.iter().map(read).collect::<Result<BTreeSet<_>, _>>()?;
    let by = open_service::principal();
    let activated = open_service::with_service(config, |service| async move {
        service.policy_changes.activate_policy(&by, None, source, accepts).await
    });
    let activated = match activated {
        // The user gets the same report with line and column as from `policy check`.
        Err(CliError::Service(Error::Policy(_))) => return report_policy_check(&activate.file, out),
        other => other?,
    };
    match activated {
        ActivationOutcome::Active(active) => {
            warn_of(&active.warnings, &activate.file.display().to_string(), out);
            warn_of_findings(&active.findings, out);
            let stage = |it: &PolicyStage| json!({"groups": it.groups(), "need": it.need()});
            let stages: Vec<Value> = active.stages.iter().map(stage).collect();
            out.answer(describe(&active), || {
                json!({
                    "flow": active.flow, "policy": active.policy, "accepts": active.accepts, "nodes": active.nodes,
                    "stages": stages, "warnings": active.warnings, "findings": active.findings,
                })
            })?;
            Ok(CommandExit::Yes)
        }
        ActivationOutcome::Waiting(amendment) => {
            if let Ok(submitted) = Policy::compile_submitted(&source_of(&activate.file)?) {
                warn_of(&submitted.warnings, &activate.file.display().to_string(), out);
            }
            // The command knows the address of a running gateway only if it is configured, so it prints the path.
            let page = format!("/amendments/{}", amendment.id);
            let text = format!(
                "not active: the policy change requires approval until {}, on the page {page}",
                amendment.expires_at
            );
            out.answer(text, || {
                json!({
                    "amendment": amendment.id, "state": "open", "flow": amendment.change.flow,
                    "policy": amendment.change.policy, "digest": amendment.digest, "page": page,
                    "expires_at": amendment.expires_at,
                })
            })?;
            // A script must not continue as if the policy were active.
            Ok(CommandExit::No)
        }
    }
}

/// Lists the flows with their active policies.
fn list(config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    let flows = open_service::with_service(config, |service| async move {
        let mut flows = Vec::new();
        for id in service.policies.flows().await? {
            flows.push(service.policies.flow_with_policy(&id).await?);
        }
        Ok(flows)
    })?;
    let text: Vec<String> = flows.iter().map(|it| format!("{} {}", it.id, it.policy)).collect();
    let facts = |it: &Flow| {
        json!({
            "flow": it.id, "policy": it.policy, "accepts": it.accepts, "activated_at": it.activated_at,
            "activated_by": it.activated_by,
        })
    };
    out.answer(text.join("\n"), || json!({"flows": flows.iter().map(facts).collect::<Vec<_>>()}))?;
    Ok(CommandExit::Yes)
}

/// Prints the text of a policy, as it was submitted.
fn show(which: &args::PolicyShow, config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    let named = which.policy.as_deref().map(Digest::try_from).transpose();
    let named = named.map_err(|error| CliError::Given(error.to_string()))?;
    let flow = &which.flow;
    let (digest, source) = open_service::with_service(config, |service| async move {
        let digest = match named {
            Some(digest) => digest,
            None => service.policies.flow_with_policy(flow).await?.policy,
        };
        Ok((digest, service.policies.policy_source(digest).await?))
    })?;
    out.answer(source.text.trim_end(), || json!({"flow": flow, "policy": digest, "source": source}))?;
    Ok(CommandExit::Yes)
}

/// Exits with 0 if the policy would commit the patch, and with 1 if it would hold or reject it.
fn suppose(ask: &args::PolicyWhatIf, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    let Ok(policy) = Policy::compile(&source_of(&ask.file)?) else { return unsound(&ask.file, out) };
    let (state, patch) = (document(&ask.state)?, document(&ask.patch)?);
    if !state.is_object() {
        return Err(CliError::Given(format!("{}: the state must be a JSON object", ask.state.display())));
    }
    let around = around(ask)?;
    let supposed =
        HypotheticalRequest { state: &state, node: &ask.node, format: ask.format, patch: &patch, around: &around };
    let told = what_if(&policy, &supposed, &StateLimits::default());
    let mut text = told.outcome.as_str().to_owned();
    let reasons = told.reasons.iter().map(|it| it.text.clone());
    let errors = told.errors.iter().map(|it| format!("{} at {:?}: {}", it.code, it.pointer.to_string(), it.detail));
    let warning = |it: &JudgedWarning| format!("warning at {:?}: {}", it.pointer.to_string(), it.detail);
    let warnings = told.warnings.iter().map(warning);
    for line in reasons.chain(warnings).chain(errors).chain(told.diff.iter().map(change)) {
        text.push_str("\n  ");
        text.push_str(&line);
    }
    out.answer(text, || json!(told))?;
    Ok(if told.outcome == JudgedOutcome::Commit { CommandExit::Yes } else { CommandExit::No })
}

fn around(ask: &args::PolicyWhatIf) -> Result<HypotheticalContext, CliError> {
    let principal = ask.principal.as_deref().zip(ask.owner.as_deref());
    let principal = principal.map(|(id, owner)| HypotheticalPrincipal::new(id, owner)).transpose();
    Ok(HypotheticalContext {
        principal: principal.map_err(|it| CliError::Given(format!("--principal: {}", it.detail)))?,
        committed_nodes: ask.committed_nodes.as_ref().map(|it| it.0.clone()),
        tool: ask.tool.as_deref().map(|file| read_as(file, Tool::read)).transpose()?,
        usage: ask.usage.as_deref().map(|file| read_as(file, Usage::read)).transpose()?.unwrap_or_default(),
        totals: ask.totals.as_deref().map(|file| read_as(file, Totals::read)).transpose()?,
    })
}

fn read_as<T>(file: &Path, read: impl Fn(&Value) -> Result<T, InvalidUsage>) -> Result<T, CliError> {
    let bad = |it: InvalidUsage| {
        CliError::Given(format!("{}: at {:?}: {}", file.display(), it.pointer.to_string(), it.detail))
    };
    read(&document(file)?).map_err(bad)
}

/// Reports an invalid policy as an error, because it gives no result for the patch.
fn unsound(file: &Path, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    report_policy_check(file, out)?;
    Ok(CommandExit::CouldNotTell)
}

fn document(path: &Path) -> Result<Value, CliError> {
    let text = read(path)?;
    parse(text.as_bytes(), &ParseLimits::default())
        .map_err(|error| CliError::Given(format!("{}: {error}", path.display())))
}

/// Formats a line of the diff. Values and pointers are printed as JSON, which escapes control characters.
fn change(change: &RedactedChange) -> String {
    let side = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), canonical_ascii);
    match change {
        RedactedChange::Hidden { pointer, .. } => format!("{}: a redacted value", canonical_ascii(&json!(pointer))),
        RedactedChange::Shown { pointer, before, after } => {
            format!("{}: {} → {}", canonical_ascii(&json!(pointer)), side(before), side(after))
        }
    }
}

/// Returns JSON in ASCII. Other characters could reorder or hide text on a terminal.
fn canonical_ascii(value: &Value) -> String {
    let mut text = String::new();
    for unit in canonical(value).chars() {
        match unit {
            ' '..='~' => text.push(unit),
            other => other.encode_utf16(&mut [0; 2]).iter().for_each(|it| text.push_str(&format!("\\u{it:04x}"))),
        }
    }
    text
}

/// Reads a policy with the schemas in its folder. A missing schema is skipped, because the compiler reports it with its
/// line.
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

/// Returns true for a file name in the policy's own folder. A policy must not read other files (path traversal).
fn is_beside(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

/// Returns the schema files that a policy names in `schema` and `receives`. The compiler parses the text again,
/// strictly.
fn schema_names(text: &str) -> BTreeSet<String> {
    let Ok(document) = text.parse::<toml::Table>() else { return BTreeSet::new() };
    let nodes = document.get("nodes").and_then(toml::Value::as_table);
    let of_nodes = nodes
        .into_iter()
        .flat_map(|it| it.values())
        .flat_map(|node| [node.get("schema"), node.get("receives")])
        .flatten();
    let named = document.get("schema").into_iter().chain(of_nodes);
    named.filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

fn read(path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let opened = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    opened.map_err(|source| CliError::Read { what: path.display().to_string(), source })?;
    Ok(text)
}
