//! Settings for monitoring: access to metrics, and the log export (SIEM).

use std::path::PathBuf;

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

/// The target of the log export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogExportTarget {
    Stdout,
    /// A file. Lines are appended.
    File(PathBuf),
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

impl LogExportTarget {
    pub(super) fn read(settings: &mut ConfigLayers) -> Result<Option<Self>, ConfigError> {
        settings.optional("siem.output", "empty, `-` or a path", |text| {
            Some(if text == "-" { Self::Stdout } else { Self::File(PathBuf::from(text)) })
        })
    }
}
