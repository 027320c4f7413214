//! What a problem says besides what every problem says: each thing that is wrong, and facts that help to go on.

use serde_json::{Map, Value, json};

use super::FieldError;
use crate::domain::chain::denial::DenialCode;
use crate::domain::json::pointer::Pointer;
use crate::domain::threads::thread::Checkpoint;
use crate::domain::writes::write::ResultError;
use crate::service::episodes::envelope_error::{EnvelopeCreationCause, EnvelopeCreationError};
use crate::service::error::Error;
use crate::service::platform::rejection_body::RejectionBody;

/// Each thing that is wrong.
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
            ..fault(error.pointer.to_string(), error.code.as_str(), "the JSON is refused here")
        }],
        Error::Invalid { pointer, detail } => vec![fault(pointer.clone(), "malformed", detail)],
        Error::Rejected(refusal) => {
            let one = |(index, it): (usize, &ResultError)| FieldError {
                rule: it.rule.clone(),
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
            let one =
                |it: &Pointer| fault(it.to_string(), "required_missing", "the node requires it, and it is not there");
            places.iter().map(one).collect()
        }
        Error::Conflict { places, .. } => {
            let one = |it: &Pointer| fault(it.to_string(), "conflict", "branches have several values here");
            places.iter().map(one).collect()
        }
        _ => Vec::new(),
    }
}

/// Facts that help to go on.
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
    if let Some(checkpoint) = checkpoint_of(error) {
        put("checkpoint", json!(checkpoint));
    }
    facts
}

/// What to go on from, of those errors after which a step is tried again: nothing was changed, and this stands.
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
