//! Sends traces to the collector over HTTP. It logs a failure once, and the recovery once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use countersign_domain::primitives::secret::Secret;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, redirect};
use tokio::runtime::Handle;

use super::TracesError;
use crate::tls;

/// The limit for a request. A collector only queues the spans.
const TIME_MAX: Duration = Duration::from_secs(10);

/// The limit on a response, which has at most the number of accepted spans. A longer response is not read.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// The exporter runs on its own thread, and its requests run on the gateway's runtime.
#[derive(Debug)]
pub(super) struct TraceHttpExporter {
    client: Client,
    on: Handle,
    fails: AtomicBool,
}

impl TraceHttpExporter {
    pub(super) fn new(authorization: Option<&Secret<String>>) -> Result<Self, TracesError> {
        tls::ready();
        let mut headers = HeaderMap::new();
        if let Some(secret) = authorization {
            let mut value = HeaderValue::from_str(secret.expose()).map_err(|_| TracesError::Authorization)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let client =
            Client::builder().default_headers(headers).redirect(redirect::Policy::none()).timeout(TIME_MAX).build()?;
        Ok(Self { client, on: Handle::current(), fails: AtomicBool::new(false) })
    }
}

#[async_trait]
impl HttpClient for TraceHttpExporter {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.on.spawn(send(self.client.clone(), request)).await?;
        let problem = match &sent {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it returned {}", answer.status().as_u16())),
            Err(error) => Some(error.to_string()),
        };
        match (problem, self.fails.load(Ordering::Relaxed)) {
            (Some(problem), false) => tracing::warn!(problem, "the trace collector rejects traces"),
            (None, true) => tracing::info!("the trace collector accepts traces again"),
            _ => {}
        }
        self.fails.store(!sent.as_ref().is_ok_and(|it| it.status().is_success()), Ordering::Relaxed);
        sent
    }
}

async fn send(client: Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let answer = client.execute(request.try_into()?).await.map_err(reqwest::Error::without_url)?;
    let status = answer.status();
    let body = match answer.content_length() {
        Some(0..=ANSWER_BYTES_MAX) => answer.bytes().await.map_err(reqwest::Error::without_url)?,
        _ => Bytes::new(),
    };
    Ok(Response::builder().status(status).body(body)?)
}
