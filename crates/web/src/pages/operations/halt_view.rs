//! Views of the halt page and its confirm page.

use askama::Template;

use crate::pages::shared::layout::{PageLayout, TimestampView};
use crate::pages::shared::safe_text::{SafeLine, SafeText};

/// `GET /emergency`. A post to the same address halts, a post to `/emergency/lifting` lifts. Both send `csrf`, `scope`,
/// `what` and `reason`, and both have a confirm page.
#[derive(Template, Clone, Debug)]
#[template(path = "emergency.html")]
pub struct HaltPage {
    pub shell: PageLayout,
    pub csrf: String,
    /// All flows first, then each flow.
    pub scopes: Vec<ScopeCard>,
    /// Whether a halt of all flows is active.
    pub all_stopped: bool,
    /// Whether the reader may halt. Auditors may not.
    pub may_stop: bool,
    pub chosen: String,
    /// The previous input, when the form is rejected.
    pub reason: SafeLine,
}

#[derive(Clone, Debug)]
pub struct ScopeCard {
    /// "all flows", or the flow.
    pub title: SafeLine,
    /// Form value.
    pub value: String,
    /// Whether the scope is all flows.
    pub whole: bool,
    /// Active halts of the scope.
    pub rows: Vec<ActiveHaltRow>,
    /// The pending request to lift a halt.
    pub lifting: Option<LiftRequestRow>,
    /// Whether the reader is an administrator.
    pub may_lift: bool,
    pub choices: Vec<LiftOption>,
    /// Whether two administrators are needed.
    pub needs_two: bool,
}

/// An active halt of one activity.
#[derive(Clone, Debug)]
pub struct ActiveHaltRow {
    /// "proposing" or "verifying".
    pub what: &'static str,
    /// The person who halted it. Halts from the command line have no person.
    pub by: Option<SafeLine>,
    pub at: Option<TimestampView>,
    pub reason: SafeText,
}

/// A request to lift a halt, which waits for a second administrator.
#[derive(Clone, Debug)]
pub struct LiftRequestRow {
    /// "proposing and verifying".
    pub what: &'static str,
    /// Form value.
    pub what_value: &'static str,
    pub by: SafeLine,
    pub at: TimestampView,
    pub reason: SafeText,
    /// Whether the reader made the request.
    pub mine: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct LiftOption {
    /// Form value.
    pub value: &'static str,
    pub words: &'static str,
}

/// The confirm page of a halt or a lifting.
#[derive(Template, Clone, Debug)]
#[template(path = "emergency_confirm.html")]
pub struct HaltConfirmPage {
    pub shell: PageLayout,
    pub action: String,
    pub csrf: String,
    /// "Halt" or "Lift the halt of".
    pub title: &'static str,
    /// "proposing and verifying".
    pub what: &'static str,
    pub what_value: &'static str,
    /// "all flows", or the flow.
    pub scope: SafeLine,
    pub scope_value: String,
    pub consequences: Vec<&'static str>,
    /// The previewed outcome, which the confirm form sends back.
    pub expects: &'static str,
    pub reason: SafeText,
    /// Whether the page confirms a halt.
    pub stops: bool,
}
