//! Parsers for values on the command line. Each error names the accepted format.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{OsStringValueParser, TypedValueParser};
use countersign_domain::guard::SchemaDialect;
use countersign_domain::identity::account::{MachineRole, PersonRole};
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::keys::KeyUse;
use countersign_domain::primitives::id::{FlowId, NodeId};
use countersign_domain::primitives::secret::Secret;
use countersign_domain::primitives::time::Timestamp;

/// The source of a token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InputSource {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
    /// The argument itself.
    Given(String),
}

/// The scope of a halt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HaltScopeArg {
    /// Every flow.
    All,
    /// One flow.
    Flow(FlowId),
}

/// The part of a flow that a halt stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum HaltAspectArg {
    /// Halt proposals, new threads and votes.
    Proposing,
    /// Halt writes: no writer is authorized.
    Verifying,
}

/// Node names, separated by commas. An empty text means none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeList(pub BTreeSet<NodeId>);

/// The limit for names and reasons, which are one line in logs and on pages.
const LABEL_CHARS_MAX: usize = 200;

/// Accepts any path. Clap refuses an empty one with its usage text, and a script that asked for JSON could not read
/// that; the command itself refuses the path.
pub(super) fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

pub(super) fn secret(text: &str) -> Result<Secret<String>, String> {
    Ok(Secret::new(text.to_owned()))
}

pub(super) fn label(text: &str) -> Result<String, String> {
    // A control character would break the one line that logs and pages have for the text.
    let fits =
        !text.trim().is_empty() && text.chars().count() <= LABEL_CHARS_MAX && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned()).ok_or(format!("must be one line of 1 to {LABEL_CHARS_MAX} characters"))
}

pub(super) fn person_role(text: &str) -> Result<PersonRole, String> {
    // The names come from the domain type, so that the command line and the API accept the same ones.
    serde_json::from_value(text.into()).map_err(|_| "must be reviewer, admin or auditor".to_owned())
}

pub(super) fn machine_role(text: &str) -> Result<MachineRole, String> {
    serde_json::from_value(text.into()).map_err(|_| "must be host, agent, writer, auditor, admin or monitor".to_owned())
}

pub(super) fn key_use(text: &str) -> Result<KeyUse, String> {
    KeyUse::named(text).ok_or("must be chain, log or webhook".to_owned())
}

pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    let expected = "must be a UTC time with milliseconds, like 2026-11-21T01:36:40.123Z";
    serde_json::from_value(text.into()).map_err(|_| expected.to_owned())
}

pub(super) fn scope(text: &str) -> Result<HaltScopeArg, String> {
    match text {
        "all" => Ok(HaltScopeArg::All),
        flow => FlowId::try_from(flow).map(HaltScopeArg::Flow).map_err(|refused| refused.to_string()),
    }
}

pub(super) fn nodes(text: &str) -> Result<NodeList, String> {
    // An empty text means no nodes, and not one node with an empty name.
    let names = text.split(',').map(str::trim).filter(|_| !text.trim().is_empty());
    let read = names.map(|it| NodeId::try_from(it).map_err(|refused| refused.to_string()));
    read.collect::<Result<_, _>>().map(NodeList)
}

pub(super) fn digest(text: &str) -> Result<String, String> {
    let hex = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
    let fits = text.strip_prefix("sha256:").is_some_and(|it| it.len() == 64 && it.bytes().all(hex));
    fits.then(|| text.to_owned()).ok_or("must be sha256: followed by 64 lower-case hex digits".to_owned())
}

/// A token has two dots and base64url around them. For a file of that form, `./` in front makes it a path.
pub(super) fn dialect(text: &str) -> Result<SchemaDialect, String> {
    let all = [SchemaDialect::Guard, SchemaDialect::JsonSchema];
    all.into_iter().find(|it| it.as_str() == text).ok_or_else(|| "must be guard or json-schema-2020-12".to_owned())
}

pub(super) fn format(text: &str) -> Result<PatchFormat, String> {
    let all = [PatchFormat::Merge, PatchFormat::MergePatch, PatchFormat::JsonPatch];
    all.into_iter().find(|it| it.as_str() == text).ok_or_else(|| "must be merge, merge-patch or json-patch".to_owned())
}

pub(super) fn input(text: &str) -> Result<InputSource, String> {
    let base64url =
        |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it));
    let parts = text.split('.').count();
    match text {
        "-" => Ok(InputSource::Stdin),
        // Every JWS begins with `eyJ`, so a damaged token is still reported as a token and not as a missing file.
        token if token.starts_with("eyJ") && parts > 1 => Ok(InputSource::Given(token.to_owned())),
        token if parts == 3 && token.split('.').all(base64url) => Ok(InputSource::Given(token.to_owned())),
        path => Ok(InputSource::File(PathBuf::from(path))),
    }
}
