//! Where a command's answer goes: standard output carries that alone, and nothing in it acts on a terminal.

use std::fmt::Display;
use std::io::{self, Write};

use serde_json::Value;

use crate::domain::primitives::sanitize;

/// How an answer is written.
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
    /// Answers in this form, to there.
    pub fn new(form: OutputFormat, to: &'a mut dyn Write) -> Self {
        Self { form, to, warnings: Vec::new() }
    }

    pub const fn form(&self) -> OutputFormat {
        self.form
    }

    /// Something that whoever reads the answer has to know, though the command did what it was asked for.
    pub fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }

    /// What there is to warn of.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Says the answer, as text or as JSON.
    pub fn answer(&mut self, text: impl Display, json: impl FnOnce() -> Value) -> io::Result<()> {
        match self.form {
            OutputFormat::Text => writeln!(self.to, "{}", sanitize::printed(&text.to_string()))?,
            OutputFormat::Json => writeln!(self.to, "{}", sanitize::json(&json().to_string()))?,
        }
        self.to.flush()
    }
}
