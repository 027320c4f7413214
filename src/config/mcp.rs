//! MCP servers behind the gateway.

use countersign_mcp_guard::upstream::UpstreamSettings;
use url::Url;

use super::oidc::read_secret_of;
use super::settings::{ConfigLayers, UPSTREAMS};
use super::{ConfigCode, ConfigError};

pub(super) fn read(settings: &mut ConfigLayers) -> Result<Vec<UpstreamSettings>, ConfigError> {
    let mut upstreams = Vec::new();
    for name in settings.tables_of(UPSTREAMS) {
        let key = |member: &str| format!("{UPSTREAMS}{name}.{member}");
        let url =
            settings.text(&key("url"), "a URL with http:// or https:// and a host, without a password", read_url)?;
        let secret = read_secret_of(settings, &key("secret"), &key("secret_file"))?;
        if !is_name(&name) {
            let problem = "the name of an MCP server must be 1 to 64 characters from A-Z a-z 0-9 . _ -";
            return Err(settings.refuse(ConfigCode::BadValue, &key("url"), problem));
        }
        upstreams.push(UpstreamSettings { name, url, secret });
    }
    Ok(upstreams)
}

/// Returns whether the name can be a part of a URL, of a folder and of a tool's name.
fn is_name(name: &str) -> bool {
    let fits = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('.')
}

fn read_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok().filter(|it| matches!(it.scheme(), "http" | "https") && it.has_host())?;
    // Credentials belong in `secret`, which is never printed.
    (url.username().is_empty() && url.password().is_none() && url.fragment().is_none()).then_some(url)
}
