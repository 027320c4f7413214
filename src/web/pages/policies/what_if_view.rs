//! What a flow's policy would make of a patch.

use askama::Template;

use crate::web::pages::shared::layout::{PageLayout, Tone};
use crate::web::pages::shared::safe_text::{SafeJson, SafeLine, SafePath};

/// `GET /what-if`, and what a submit there comes to.
#[derive(Template, Clone, Debug)]
#[template(path = "what_if.html")]
pub struct WhatIfPage {
    pub shell: PageLayout,
    /// Where a policy can be tried on what was recorded, for those who may.
    pub replays_url: Option<&'static str>,
    /// What there is to choose from.
    pub flows: Vec<FlowChoice>,
    pub typed: WhatIfInputView,
    /// What could not be read of it.
    pub problem: Option<String>,
    pub told: Option<JudgementView>,
    /// The session's CSRF token.
    pub csrf: String,
}

#[derive(Clone, Debug)]
pub struct FlowChoice {
    pub name: SafeLine,
    /// Whether it is the one chosen.
    pub chosen: WhatIfOptionState,
}

/// Whether one of several is the one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhatIfOptionState {
    Yes,
    No,
}

impl WhatIfOptionState {
    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Yes)
    }
}

/// The person's own words, to go on from.
#[derive(Clone, Debug, Default)]
pub struct WhatIfInputView {
    pub node: String,
    pub format: String,
    pub state: String,
    pub patch: String,
    pub around: String,
}

#[derive(Clone, Debug)]
pub struct JudgementView {
    pub tone: Tone,
    /// "It would be held: people would be asked."
    pub words: &'static str,
    pub reasons: Vec<SafeLine>,
    pub warnings: Vec<super::rejections_view::ErrorRow>,
    /// Why it would be rejected.
    pub errors: Vec<super::rejections_view::ErrorRow>,
    pub changes: Vec<ChangeRow>,
    /// Changes beyond those listed.
    pub more_changes: usize,
}

/// A leaf that would change.
#[derive(Clone, Debug)]
pub struct ChangeRow {
    pub path: SafePath,
    /// Before and after; `None` of a hidden one.
    pub sides: Option<(WhatIfSideView, WhatIfSideView)>,
}

#[derive(Clone, Debug)]
pub enum WhatIfSideView {
    Value(SafeJson),
    Nothing,
}
