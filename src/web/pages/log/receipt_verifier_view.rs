//! A receipt, check by check.

use askama::Template;

use crate::web::pages::shared::layout::{PageLayout, TimestampView, Tone};
use crate::web::pages::shared::safe_text::{SafeLine, SafeText};

/// `GET /verifier`, and what a submit there comes to.
#[derive(Template, Clone, Debug)]
#[template(path = "verifier.html")]
pub struct VerifierPage {
    /// The frame.
    pub shell: PageLayout,
    /// The session's token.
    pub csrf: String,
    /// What was typed.
    pub typed: VerifierInputView,
    /// Why nothing was checked.
    pub problem: Option<String>,
    /// What came out.
    pub told: Option<ReceiptCheckResult>,
}

/// What was typed.
#[derive(Clone, Debug)]
pub struct VerifierInputView {
    /// The receipt.
    pub receipt: SafeText,
    /// The entry.
    pub entry: SafeText,
    /// The statement.
    pub statement: SafeText,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct ReceiptCheckResult {
    /// How it is meant.
    pub tone: Tone,
    /// All checks together, in a sentence.
    pub conclusion: &'static str,
    /// The checks, in their order.
    pub checks: Vec<CheckRow>,
    /// What the receipt says, if it can be read.
    pub says: Vec<ReceiptClaimRow>,
    /// What this gateway knows of it.
    pub known: Vec<GatewayFactRow>,
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
pub struct ReceiptClaimRow {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: SafeLine,
}

/// A fact that only the gateway has.
#[derive(Clone, Debug)]
pub struct GatewayFactRow {
    /// How it is meant.
    pub tone: Tone,
    /// In words.
    pub words: SafeLine,
    /// When.
    pub at: Option<TimestampView>,
    /// Where to read more.
    pub url: Option<String>,
}
