//! Additional members of problems: the items of `errors`, and facts for the next request.

use countersign_domain::chain::denial::DenialCode;
use countersign_domain::json::parse::JsonCode;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::threads::thread::Checkpoint;
use countersign_domain::writes::write::ResultError;
use countersign_service::episodes::envelope_error::{EnvelopeCreationCause, EnvelopeCreationError};
use countersign_service::error::Error;
use countersign_service::platform::rejection_body::RejectionBody;
use serde_json::{Map, Value, json};

use super::FieldError;

/// Returns the items of `errors`.
pub(super) fn faults_of(error: &Error) -> Vec<FieldError> {
    let fault = |pointer: String, code: &str, detail: &str| FieldError {
        pointer,
        code: code.to_owned(),
        detail: detail.to_owned(),
        offset: None,
        rule: None,
        value: None,
    };
    match error {
        Error::Json(error) => vec![FieldError {
            offset: error.offset,
            ..fault(error.pointer.to_string(), error.code.as_str(), json_detail(error.code))
        }],
        Error::Invalid { pointer, detail } => vec![fault(pointer.clone(), "malformed", detail)],
        Error::Rejected(refusal) => {
            let one = |(index, it): (usize, &ResultError)| FieldError {
                rule: it.rule.clone(),
                // Only a value that the request itself set is repeated, so it reveals nothing to the client.
                value: refusal.values.get(&index).cloned(),
                ..fault(it.pointer.clone(), &it.code, &it.detail)
            };
            refusal.errors.iter().enumerate().map(one).collect()
        }
        Error::NotSealed(EnvelopeCreationError { why: EnvelopeCreationCause::Unfit(misfits), .. }) => {
            misfits.iter().map(|it| fault(it.pointer.to_string(), "schema", it.detail)).collect()
        }
        Error::Envelope(why) => {
            why.misfits.iter().map(|it| fault(it.pointer.to_string(), "schema", it.detail)).collect()
        }
        Error::NotSealed(EnvelopeCreationError { why: EnvelopeCreationCause::Missing(places), .. }) => {
            let one = |it: &Pointer| {
                fault(it.to_string(), "required_missing", "the node requires this path, and it has no value")
            };
            places.iter().map(one).collect()
        }
        Error::Conflict { places, .. } => {
            let one =
                |it: &Pointer| fault(it.to_string(), "conflict", "branches differ at this path: set it in `resolve`");
            places.iter().map(one).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the cause and the correction of a JSON error.
const fn json_detail(code: JsonCode) -> &'static str {
    match code {
        JsonCode::Empty => "the text contains no JSON value: send one",
        JsonCode::Syntax => "this is not valid JSON: correct the text at this position",
        JsonCode::DuplicateKey => "two keys of one object are equal, or equal in Unicode normal form C: remove one",
        JsonCode::NotANumber => "NaN and infinity are not JSON: send null or a string",
        JsonCode::NumberNotExact => "the number cannot be represented exactly: send it as a string",
        JsonCode::TooDeep => "arrays and objects are nested too deeply: flatten the value",
        JsonCode::TooLarge => "the text is larger than allowed: shorten it",
        JsonCode::Encoding => "the text is not UTF-8, or contains half of a surrogate pair: encode it as UTF-8",
    }
}

/// Returns the additional members with facts for the next request.
pub(super) fn facts_of(error: &Error) -> Map<String, Value> {
    let mut facts = Map::new();
    let mut put = |name: &str, fact: Value| drop(facts.insert(name.to_owned(), fact));
    match error {
        Error::HeadMoved { version, transition } => {
            put("head", json!({"version": version, "transition": transition}));
        }
        Error::StepReused { transition, .. } => put("transition", json!(transition)),
        Error::ThreadHeld(review) => put("review", json!({"id": review})),
        Error::Rejected(RejectionBody { instruction: Some(it), .. }) => {
            put("instruction", json!({"action": it.as_str(), "detail": it.detail()}));
        }
        Error::Denied(DenialCode::ReceiptMissing) => put("needs", json!("receipt")),
        _ => {}
    }
    // Nothing was changed, so the agent can repeat its step from this version.
    if let Some(checkpoint) = checkpoint_of(error) {
        put("checkpoint", json!(checkpoint));
    }
    facts
}

/// Returns the version to continue from, for errors after which a step is repeated. Nothing was changed.
const fn checkpoint_of(error: &Error) -> Option<Checkpoint> {
    match error {
        Error::HeadMoved { version, transition } => Some(Checkpoint { version: *version, transition: *transition }),
        Error::StepReused { checkpoint, .. } | Error::Conflict { checkpoint, .. } => Some(*checkpoint),
        Error::Rejected(refusal) => refusal.checkpoint,
        Error::NotSealed(why) => Some(why.checkpoint),
        Error::Envelope(why) => why.checkpoint,
        _ => None,
    }
}
