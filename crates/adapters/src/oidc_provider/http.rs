//! HTTP client for the OpenID provider. It follows no redirect, and limits time and size.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use url::Url;

use crate::tls;

/// The limit for a response. A person waits for it in the browser.
const ANSWER: Duration = Duration::from_secs(10);
/// The limit for connecting.
const CONNECTION: Duration = Duration::from_secs(5);
/// The limit for a response body. Metadata, keys and tokens have a few kilobytes each.
const BODY_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The provider is unreachable or does not respond.
    #[error("the OpenID provider does not respond")]
    Request(#[from] reqwest::Error),
    #[error("the OpenID provider's response exceeds {BODY_BYTES_MAX} bytes")]
    TooLong,
    /// The response is not HTTP.
    #[error("the OpenID provider's response is not HTTP")]
    NotHttp(#[from] http::Error),
}

pub struct ProviderHttp(reqwest::Client);

impl ProviderHttp {
    /// Creates a client that trusts the system's CAs and, if given, one more. For a provider with https the caller has
    /// already refused endpoints without it.
    pub fn new(issuer: &Url, authority: Option<&[u8]>) -> Result<Self, reqwest::Error> {
        tls::ready();
        let authorities = match authority {
            Some(pem) => reqwest::Certificate::from_pem_bundle(pem)?,
            None => Vec::new(),
        };
        // A redirect would send the client secret and the code to another address.
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
