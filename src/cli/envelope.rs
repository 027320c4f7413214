//! `envelope verify`: checks offline, with published keys only, whether an envelope is valid for a model call.

use std::env;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use countersign_adapters::clock::Clock;
use countersign_domain::context::{
    Envelope, EnvelopeClaims, EnvelopeCode, ExpectedEnvelope, InputMismatch, InputSchema, NodeSecrets, NodeSecretsView,
    check,
};
use countersign_domain::json::parse::{ParseLimits, parse};
use countersign_domain::keys::PublicKeys;
use countersign_domain::primitives::sanitize::printed_line;
use countersign_domain::primitives::time::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::args;
use super::output::CommandOutput;
use super::{CliError, CommandExit};

/// The variable with the node's secrets, if no file is named.
const SECRET_VARIABLE: &str = "COUNTERSIGN_ENVELOPE_SECRET";

/// The limit for files. An envelope is a state and a signature.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Runs `envelope …`.
pub fn run(
    command: &args::EnvelopeCommand,
    clock: &impl Clock,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    let args::EnvelopeCommand::Verify(ask) = command;
    let envelope: Envelope = document(&ask.envelope, "an envelope")?;
    let keys: Value = document(&ask.jwks, "a set of published keys")?;
    let keys = PublicKeys::from_jwks(&keys)
        .map_err(|error| CliError::Given(format!("{} is not a valid key set: {error}", ask.jwks.display())))?;
    let receives = ask.schema.as_deref().map(schema).transpose()?;
    let secrets = secrets(ask.secret_file.as_deref(), clock.now())?;
    let expected = ExpectedEnvelope {
        keys: &keys,
        // A key set without an issuer checks the signature only.
        issuer: keys.issuer(),
        thread: ask.thread.as_ref(),
        node: ask.node.as_ref(),
        version: ask.head,
        receives: receives.as_ref(),
        secrets: secrets.as_ref(),
    };
    match check(&envelope, &expected) {
        Ok(claims) => {
            // Without secrets the HMAC is not checked, and the result must not suggest that it was.
            let hmac = if secrets.is_some() { "checked" } else { "not_checked" };
            out.answer(good(&claims), || {
                json!({"valid": true, "thread": claims.thread, "node": claims.node, "version": claims.version,
                    "tokens": claims.tokens, "encoding": claims.encoding, "hmac": hmac})
            })?;
            Ok(CommandExit::Yes)
        }
        Err(code) => {
            let unfit = receives.filter(|_| code == EnvelopeCode::SchemaMismatch);
            let misfits = unfit.map_or_else(Vec::new, |it| it.misfits(&envelope.payload));
            let places: Vec<Value> =
                misfits.iter().map(|it| json!({"pointer": it.pointer, "detail": it.detail})).collect();
            out.answer(
                bad(code, &misfits),
                || json!({"valid": false, "code": code.as_str(), "detail": code.detail(), "errors": places}),
            )?;
            Ok(CommandExit::No)
        }
    }
}

/// Reads the node's secrets, if there are any. They are never an argument, because process lists show arguments.
fn secrets(file: Option<&Path>, now: Timestamp) -> Result<Option<NodeSecrets>, CliError> {
    let (named, text) = match (file, env::var(SECRET_VARIABLE)) {
        // The memory of the secrets is wiped after use.
        (Some(path), _) => (path.display().to_string(), Zeroizing::new(text(path)?)),
        (None, Ok(text)) => (SECRET_VARIABLE.to_owned(), Zeroizing::new(text)),
        (None, Err(env::VarError::NotPresent)) => return Ok(None),
        (None, Err(env::VarError::NotUnicode(_))) => {
            return Err(CliError::Given(format!("{SECRET_VARIABLE} is not UTF-8")));
        }
    };
    // The parser's error could quote the text, which is secret, so it is dropped.
    let shown = serde_json::from_str::<NodeSecretsView>(&text).ok();
    let secrets = shown.and_then(|it| NodeSecrets::read(&it, now));
    let none = || CliError::Given(format!("{named} does not contain the gateway's response with the node's secrets"));
    secrets.ok_or_else(none).map(Some)
}

fn good(claims: &EnvelopeClaims) -> String {
    format!(
        "valid: version {} of {}, for {}, {} tokens by {}",
        claims.version,
        claims.thread,
        claims.node,
        claims.tokens,
        claims.encoding.as_str()
    )
}

fn bad(code: EnvelopeCode, misfits: &[InputMismatch]) -> String {
    let mut told = format!("not valid: {}\n{}", code.as_str(), code.detail());
    for InputMismatch { pointer, detail } in misfits {
        // The author of the state chose the member's name, so it is sanitized for the terminal.
        let _ = write!(told, "\n{}: {detail}", printed_line(pointer.as_str()));
    }
    told
}

fn schema(path: &Path) -> Result<InputSchema, CliError> {
    InputSchema::read(&path.display().to_string(), &text(path)?).map_err(CliError::Given)
}

fn document<T: DeserializeOwned>(path: &Path, what: &str) -> Result<T, CliError> {
    let (named, text) = (path.display().to_string(), text(path)?);
    // The limit for files already bounds the size, so the parser's lower default does not apply.
    let limits = ParseLimits { bytes_max: text.len(), ..ParseLimits::default() };
    let value = parse(text.as_bytes(), &limits)
        .map_err(|error| CliError::Given(format!("{named} is not strict JSON: {}", error.code.as_str())))?;
    serde_json::from_value(value).map_err(|error| CliError::Given(format!("{named} is not {what}: {error}")))
}

fn text(path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    // A cut file fails to parse, so the limit needs no error of its own.
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|source| CliError::Read { what: path.display().to_string(), source })?;
    Ok(text)
}
