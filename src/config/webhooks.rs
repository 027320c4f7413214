//! What may be sent to addresses that people name.

use super::settings::Settings;
use super::{ConfigError, Network, network};

/// What may be sent to addresses that people name.
#[derive(Clone, Debug)]
pub struct Webhooks {
    /// Networks that are not public, and allowed nevertheless.
    pub allow_networks: Vec<Network>,
    /// Whether plain HTTP goes to public addresses, too.
    pub plain_http: bool,
}

impl Webhooks {
    pub(super) fn read(settings: &mut Settings) -> Result<Self, ConfigError> {
        Ok(Self {
            allow_networks: settings.list("webhooks.allow_networks", network::EXPECTED, Network::parse)?,
            plain_http: settings.flag("webhooks.plain_http")?,
        })
    }
}
