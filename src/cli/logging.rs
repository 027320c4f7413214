//! The server log on standard error, as text or as JSON. It contains no secrets: secret types print as `[redacted]`,
//! and handlers log routes instead of paths.

use std::io::{self, Write};

use countersign_domain::primitives::sanitize;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{Layer as _, Registry, fmt};

use crate::config::{LogConfig, LogFormat};

/// Starts the server log. Libraries log warnings only, because their debug lines can contain whole requests.
pub fn begin(log: &LogConfig) -> Result<(), TryInitError> {
    let own = LevelFilter::from_level(log.level);
    let others = own.min(LevelFilter::WARN);
    // The pool warns about every connection that an outage closes. The store logs the outage itself, once a second.
    let wanted = Targets::new()
        .with_default(others)
        .with_target("deadpool", others.min(LevelFilter::ERROR))
        .with_target("countersign", own);
    let form = log.format;
    let to = move || SanitizedFormatter { form, to: io::stderr() };
    let layer = match form {
        // Colours need escape sequences. Without them the sanitizer can escape every one, including those in hostile
        // data.
        LogFormat::Text => fmt::layer().with_ansi(false).with_writer(to).boxed(),
        LogFormat::Json => fmt::layer().json().with_writer(to).boxed(),
    };
    Registry::default().with(layer.with_filter(wanted)).try_init()
}

/// Sanitizes log lines, so that data from clients cannot control a terminal.
struct SanitizedFormatter<W> {
    form: LogFormat,
    to: W,
}

impl<W: Write> Write for SanitizedFormatter<W> {
    /// The layer passes one whole line at a time.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let inert = match self.form {
            LogFormat::Json => sanitize::json(&text),
            LogFormat::Text => sanitize::printed(&text),
        };
        self.to.write_all(inert.as_bytes())?;
        // The caller expects the length of its own line, and sanitizing changes the length.
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests;
