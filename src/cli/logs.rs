//! The log on standard error: lines for people or for machines. What is secret never reaches it, because secrets
//! print as `[redacted]` and handlers log routes, not addresses.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{Layer as _, Registry, fmt};

use crate::config::{Log, LogFormat};

/// Begins to log. What libraries say is kept to warnings: their debug lines may hold whole requests.
pub fn begin(log: &Log) -> Result<(), TryInitError> {
    let own = LevelFilter::from_level(log.level);
    let others = own.min(LevelFilter::WARN);
    let wanted = Targets::new().with_default(others).with_target("countersign", own);
    let layer = match log.format {
        LogFormat::Text => fmt::layer().with_ansi(std::io::stderr().is_terminal()).with_writer(std::io::stderr).boxed(),
        LogFormat::Json => fmt::layer().json().with_writer(std::io::stderr).boxed(),
    };
    Registry::default().with(layer.with_filter(wanted)).try_init()
}
