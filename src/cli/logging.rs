//! The log on standard error: lines for people or for machines. What is secret never reaches it, because secrets
//! print as `[redacted]` and handlers log routes, not addresses.

use std::io::{self, Write};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{Layer as _, Registry, fmt};

use crate::config::{LogConfig, LogFormat};
use crate::domain::primitives::sanitize;

/// Begins to log. What libraries say is kept to warnings: their debug lines may hold whole requests.
pub fn begin(log: &LogConfig) -> Result<(), TryInitError> {
    let own = LevelFilter::from_level(log.level);
    let others = own.min(LevelFilter::WARN);
    // The pool warns of every connection that an outage ends; the store logs the outage once a second.
    let wanted = Targets::new()
        .with_default(others)
        .with_target("deadpool", others.min(LevelFilter::ERROR))
        .with_target("countersign", own);
    let form = log.format;
    let to = move || SanitizedFormatter { form, to: io::stderr() };
    let layer = match form {
        // Colours would be escapes that lines may have, and then others could have them, too.
        LogFormat::Text => fmt::layer().with_ansi(false).with_writer(to).boxed(),
        LogFormat::Json => fmt::layer().json().with_writer(to).boxed(),
    };
    Registry::default().with(layer.with_filter(wanted)).try_init()
}

/// Lines in which nothing acts on who looks at them. What others wrote is in few of them, and in none by intent.
struct SanitizedFormatter<W> {
    form: LogFormat,
    to: W,
}

impl<W: Write> Write for SanitizedFormatter<W> {
    /// A line at a time: the layer hands over each as one.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let inert = match self.form {
            LogFormat::Json => sanitize::json(&text),
            LogFormat::Text => sanitize::printed(&text),
        };
        self.to.write_all(inert.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests;
