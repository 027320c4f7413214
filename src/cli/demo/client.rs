//! A machine of the demo: an HTTP client that prints its requests and their responses.

use countersign_adapters::tls;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::{DemoDetail, DemoSetup};
use crate::cli::CliError;

/// The output of the demo. Lines are dropped after the demo was stopped.
#[derive(Clone)]
pub(super) struct DemoOutput(UnboundedSender<String>);

impl DemoOutput {
    pub(super) fn new(to: UnboundedSender<String>) -> Self {
        Self(to)
    }

    pub(super) fn say(&self, line: &str) {
        // The error is ignored, because the receiver ends only when the demo was stopped.
        let _ = self.0.send(line.to_owned());
    }
}

/// A host, an agent or a writer.
pub(super) struct DemoMachine {
    name: &'static str,
    token: String,
    base: String,
    http: reqwest::Client,
    detail: DemoDetail,
    voice: DemoOutput,
}

/// A request: method, path and optional body.
pub(super) enum DemoRequest {
    Get(String),
    /// A read that waits up to this many seconds.
    Wait(String, u64),
    Post(String, Value),
}

pub(super) struct DemoHttpResponse {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl DemoHttpResponse {
    /// Returns a text member of the response.
    pub(super) fn text(&self, name: &str) -> &str {
        self.body.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the response if it has this status. The scenario cannot continue otherwise.
    pub(super) fn must_be(self, status: u16) -> Result<Self, CliError> {
        if self.status == status {
            return Ok(self);
        }
        Err(CliError::Demo(format!("the gateway returned {} instead of {status}: {}", self.status, self.body)))
    }
}

/// The limit for tokens and digests in the output. Other values are printed in full.
const SHOWN_CHARS_MAX: usize = 90;

impl DemoMachine {
    pub(super) fn new(name: &'static str, token: String, stage: &DemoSetup) -> Result<Self, CliError> {
        // A proxy of the environment must not receive requests to localhost.
        tls::ready();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().map_err(failed)?;
        let (base, detail, voice) = (format!("http://{}", stage.bound), stage.detail, stage.voice.clone());
        Ok(Self { name, token, base, http, detail, voice })
    }

    pub(super) async fn ask(&self, ask: DemoRequest) -> Result<DemoHttpResponse, CliError> {
        let request = match &ask {
            DemoRequest::Get(path) => format!("GET {path}"),
            DemoRequest::Wait(path, secs) => format!("GET {path}   Prefer: wait={secs}"),
            DemoRequest::Post(path, body) if self.detail == DemoDetail::Bodies => {
                format!("POST {path}\n           {}", shown(body))
            }
            DemoRequest::Post(path, _) => format!("POST {path}"),
        };
        self.voice.say(&format!("\n{:>8} ▸ {request}", self.name));
        let answer = self.ask_quietly(ask).await?;
        self.say(&answer);
        Ok(answer)
    }

    /// Prints the response.
    pub(super) fn say(&self, answer: &DemoHttpResponse) {
        let told = match self.detail {
            DemoDetail::Bodies => shown(&answer.body),
            DemoDetail::Brief => result_of(&answer.body),
        };
        self.voice.say(format!("{:>8} ◂ {} {told}", self.name, answer.status).trim_end());
    }

    /// Repeats a request without printing it.
    pub(super) async fn ask_quietly(&self, ask: DemoRequest) -> Result<DemoHttpResponse, CliError> {
        let url = |path: String| format!("{}{path}", self.base);
        let request = match ask {
            DemoRequest::Get(path) => self.http.get(url(path)),
            DemoRequest::Wait(path, secs) => self.http.get(url(path)).header("prefer", format!("wait={secs}")),
            DemoRequest::Post(path, body) => self.http.post(url(path)).json(&body),
        };
        let response = request.bearer_auth(&self.token).send().await.map_err(failed)?;
        let status = response.status().as_u16();
        Ok(DemoHttpResponse { status, body: response.json().await.map_err(failed)? })
    }
}

fn failed(error: reqwest::Error) -> CliError {
    CliError::Demo(format!("the gateway cannot be reached: {error}"))
}

/// Returns the result that a response names, with the paths of what is wrong.
fn result_of(body: &Value) -> String {
    let named = ["code", "decision", "outcome"].iter().find_map(|it| body.get(it).and_then(Value::as_str));
    let errors = body.get("errors").and_then(Value::as_array).into_iter().flatten();
    let paths = errors.filter_map(|it| it["pointer"].as_str());
    named.into_iter().chain(paths).collect::<Vec<_>>().join(" ")
}

/// Formats JSON for the output. Long texts are cut, so that each value fits into a line.
fn shown(value: &Value) -> String {
    fn cut(value: &Value) -> Value {
        match value {
            Value::String(text) if text.chars().count() > SHOWN_CHARS_MAX => {
                let head: String = text.chars().take(24).collect();
                Value::String(format!("{head}… ({} characters)", text.chars().count()))
            }
            Value::Array(items) => items.iter().map(cut).collect(),
            Value::Object(members) => members.iter().map(|(key, it)| (key.clone(), cut(it))).collect(),
            other => other.clone(),
        }
    }
    cut(value).to_string()
}
