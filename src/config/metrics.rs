//! What whoever watches the gateway is told.

use std::path::PathBuf;

use super::ConfigError;
use super::settings::ConfigLayers;

/// Who reads what the gateway counts of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricsAccess {
    Off,
    /// Whoever has a token for it.
    Token,
    /// Whoever reaches the gateway.
    Open,
}

/// Where the log is copied to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogExportTarget {
    Stdout,
    /// A file that lines are appended to.
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
