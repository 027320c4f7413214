//! A receipt, check by check.

use askama::Template;

use crate::web::pages::shared::layout::{Moment, Shell, Tone};
use crate::web::pages::shared::safe_text::{Line, Prose};

/// `GET /verifier`, and what a submit there comes to.
#[derive(Template, Clone, Debug)]
#[template(path = "verifier.html")]
pub struct VerifierPage {
    /// The frame.
    pub shell: Shell,
    /// The session's token.
    pub csrf: String,
    /// What was typed.
    pub typed: Typed,
    /// Why nothing was checked.
    pub problem: Option<String>,
    /// What came out.
    pub told: Option<Told>,
}

/// What was typed.
#[derive(Clone, Debug)]
pub struct Typed {
    /// The receipt.
    pub receipt: Prose,
    /// The entry.
    pub entry: Prose,
    /// The statement.
    pub statement: Prose,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Told {
    /// How it is meant.
    pub tone: Tone,
    /// All checks together, in a sentence.
    pub conclusion: &'static str,
    /// The checks, in their order.
    pub checks: Vec<CheckRow>,
    /// What the receipt says, if it can be read.
    pub says: Vec<Said>,
    /// What this gateway knows of it.
    pub known: Vec<KnownRow>,
}

/// A check.
#[derive(Clone, Debug)]
pub struct CheckRow {
    /// The word for programs.
    pub name: &'static str,
    /// How it is meant.
    pub tone: Tone,
    /// "passed", "failed", "could not tell", "not reached".
    pub outcome: &'static str,
    /// What that means.
    pub says: &'static str,
    /// The code that verify would answer.
    pub code: Option<&'static str>,
}

/// A claim.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: Line,
}

/// A fact that only the gateway has.
#[derive(Clone, Debug)]
pub struct KnownRow {
    /// How it is meant.
    pub tone: Tone,
    /// In words.
    pub words: Line,
    /// When.
    pub at: Option<Moment>,
    /// Where to read more.
    pub url: Option<String>,
}
