//! View of the receipt verifier.

use askama::Template;

use crate::pages::shared::layout::{PageLayout, TimestampView, Tone};
use crate::pages::shared::safe_text::{SafeLine, SafeText};

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
    /// Result of all checks in a sentence.
    pub conclusion: &'static str,
    pub checks: Vec<CheckRow>,
    /// Claims of the receipt. Empty if it cannot be parsed.
    pub says: Vec<ReceiptClaimRow>,
    /// Facts from the database of this gateway.
    pub known: Vec<GatewayFactRow>,
}

#[derive(Clone, Debug)]
pub struct CheckRow {
    /// Machine-readable name.
    pub name: &'static str,
    pub tone: Tone,
    /// "passed", "failed", "not verified", "not reached".
    pub outcome: &'static str,
    pub says: &'static str,
    /// Error code that `verify` would return.
    pub code: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub struct ReceiptClaimRow {
    pub name: &'static str,
    pub value: SafeLine,
}

/// A fact that only the gateway knows, for example a revocation.
#[derive(Clone, Debug)]
pub struct GatewayFactRow {
    pub tone: Tone,
    pub words: SafeLine,
    pub at: Option<TimestampView>,
    pub url: Option<String>,
}
