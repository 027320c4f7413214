//! A receipt, check by check.

use askama::Template;

use crate::web::pages::shared::layout::{PageLayout, TimestampView, Tone};
use crate::web::pages::shared::safe_text::{SafeLine, SafeText};

/// `GET /verifier`, and what a submit there comes to.
#[derive(Template, Clone, Debug)]
#[template(path = "verifier.html")]
pub struct VerifierPage {
    pub shell: PageLayout,
    pub csrf: String,
    pub typed: VerifierInputView,
    pub problem: Option<String>,
    pub told: Option<ReceiptCheckResult>,
}

#[derive(Clone, Debug)]
pub struct VerifierInputView {
    pub receipt: SafeText,
    pub entry: SafeText,
    pub statement: SafeText,
}

#[derive(Clone, Debug)]
pub struct ReceiptCheckResult {
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

#[derive(Clone, Debug)]
pub struct CheckRow {
    /// The word for programs.
    pub name: &'static str,
    pub tone: Tone,
    /// "passed", "failed", "could not tell", "not reached".
    pub outcome: &'static str,
    pub says: &'static str,
    /// The code that verify would answer.
    pub code: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub struct ReceiptClaimRow {
    pub name: &'static str,
    pub value: SafeLine,
}

/// A fact that only the gateway has.
#[derive(Clone, Debug)]
pub struct GatewayFactRow {
    pub tone: Tone,
    pub words: SafeLine,
    pub at: Option<TimestampView>,
    pub url: Option<String>,
}
