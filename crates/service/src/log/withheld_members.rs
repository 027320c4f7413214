//! Members of events that confirm guesses of redacted values, and their removal.

use countersign_domain::log::event::{Event, EventType};
use serde_json::Value;

/// The text that replaces a comment that has its own page.
const ON_ITS_PAGE: &str = "[shown on the interrupt's page]";

/// Removes the comment of an interrupt's answer from its event. The comment is masked for the host
/// application, so its author could test guesses of redacted values with it. People read it on the
/// interrupt's page.
pub(super) fn remove_answer_comment(event: &mut Event) {
    if let Some(comment) = event.data.get_mut("answer").and_then(|it| it.get_mut("comment")).filter(|it| it.is_string())
    {
        *comment = ON_ITS_PAGE.into();
    }
}

/// Removes the digests of texts that are redacted for some readers. They have no salt, so a reader could hash guesses and
/// compare. Every reader but an auditor loses them, because a digest that is missing only beside masked texts would
/// confirm a guess.
pub(crate) fn remove_unsalted_digests(event: &mut Event) {
    if let Some(member) = unsalted_digest(event.kind) {
        remove(&mut event.data, member);
    }
}

/// Returns the member of an event's data that has such a digest.
pub(super) const fn unsalted_digest(kind: EventType) -> Option<&'static str> {
    match kind {
        EventType::ThreadCreated => Some("episode"),
        EventType::EpisodeEvent => Some("digest"),
        EventType::InterruptPosted => Some("body"),
        _ => None,
    }
}

pub(super) fn remove(data: &mut Value, member: &str) {
    if let Some(members) = data.as_object_mut() {
        members.remove(member);
    }
}
