//! Responses, times and sentences that several pages use.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::{StatusCode, header};
use chrono::DateTime;
use countersign_domain::chain::statement::TransitionType;
use countersign_domain::json::canonical::canonical;
use countersign_domain::json::pattern::Pattern;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::policy::RedactedChange;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{CannotDecide, Hold, HoldReason, HoldState, Ineligible, Vote, VoteVerdict};
use countersign_domain::threads::transition::Transition;
use countersign_service::threads::tool_call_view::RedactedToolCall;

use super::headline::{Headline, HeadlineChange, HeadlineKind};
use super::layout::{DigestText, TimestampView};
use super::proof_rows::DiffSideView;
use super::safe_text::{SafeJson, SafeLine, SafePath};
use super::tool_call::ToolCallMention;
use super::widgets::HoldOutcomeView;
use super::widgets::Urgency;
use crate::pages::policies::rejections_view::ErrorRow;

/// Changes that a headline names.
pub const HEADLINE_CHANGES: usize = 3;

/// Time before the deadline at which a page marks it.
pub const SOON: Duration = Duration::from_secs(600);

/// The longest time at which a time of day is clear without its date.
const HALF_DAY: Duration = Duration::from_secs(12 * 3600);

/// Returns a page. Pages are personal and change often, so no cache may store them.
pub fn html(status: StatusCode, page: Result<String, askama::Error>) -> HttpResponse {
    match page {
        Ok(page) => HttpResponse::build(status)
            .content_type("text/html; charset=utf-8")
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .body(page),
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            HttpResponse::InternalServerError()
                .content_type("text/plain; charset=utf-8")
                .body("The page could not be rendered. Try again.\n")
        }
    }
}

/// Redirects to another page with status 303.
pub fn see_other(path: &str) -> HttpResponse {
    // A 303 makes the browser load the next page by GET, so that reloading it does not send the form again.
    HttpResponse::SeeOther()
        .insert_header((header::LOCATION, path.to_owned()))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .finish()
}

/// Returns a time in the forms that a page shows, relative to `now`.
pub fn moment(at: Timestamp, now: Timestamp) -> TimestampView {
    let words = DateTime::from_timestamp_millis(at.millis()).unwrap_or_default().format("%-d %b %Y, %H:%M UTC");
    let distance = if at > now {
        format!("in {}", span(now.until(at).as_secs()))
    } else {
        match at.until(now).as_secs() {
            0..10 => "just now".to_owned(),
            secs => format!("{} ago", span(secs)),
        }
    };
    TimestampView { iso: at.to_string(), words: words.to_string(), distance }
}

/// Returns a time for a sentence: only the time of day if it is less than half a day away.
pub fn clock_time(at: Timestamp, now: Timestamp) -> String {
    let words = moment(at, now).words;
    let away = now.until(at).max(at.until(now));
    match words.rsplit_once(", ") {
        Some((_, time)) if away < HALF_DAY => time.to_owned(),
        _ => words,
    }
}

/// Formats a duration in one unit, rounded down, so that a page never shows more time than there is.
pub fn span(secs: u64) -> String {
    match secs {
        0..60 => format!("{secs} s"),
        60..3_600 => format!("{} min", secs / 60),
        3_600..172_800 => format!("{} h", secs / 3_600),
        _ => format!("{} days", secs / 86_400),
    }
}

pub fn urgency(deadline: Timestamp, now: Timestamp) -> Urgency {
    if now.until(deadline) < SOON { Urgency::Soon } else { Urgency::Calm }
}

/// Joins texts to a list: "a, b and c".
pub fn listed(texts: &[String], last: &str) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

pub fn lines<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<SafeLine> {
    names.into_iter().map(SafeLine::new).collect()
}

/// Returns the kind of headline for a transition.
pub fn intent(transition: &Transition) -> HeadlineKind {
    match transition.statement.kind {
        TransitionType::Edit => HeadlineKind::Edit { by: SafeLine::new("A reviewer") },
        TransitionType::Reaffirm => HeadlineKind::Reaffirm,
        TransitionType::Rollback => {
            let to_version = transition.patch.get("to_version").and_then(serde_json::Value::as_u64);
            HeadlineKind::Rollback { to_version: to_version.unwrap_or_default() }
        }
        TransitionType::Create
        | TransitionType::Fork
        | TransitionType::Propose
        | TransitionType::Join
        | TransitionType::Confirm => HeadlineKind::Change,
    }
}

/// Builds the headline of a redacted change for lists, protected paths first.
pub fn headline(
    hold: &Hold,
    transition: Option<&Transition>,
    diff: &[RedactedChange],
    call: Option<&RedactedToolCall>,
) -> Headline {
    let mut changes: Vec<&RedactedChange> = diff.iter().collect();
    // Protected values come first, because a headline has few changes and these are why approval is needed.
    changes.sort_by_key(|it| !is_protected(hold, place(it)));
    Headline {
        node: SafeLine::new(hold.node.as_str()),
        intent: transition.map_or(HeadlineKind::Change, intent),
        call: call.map(ToolCallMention::of),
        changes: changes.iter().take(HEADLINE_CHANGES).map(|it| head_change(it)).collect(),
        more: changes.len().saturating_sub(HEADLINE_CHANGES),
    }
}

pub fn place(change: &RedactedChange) -> &Pointer {
    match change {
        RedactedChange::Hidden { pointer, .. } | RedactedChange::Shown { pointer, .. } => pointer,
    }
}

/// Reads a path that [`SafePath::sent`] wrote. A pointer starts with a slash, and JSON with a quotation mark.
pub fn place_sent(text: &str) -> Option<Pointer> {
    if text.starts_with('"') { serde_json::from_str(text).ok() } else { Pointer::try_from(text).ok() }
}

/// Checks whether a reason of the pending review covers the path.
pub fn is_protected(hold: &Hold, pointer: &Pointer) -> bool {
    hold.reasons.iter().filter_map(pattern_of).any(|it| it.touches(pointer))
}

pub fn pattern_of(reason: &HoldReason) -> Option<Pattern> {
    reason.pointer.as_ref().and_then(|it| Pattern::try_from(it.clone()).ok())
}

/// Returns a change in the form of a headline.
pub fn head_change(change: &RedactedChange) -> HeadlineChange {
    let leaf = |value: &Option<serde_json::Value>| match value {
        Some(value) => DiffSideView::Leaf { value: SafeJson::new(canonical(value)), salt: String::new() },
        None => DiffSideView::Absent,
    };
    let path = SafePath::new(place(change).to_string());
    match change {
        RedactedChange::Hidden { .. } => {
            // A headline has no room for digests, so a redacted value is only marked as redacted.
            let hidden = DiffSideView::Bare(DigestText::new(""));
            HeadlineChange { path, before: hidden.clone(), after: hidden }
        }
        RedactedChange::Shown { before, after, .. } => {
            HeadlineChange { path, before: leaf(before), after: leaf(after) }
        }
    }
}

/// Returns outcome and time of the end, or `None` for an open review.
pub fn ending(state: &HoldState) -> Option<(HoldOutcomeView, Timestamp)> {
    Some(match state {
        HoldState::Open {} => return None,
        HoldState::Approved { at, .. } => (HoldOutcomeView::Approved, *at),
        HoldState::Denied { at, .. } => (HoldOutcomeView::Denied, *at),
        HoldState::Expired { at } => (HoldOutcomeView::Expired, *at),
        HoldState::Cancelled { at, .. } => (HoldOutcomeView::Cancelled, *at),
        HoldState::Superseded { at, .. } => (HoldOutcomeView::Superseded, *at),
    })
}

/// Returns the names of the deciding voters. Empty if no person decided.
pub fn deciders(hold: &Hold) -> Vec<SafeLine> {
    let verdict = match &hold.state {
        HoldState::Approved { .. } => VoteVerdict::Approve,
        HoldState::Denied { .. } => VoteVerdict::Deny,
        HoldState::Open {} | HoldState::Expired { .. } | HoldState::Cancelled { .. } | HoldState::Superseded { .. } => {
            return Vec::new();
        }
    };
    // Withdrawn votes stay in the row, but they decided nothing.
    hold.counted_votes().filter(|vote| vote.verdict == verdict).map(|it| SafeLine::new(voted_by(it))).collect()
}

/// Returns the voter's name: "bob, for alice".
pub fn voted_by(vote: &Vote) -> String {
    vote.absent.as_ref().map_or_else(|| vote.name.clone(), |it| format!("{}, for {}", vote.name, it.name))
}

/// Returns the reason why a reader cannot decide, as a sentence and as a phrase for a badge.
pub fn why_not(reason: Ineligible) -> (&'static str, &'static str) {
    match reason {
        Ineligible::Role => ("Only accounts with the role reviewer can decide.", "only reviewers can"),
        Ineligible::Disabled => ("Your account is disabled.", "your account is disabled"),
        Ineligible::Author => (
            "You or your agent is an author of this change or of one since the last confirmed write. Other reviewers \
             must decide.",
            "proposed by your agent",
        ),
        Ineligible::Group => ("You are not in a group that can decide this.", "not in a required group"),
        Ineligible::Voted => (
            "You have voted, or another reviewer has voted for you. The review waits for more votes.",
            "you have voted",
        ),
    }
}

/// Returns the reason why a reader cannot decide now, as a sentence.
pub fn cannot_decide(reason: CannotDecide) -> &'static str {
    match reason {
        CannotDecide::Ended => "It has ended.",
        CannotDecide::Halted => "This flow is halted. No decision is possible until an administrator resumes it.",
        CannotDecide::Writing => "A writer is writing at the moment. Open the page again in half a minute.",
        CannotDecide::Ineligible(reason) => why_not(reason).0,
    }
}

pub fn error_row(code: &str, pointer: &str, detail: &str) -> ErrorRow {
    // The empty pointer names the whole request, which is no useful path for a reader.
    let path = (!pointer.is_empty()).then(|| SafePath::new(pointer));
    ErrorRow { code: SafeLine::new(code), path, detail: SafeLine::new(detail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_from_now_and_never_flatters() {
        let now = Timestamp::from_millis(1_795_225_000_123);
        let at = |secs: i64| moment(Timestamp::from_millis(now.millis() + secs * 1000), now).distance;
        assert_eq!(at(59), "in 59 s");
        assert_eq!(at(119), "in 1 min");
        assert_eq!(at(7_199), "in 1 h");
        assert_eq!(at(172_800), "in 2 days");
        assert_eq!(at(0), "just now");
        assert_eq!(at(-61), "1 min ago");
        assert_eq!(moment(now, now).words, "21 Nov 2026, 01:36 UTC");
    }

    #[test]
    fn time_of_another_day_has_its_date() {
        let now = Timestamp::from_millis(1_795_225_000_123);
        let time = |secs: i64| clock_time(Timestamp::from_millis(now.millis() + secs * 1000), now);
        assert_eq!([time(540), time(-600)], ["01:45 UTC", "01:26 UTC"]);
        assert_eq!([time(86_400), time(-86_400)], ["22 Nov 2026, 01:36 UTC", "20 Nov 2026, 01:36 UTC"]);
    }

    #[test]
    fn texts_are_listed_as_a_person_would() {
        let list = |texts: &[&str]| listed(&texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(), "and");
        assert_eq!(
            [list(&[]), list(&["a"]), list(&["a", "b"]), list(&["a", "b", "c"])],
            ["", "a", "a and b", "a, b and c"]
        );
    }
}
