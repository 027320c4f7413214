//! Requests and complete answers. A request is repeated while its answer is lost, and never if it could have a second
//! effect: each request here is safe to repeat.

use std::error::Error as _;
use std::time::Duration;

use countersign_domain::json::parse::{DEPTH_CEILING, ParseLimits, parse};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use crate::client::Client;
use crate::error::ClientError;

/// The time for which a request is repeated if its answer is lost, or the gateway cannot answer now.
const REPEATED_FOR: Duration = Duration::from_secs(20);

/// The time for which a request is repeated if there is no connection. A gateway restarts in it.
const CONNECTED_IN: Duration = Duration::from_secs(3);

/// The pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(300);

/// The codes of damage that no repetition repairs.
const ONLY_PEOPLE_FIX: [&str; 3] = ["chain_broken", "archive_missing", "archive_damaged"];

/// The limit on an answer: the longest state, and its signed form.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long a request waits for a gateway that cannot be connected to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Nothing has happened yet, so an early error helps the caller.
    Short,
    /// A write has happened, or reviewers decide. Then a gateway that restarts is worth the time.
    Long,
}

/// A request to the gateway.
pub struct GatewayRequest {
    method: Method,
    path: String,
    key: Option<String>,
    body: Option<Value>,
}

/// A complete answer with a status of success.
#[derive(Debug)]
pub struct GatewayAnswer {
    pub status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl GatewayRequest {
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), key: None, body: None }
    }

    pub fn body(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Sets the `Idempotency-Key`.
    pub fn key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }
}

impl GatewayAnswer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        // A key twice, or a number that changes when it is read, could show the caller another value than was signed.
        let limits = ParseLimits { bytes_max: ANSWER_BYTES_MAX, depth_max: DEPTH_CEILING };
        let value = parse(&self.body, &limits).map_err(|error| ClientError::UnexpectedAnswer(error.to_string()))?;
        serde_json::from_value(value).map_err(|error| ClientError::UnexpectedAnswer(error.to_string()))
    }
}

impl Client {
    /// Sends a request, again while its answer is lost.
    pub(crate) async fn exchange(
        &self,
        request: &GatewayRequest,
        patience: Patience,
    ) -> Result<GatewayAnswer, ClientError> {
        let begun = Instant::now();
        loop {
            let failure = match self.send(request).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let repeated_for = match failure.kind {
                FailureKind::Final => Duration::ZERO,
                FailureKind::NoConnection if patience == Patience::Short => CONNECTED_IN,
                FailureKind::NoConnection | FailureKind::Passing => REPEATED_FOR,
            };
            if begun.elapsed() >= repeated_for {
                return Err(failure.error);
            }
            tokio::time::sleep(failure.pause.clamp(PAUSE, REPEATED_FOR)).await;
        }
    }

    async fn send(&self, request: &GatewayRequest) -> Result<GatewayAnswer, ExchangeFailure> {
        let mut sent = self.http.request(request.method.clone(), self.url(&request.path));
        if let Some(key) = &request.key {
            sent = sent.header("idempotency-key", key);
        }
        if let Some(body) = &request.body {
            sent = sent.body(body.to_string());
        }
        let mut response = sent.send().await.map_err(lost)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(lost)? {
            if body.len() + piece.len() > ANSWER_BYTES_MAX {
                let error = ClientError::UnexpectedAnswer("the answer is too large".to_owned());
                return Err(ExchangeFailure { kind: FailureKind::Final, error, pause: PAUSE });
            }
            body.extend_from_slice(&piece);
        }
        if status.is_success() {
            return Ok(GatewayAnswer { status: status.as_u16(), headers, body });
        }
        let error = refusal(status, &body);
        let is_passing = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        let kind = match is_passing && !ONLY_PEOPLE_FIX.contains(&error.code()) {
            true => FailureKind::Passing,
            false => FailureKind::Final,
        };
        let after = headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse().ok());
        Err(ExchangeFailure { kind, error, pause: Duration::from_secs(after.unwrap_or_default()) })
    }
}

/// Why there is no answer with a status of success.
struct ExchangeFailure {
    kind: FailureKind,
    error: ClientError,
    /// The pause that the gateway asks for.
    pause: Duration,
}

enum FailureKind {
    NoConnection,
    /// The next attempt can succeed.
    Passing,
    Final,
}

fn lost(error: reqwest::Error) -> ExchangeFailure {
    let kind = if error.is_connect() { FailureKind::NoConnection } else { FailureKind::Passing };
    // Without the URL, whose path can name a job. The cause, such as an invalid certificate, comes last.
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    ExchangeFailure { kind, error: ClientError::Unreachable(text), pause: PAUSE }
}

/// Returns the error of an answer: a problem of the gateway, or an error of the Agent Approval Protocol.
fn refusal(status: StatusCode, body: &[u8]) -> ClientError {
    let told: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |it: &Value| it.as_str().map(str::to_owned);
    let code = text(&told["error"]["code"]).or_else(|| text(&told["code"]));
    match (code, text(&told["error"]["message"]).or_else(|| text(&told["detail"]))) {
        (Some(code), Some(detail)) => ClientError::Refused { status: status.as_u16(), code, detail },
        _ => ClientError::UnexpectedAnswer(format!("HTTP {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_that_could_be_read_in_two_ways_is_refused() {
        let read = |body: &str| {
            let answer = GatewayAnswer { status: 200, headers: HeaderMap::new(), body: body.as_bytes().to_vec() };
            answer.read::<Value>().map_err(|it| it.code().to_owned())
        };
        assert_eq!(read(r#"{"view": {"amount": 40}}"#).unwrap()["view"]["amount"], 40);
        for body in [
            r#"{"amount": 40, "amount": 4000}"#,
            r#"{"amount": 40, "am\u006funt": 4000}"#,
            r#"{"amount": 12345678901234567890}"#,
            r#"{"amount": 1e400}"#,
            r#"{"name": "\ud800"}"#,
            "{} {}",
        ] {
            assert_eq!(read(body).unwrap_err(), "unexpected_answer", "{body}");
        }
    }
}
