//! Converts deliveries and attempts into rows of pages.

use countersign_domain::delivery::delivery_record::{AttemptOutcome, Delivery, DeliveryAttempt, DeliveryState, OVER};
use countersign_domain::primitives::time::Timestamp;

use super::endpoints_view::{AttemptRow, DeliveryRow, HealthBadge};
use crate::pages::log::event_names;
use crate::pages::shared::format::{lines, moment};
use crate::pages::shared::layout::Tone;
use crate::pages::shared::safe_text::SafeLine;

/// Converts a delivery into a row of a list.
pub(in crate::pages) fn delivery_row(delivery: &Delivery, now: Timestamp) -> DeliveryRow {
    let (tone, word, due) = match delivery.state {
        DeliveryState::Delivered { .. } => (Tone::Good, "Delivered", None),
        DeliveryState::Failed { .. } => (Tone::Bad, "Failed", None),
        DeliveryState::Behind {} => (Tone::Plain, "Waiting for an earlier event", None),
        // A failed attempt precedes this one, so the row asks for attention.
        DeliveryState::Waiting { due, .. } if delivery.tries > 0 => (Tone::Care, "Retry scheduled", Some(due)),
        DeliveryState::Waiting { due, .. } => (Tone::Plain, "Scheduled", Some(due)),
    };
    let thread = delivery.thread.as_ref();
    DeliveryRow {
        url: format!("/endpoints/{}/deliveries/{}", delivery.endpoint, delivery.index),
        words: event_names::of(delivery.kind.name()),
        name: delivery.kind.name(),
        index: delivery.index,
        thread: thread.map(|it| (SafeLine::new(it.as_str()), format!("/threads/{it}"))),
        health: HealthBadge { tone, word },
        due: due.map(|it| moment(it, now)),
        last: delivery.attempts.last().map(|it| attempt_row(it, now)),
    }
}

/// Converts an attempt into a row of a page.
pub(in crate::pages) fn attempt_row(attempt: &DeliveryAttempt, now: Timestamp) -> AttemptRow {
    let (words, why, answer, cut) = match &attempt.ended {
        // The receiver wrote the body, so each line is sanitised.
        AttemptOutcome::Answered { status, body, cut } => {
            (format!("Answered {status}"), None, lines(body.lines()), *cut)
        }
        AttemptOutcome::Looked { status, saw } => {
            let words =
                // A preflight that settles the matter completes the delivery without a request.
                if saw.settles() { "Nothing to send".to_owned() } else { format!("Preflight answered {status}") };
            (words, Some(saw.sentence()), Vec::new(), false)
        }
        AttemptOutcome::Over {} => ("Nothing to send".to_owned(), Some(OVER), Vec::new(), false),
        AttemptOutcome::Failed { why } => ("No answer".to_owned(), Some(why.sentence()), Vec::new(), false),
    };
    AttemptRow {
        at: moment(attempt.at, now),
        seconds: attempt.at.millis().div_euclid(1000),
        took_ms: attempt.took_ms,
        tone: if attempt.ended.arrived() { Tone::Good } else { Tone::Bad },
        words,
        why,
        answer,
        cut,
    }
}
