//! Asking the provider over HTTP: never on to another address, never for long, never for much.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use url::Url;

use crate::tls;

/// A provider that is there answers within this; somebody waits for it in their browser.
const ANSWER: Duration = Duration::from_secs(10);
/// A provider that is there takes a connection within this.
const CONNECTION: Duration = Duration::from_secs(5);
/// Metadata, keys and tokens have a few kilobytes each.
const BODY_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// It cannot be asked, or does not answer.
    #[error("the provider does not answer")]
    Request(#[from] reqwest::Error),
    #[error("the provider's answer has more than {BODY_BYTES_MAX} bytes")]
    TooLong,
    /// It says something that is no HTTP.
    #[error("the provider's answer is not HTTP")]
    NotHttp(#[from] http::Error),
}

pub struct ProviderHttp(reqwest::Client);

impl ProviderHttp {
    /// With the machine's own authorities, and perhaps one more. A provider that is reached by https leads to no place
    /// without it: such a place is refused before anything goes there.
    pub fn new(issuer: &Url, authority: Option<&[u8]>) -> Result<Self, reqwest::Error> {
        tls::ready();
        let authorities = match authority {
            Some(pem) => reqwest::Certificate::from_pem_bundle(pem)?,
            None => Vec::new(),
        };
        // An answer that leads elsewhere would take the client's secret and the code along.
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .https_only(issuer.scheme() != "http")
            .connect_timeout(CONNECTION)
            .timeout(ANSWER)
            .tls_certs_merge(authorities);
        client.build().map(Self)
    }

    async fn ask(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut answer = self.0.execute(request.try_into()?).await?;
        let mut response = http::Response::builder().status(answer.status());
        for (name, value) in answer.headers() {
            response = response.header(name, value);
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            if body.len() + chunk.len() > BODY_BYTES_MAX {
                return Err(HttpError::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(response.body(body)?)
    }
}

impl<'c> AsyncHttpClient<'c> for ProviderHttp {
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.ask(request))
    }
}
