//! What may be sent to addresses that people name.

use super::settings::ConfigLayers;
use super::{ConfigError, Network, network};

/// What may be sent to addresses that people name.
#[derive(Clone, Debug)]
pub struct WebhooksConfig {
    /// Networks that are not public, and allowed nevertheless.
    pub allow_networks: Vec<Network>,
    /// Whether plain HTTP goes to public addresses, too.
    pub plain_http: bool,
}

impl WebhooksConfig {
    pub(super) fn read(settings: &mut ConfigLayers) -> Result<Self, ConfigError> {
        Ok(Self {
            allow_networks: settings.list("webhooks.allow_networks", network::EXPECTED, Network::parse)?,
            plain_http: settings.flag("webhooks.plain_http")?,
        })
    }
}
