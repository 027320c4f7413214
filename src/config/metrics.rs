//! Settings for monitoring: access to metrics, and the log export (SIEM).

use std::path::PathBuf;

use countersign_adapters::log_sink::LogExportTarget;

use super::ConfigError;
use super::settings::ConfigLayers;

/// Who can read the metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricsAccess {
    Off,
    /// Clients with a token for metrics.
    Token,
    /// Every client that can reach the gateway.
    Open,
}

impl MetricsAccess {
    pub(super) fn read(settings: &mut ConfigLayers) -> Result<Self, ConfigError> {
        settings.text("metrics.access", "token, open or off", |text| match text {
            "off" => Some(Self::Off),
            "token" => Some(Self::Token),
            "open" => Some(Self::Open),
            _ => None,
        })
    }
}

pub(super) fn read_log_export(settings: &mut ConfigLayers) -> Result<Option<LogExportTarget>, ConfigError> {
    settings.optional("siem.output", "empty, `-` or a path", |text| {
        Some(if text == "-" { LogExportTarget::Stdout } else { LogExportTarget::File(PathBuf::from(text)) })
    })
}
