//! Limits on the addresses that webhooks can be sent to.

use countersign_adapters::network::Network;

use super::settings::ConfigLayers;
use super::{ConfigError, NETWORK_EXPECTED};

/// Limits on the addresses of webhooks, against SSRF.
#[derive(Clone, Debug)]
pub struct WebhooksConfig {
    /// Private networks that webhooks can reach nevertheless.
    pub allow_networks: Vec<Network>,
    /// Whether webhooks to public addresses can use plain HTTP.
    pub plain_http: bool,
}

impl WebhooksConfig {
    pub(super) fn read(settings: &mut ConfigLayers) -> Result<Self, ConfigError> {
        Ok(Self {
            allow_networks: settings.list("webhooks.allow_networks", NETWORK_EXPECTED, Network::parse)?,
            plain_http: settings.flag("webhooks.plain_http")?,
        })
    }
}
