//! What carries traces to their collector. A collector that is away is said once, and so is that it is back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, redirect};
use tokio::runtime::Handle;

use super::TracesError;
use crate::domain::primitives::secret::Secret;
use crate::tls;

/// A collector takes what it is sent and works on it later.
const TIME_MAX: Duration = Duration::from_secs(10);

/// It says how many spans it took, if that. Of what is longer nothing is read.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// The exporter works on a thread of its own, and requests on the gateway's.
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
            Ok(answer) => Some(format!("it answered {}", answer.status().as_u16())),
            Err(error) => Some(error.to_string()),
        };
        match (problem, self.fails.load(Ordering::Relaxed)) {
            (Some(problem), false) => tracing::warn!(problem, "the collector takes no traces"),
            (None, true) => tracing::info!("the collector takes traces again"),
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
