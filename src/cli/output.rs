//! The output of commands. Standard output contains only the result, sanitized for terminals.

use std::fmt::Display;
use std::io::{self, Write};

use countersign_domain::primitives::sanitize;
use serde_json::Value;

/// The format of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputFormat {
    Text,
    /// `--json`.
    Json,
}

pub struct CommandOutput<'a> {
    form: OutputFormat,
    to: &'a mut dyn Write,
    warnings: Vec<String>,
}

impl<'a> CommandOutput<'a> {
    /// Creates an output with a format.
    pub fn new(form: OutputFormat, to: &'a mut dyn Write) -> Self {
        Self { form, to, warnings: Vec::new() }
    }

    pub const fn form(&self) -> OutputFormat {
        self.form
    }

    /// Adds a warning that the user must know although the command succeeded.
    pub fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Prints the result, as text or as JSON.
    pub fn answer(&mut self, text: impl Display, json: impl FnOnce() -> Value) -> io::Result<()> {
        match self.form {
            OutputFormat::Text => writeln!(self.to, "{}", sanitize::printed(&text.to_string()))?,
            OutputFormat::Json => writeln!(self.to, "{}", sanitize::json(&json().to_string()))?,
        }
        // The command `serve` prints its set-up link and then keeps running, so the output must not wait in a buffer.
        self.to.flush()
    }
}
