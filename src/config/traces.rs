//! Settings of the OpenTelemetry export.

use countersign_adapters::traces::TracesConfig;
use url::Url;

use super::oidc::read_secret_of;
use super::settings::ConfigLayers;
use super::{ConfigCode, ConfigError};

pub(super) fn read(settings: &mut ConfigLayers) -> Result<Option<TracesConfig>, ConfigError> {
    let url = settings.optional(
        "traces.url",
        "a URL with http:// or https://, a host and a path, like /v1/traces",
        read_url,
    )?;
    let authorization = read_secret_of(settings, "traces.authorization", "traces.authorization_file")?;
    let percent = settings.number("traces.percent", 0..=100)?;
    // All keys are read before this, so that a mistake is reported even if no collector is set.
    let Some(url) = url else { return Ok(None) };
    if url.scheme() == "http" && authorization.is_some() && !is_here(&url) {
        let problem = "the authorization header would cross the network unencrypted: use https://";
        return Err(settings.refuse(ConfigCode::PlainHttp, "traces.url", problem));
    }
    Ok(Some(TracesConfig { url, authorization, percent }))
}

fn is_here(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

fn read_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok().filter(|it| matches!(it.scheme(), "http" | "https") && it.has_host())?;
    // Credentials belong in `traces.authorization`, which is never printed.
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    plain.then_some(url)
}
