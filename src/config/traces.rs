//! Traces: which collector takes them.

use url::Url;

use super::oidc::read_secret_of;
use super::settings::ConfigLayers;
use super::{ConfigCode, ConfigError};
use crate::domain::primitives::secret::Secret;

/// A collector of OpenTelemetry's, as it takes traces by HTTP.
#[derive(Clone, Debug)]
pub struct TracesConfig {
    pub url: Url,
    /// What it knows us by: an `authorization` header.
    pub authorization: Option<Secret<String>>,
    /// How many of a hundred requests are traced that belong to no trace yet. Of others, whoever began it has said so.
    pub percent: u8,
}

impl TracesConfig {
    pub(super) fn read(settings: &mut ConfigLayers) -> Result<Option<Self>, ConfigError> {
        let url = settings.optional(
            "traces.url",
            "a URL with http:// or https://, a host and a path, like /v1/traces",
            read_url,
        )?;
        let authorization = read_secret_of(settings, "traces.authorization", "traces.authorization_file")?;
        let percent = settings.number("traces.percent", 0..=100)?;
        let Some(url) = url else { return Ok(None) };
        if url.scheme() == "http" && authorization.is_some() && !is_here(&url) {
            let problem = "the authorization header would cross the network unencrypted: use https://";
            return Err(settings.refuse(ConfigCode::PlainHttp, "traces.url", problem));
        }
        Ok(Some(Self { url, authorization, percent }))
    }
}

fn is_here(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

fn read_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok().filter(|it| matches!(it.scheme(), "http" | "https") && it.has_host())?;
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    plain.then_some(url)
}
