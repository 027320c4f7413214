//! Settings for monitoring: access to metrics, and the log export (SIEM).

use std::path::PathBuf;

use countersign_adapters::log_sink::LogExportTarget;
use countersign_web::metrics_access::MetricsAccess;

use super::ConfigError;
use super::settings::ConfigLayers;

pub(super) fn read_access(settings: &mut ConfigLayers) -> Result<MetricsAccess, ConfigError> {
    settings.text("metrics.access", "token, open or off", |text| match text {
        "off" => Some(MetricsAccess::Off),
        "token" => Some(MetricsAccess::Token),
        "open" => Some(MetricsAccess::Open),
        _ => None,
    })
}

pub(super) fn read_log_export(settings: &mut ConfigLayers) -> Result<Option<LogExportTarget>, ConfigError> {
    settings.optional("siem.output", "empty, `-` or a path", |text| {
        Some(if text == "-" { LogExportTarget::Stdout } else { LogExportTarget::File(PathBuf::from(text)) })
    })
}
