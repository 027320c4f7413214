//! Stopping, and letting go on.

use askama::Template;

use crate::web::pages::shared::layout::{PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::{SafeLine, SafeText};

/// `GET /emergency`; stops by a post to the same address, lifts by one to `/emergency/lifting`. Both send `csrf`,
/// `scope`, `what` and `reason`, and are confirmed once.
#[derive(Template, Clone, Debug)]
#[template(path = "emergency.html")]
pub struct HaltPage {
    pub shell: PageLayout,
    pub csrf: String,
    /// The whole first, then each flow.
    pub scopes: Vec<ScopeCard>,
    /// Whether something of all flows is stopped, and so of each.
    pub all_stopped: bool,
    /// Whether the reader may stop.
    pub may_stop: bool,
    /// The scope that is chosen in the form.
    pub chosen: String,
    /// What was typed, when the page comes again.
    pub reason: SafeLine,
}

#[derive(Clone, Debug)]
pub struct ScopeCard {
    /// "all flows", or the flow.
    pub title: SafeLine,
    /// As forms send it.
    pub value: String,
    /// Whether it is all of them.
    pub whole: bool,
    /// What is stopped; empty where everything goes on.
    pub rows: Vec<ActiveHaltRow>,
    /// What somebody asked to lift.
    pub lifting: Option<LiftRequestRow>,
    /// Whether the reader may lift.
    pub may_lift: bool,
    pub choices: Vec<LiftOption>,
    /// Whether lifting takes two.
    pub needs_two: bool,
}

/// One thing that is stopped.
#[derive(Clone, Debug)]
pub struct ActiveHaltRow {
    /// "proposing" or "verifying".
    pub what: &'static str,
    /// Who stopped it, if that is known.
    pub by: Option<SafeLine>,
    pub at: Option<TimestampView>,
    pub reason: SafeText,
}

/// What one of two asked for.
#[derive(Clone, Debug)]
pub struct LiftRequestRow {
    /// "proposing and verifying".
    pub what: &'static str,
    /// As forms send it.
    pub what_value: &'static str,
    pub by: SafeLine,
    pub at: TimestampView,
    pub reason: SafeText,
    /// Whether it was the reader.
    pub mine: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct LiftOption {
    /// As forms send it.
    pub value: &'static str,
    pub words: &'static str,
}

/// The one question before it is done.
#[derive(Template, Clone, Debug)]
#[template(path = "emergency_confirm.html")]
pub struct HaltConfirmPage {
    pub shell: PageLayout,
    pub action: String,
    pub csrf: String,
    /// "Stop" or "Lift the halt of".
    pub title: &'static str,
    /// "proposing and verifying".
    pub what: &'static str,
    pub what_value: &'static str,
    /// "all flows", or the flow.
    pub scope: SafeLine,
    pub scope_value: String,
    pub consequences: Vec<&'static str>,
    /// The same in a word, as the form says it back.
    pub expects: &'static str,
    pub reason: SafeText,
    /// Whether it stops rather than lifts.
    pub stops: bool,
}
