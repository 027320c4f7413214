//! `GET` and `POST /verifier`: verifies a receipt and shows every check.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template as _;
use countersign_domain::chain::receipt::Receipt;
use countersign_domain::chain::statement::Statement;
use countersign_domain::chain::verify_receipt_offline::{CheckOutcome, Conclusion, ReceiptCheck, conclusion};
use countersign_domain::json::parse::{ParseLimits, parse};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::writes::write::WriteState;
use countersign_service::error::Result;
use countersign_service::writes::Writes;
use countersign_service::writes::receipt_lookup::{IssuedReceiptState, PresentedReceipt, ReceiptLookupResult};
use countersign_service::writes::verify::peek_receipt;
use serde::Deserialize;

use super::receipt_verifier_view::{
    CheckRow, GatewayFactRow, ReceiptCheckResult, ReceiptClaimRow, VerifierInputView, VerifierPage,
};
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{html, moment};
use crate::pages::shared::layout::Tone;
use crate::pages::shared::safe_text::{SafeLine, SafeText};
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

/// Fields of the form. The size limit of the form also limits each field.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct VerifierForm {
    receipt: String,
    entry: String,
    statement: String,
}

/// `GET /verifier`.
pub async fn show(visitor: Visitor) -> Result<VerifierPage> {
    page(&visitor, &VerifierForm::default(), Ok(None)).await
}

/// `POST /verifier`.
pub async fn submit(writes: Capability<Writes>, sent: SignedInForm<VerifierForm>) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let told = match shown(&form) {
        Ok(shown) => Ok(Some(told(&writes, &visitor, &shown).await?)),
        Err(problem) => Err(problem),
    };
    // An invalid receipt is a normal result of the check, so only unreadable input gets 422.
    let status = if told.is_ok() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let page = page(&visitor, &form, told).await?;
    Ok(html(status, page.render()))
}

async fn page(
    visitor: &Visitor,
    fields: &VerifierForm,
    told: std::result::Result<Option<ReceiptCheckResult>, String>,
) -> Result<VerifierPage> {
    let (told, problem) = match told {
        Ok(told) => (told, None),
        Err(problem) => (None, Some(problem)),
    };
    Ok(VerifierPage {
        shell: visitor.shell(None).await?,
        csrf: visitor.0.csrf.shown(),
        typed: VerifierInputView {
            receipt: SafeText::new(fields.receipt.as_str()),
            entry: SafeText::new(fields.entry.as_str()),
            statement: SafeText::new(fields.statement.as_str()),
        },
        problem,
        told,
    })
}

/// Reads the pasted texts. Spaces around a text are removed because they often come from the clipboard.
fn shown(fields: &VerifierForm) -> std::result::Result<PresentedReceipt, String> {
    let given = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
    let receipt = given(&fields.receipt).ok_or("Paste a receipt into the first field.")?;
    let statement = given(&fields.statement).map(|it| statement(&it)).transpose()?;
    Ok(PresentedReceipt { receipt, entry: given(&fields.entry), statement })
}

fn statement(text: &str) -> std::result::Result<Statement, String> {
    // The form already limits the size, so the parser accepts the whole text.
    let limits = ParseLimits { bytes_max: text.len(), ..ParseLimits::default() };
    let value = parse(text.as_bytes(), &limits).map_err(|error| {
        format!(
            "The statement is not strict JSON: {}. Copy it again from the version’s page. Nothing was checked.",
            error.code.as_str()
        )
    })?;
    serde_json::from_value(value).map_err(|_| {
        "The JSON does not have the members of a statement. Copy it again from the version’s page.".to_owned()
    })
}

async fn told(writes: &Writes, visitor: &Visitor, shown: &PresentedReceipt) -> Result<ReceiptCheckResult> {
    let now = visitor.now();
    let checks = writes.check_offline(shown)?;
    let (tone, words) = match conclusion(&checks) {
        Conclusion::Genuine => (Tone::Good, "Valid: this exact version was approved"),
        Conclusion::Refused => (Tone::Bad, "Invalid: a writer must not accept it"),
        Conclusion::CouldNotTell => (Tone::Care, "Could not be verified"),
    };
    // Looked up by the exact text: a forged receipt with a known id gets no facts about the real one.
    let known = match writes.look_up_receipt(&shown.receipt).await? {
        ReceiptLookupResult::Nothing => vec![row(Tone::Care, "This gateway issued no receipt with this id")],
        ReceiptLookupResult::Another => {
            vec![row(Tone::Bad, "This gateway issued a different receipt with this id")]
        }
        ReceiptLookupResult::Issued(issued) => known(&issued, now),
    };
    Ok(ReceiptCheckResult {
        tone,
        conclusion: words,
        checks: checks.iter().map(check_row).collect(),
        // The claims are read without a check, so that those of an invalid receipt are shown too.
        says: peek_receipt(&shown.receipt).map(|it| says(&it)).unwrap_or_default(),
        known,
    })
}

fn check_row(check: &ReceiptCheck) -> CheckRow {
    let (tone, outcome, code, says) = match check.outcome {
        CheckOutcome::Passed => (Tone::Good, "passed", None, check.name.detail()),
        CheckOutcome::Failed { code, detail } => (Tone::Bad, "failed", Some(code.as_str()), detail),
        CheckOutcome::CouldNotTell { detail } => (Tone::Care, "not verified", None, detail),
        // A check that did not run is no failure: an earlier one failed, or its input is missing.
        CheckOutcome::NotChecked { detail } => (Tone::Plain, "not reached", None, detail),
    };
    CheckRow { name: check.name.as_str(), tone, outcome, says, code }
}

fn says(receipt: &Receipt) -> Vec<ReceiptClaimRow> {
    let said = |name, value: String| ReceiptClaimRow { name, value: SafeLine::new(value) };
    let second = |secs: i64| Timestamp::from_millis(secs.saturating_mul(1000)).to_string();
    let people: Vec<&str> = receipt.approvals.iter().map(|it| it.reviewer.as_str()).collect();
    let writers: Vec<&str> = receipt.aud.iter().map(|it| it.as_str()).collect();
    vec![
        said("Thread", receipt.sub.to_string()),
        said("Version", receipt.version.to_string()),
        said("Flow", receipt.flow.to_string()),
        said("Writers", writers.join(", ")),
        said("Approved by", people.join(", ")),
        said("Issued", second(receipt.iat)),
        said("Expires", second(receipt.exp)),
        said("Issuer", receipt.iss.clone()),
        said("Transition", receipt.transition.to_string()),
        said("Id", receipt.jti.to_string()),
    ]
}

fn row(tone: Tone, words: impl Into<String>) -> GatewayFactRow {
    GatewayFactRow { tone, words: SafeLine::new(words.into()), at: None, url: None }
}

fn known(issued: &IssuedReceiptState, now: Timestamp) -> Vec<GatewayFactRow> {
    let mut rows = vec![GatewayFactRow {
        url: Some(format!("/threads/{}/versions/{}", issued.thread.id, issued.version)),
        ..row(Tone::Good, format!("This gateway issued it for version {} of {}", issued.version, issued.thread.id))
    }];
    rows.push(match &issued.row.revoked {
        Some(revoked) => {
            GatewayFactRow { at: Some(moment(revoked.at, now)), ..row(Tone::Bad, "Revoked: verify refuses it") }
        }
        None => row(Tone::Good, "Not revoked"),
    });
    rows.push(match &issued.write {
        Some(write) => {
            let ended = match write.state {
                // A reserved write has no report from its writer, so only the clock shows whether its lease is over.
                WriteState::Reserved {} if write.is_live(now) => "is writing now",
                WriteState::Reserved {} => "its lease expired, outcome unknown",
                WriteState::Confirmed { .. } => "has confirmed the write",
                WriteState::Aborted { .. } => "wrote nothing",
                WriteState::Failed { .. } => "ran the call, which failed",
                WriteState::Late { .. } => "confirmed after its lease expired",
                WriteState::Resolved { .. } => "its lease expired, and an administrator resolved the write",
            };
            let words = format!("Used: {} was authorized, {ended}", write.node);
            GatewayFactRow { at: Some(moment(write.reserved_at, now)), ..row(Tone::Care, words) }
        }
        None => row(Tone::Good, "Not used"),
    });
    let head = issued.thread.head.version;
    rows.push(if issued.is_unused_head() {
        row(Tone::Good, "Its version is the head of the thread and can be written")
    } else if head == issued.version {
        row(Tone::Plain, "Its version is the head of the thread but cannot be written")
    } else {
        row(Tone::Care, format!("Its version is no longer the head of the thread. The head is version {head}"))
    });
    if issued.expires_at <= now {
        rows.push(GatewayFactRow { at: Some(moment(issued.expires_at, now)), ..row(Tone::Care, "Expired") });
    }
    rows
}
