//! What a flow's policy would make of a patch.

use askama::Template;

use crate::web::pages::shared::layout::{PageLayout, Tone};
use crate::web::pages::shared::safe_text::{SafeJson, SafeLine, SafePath};

/// `GET /what-if`, and what a submit there comes to.
#[derive(Template, Clone, Debug)]
#[template(path = "what_if.html")]
pub struct WhatIfPage {
    /// The frame.
    pub shell: PageLayout,
    /// Where a policy can be tried on what was recorded, for those who may.
    pub replays_url: Option<&'static str>,
    /// What there is to choose from.
    pub flows: Vec<FlowChoice>,
    /// What was typed.
    pub typed: WhatIfInputView,
    /// What could not be read of it.
    pub problem: Option<String>,
    /// The judgement.
    pub told: Option<JudgementView>,
    /// The session's CSRF token.
    pub csrf: String,
}

/// A flow to choose.
#[derive(Clone, Debug)]
pub struct FlowChoice {
    /// Its name.
    pub name: SafeLine,
    /// Whether it is the one chosen.
    pub chosen: WhatIfOptionState,
}

/// Whether one of several is the one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhatIfOptionState {
    /// It is.
    Yes,
    /// It is not.
    No,
}

impl WhatIfOptionState {
    /// For the template.
    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Yes)
    }
}

/// The person's own words, to go on from.
#[derive(Clone, Debug, Default)]
pub struct WhatIfInputView {
    /// The node.
    pub node: String,
    /// The patch's form.
    pub format: String,
    /// The state.
    pub state: String,
    /// The patch.
    pub patch: String,
    /// What is known around it.
    pub around: String,
}

/// A judgement in words.
#[derive(Clone, Debug)]
pub struct JudgementView {
    /// How it is meant.
    pub tone: Tone,
    /// "It would be held: people would be asked."
    pub words: &'static str,
    /// Why it would be held.
    pub reasons: Vec<SafeLine>,
    /// What rules warn of.
    pub warnings: Vec<super::rejections_view::ErrorRow>,
    /// Why it would be rejected.
    pub errors: Vec<super::rejections_view::ErrorRow>,
    /// What it would change.
    pub changes: Vec<ChangeRow>,
    /// Changes beyond those listed.
    pub more_changes: usize,
}

/// A leaf that would change.
#[derive(Clone, Debug)]
pub struct ChangeRow {
    /// Where.
    pub path: SafePath,
    /// Before and after; `None` of a hidden one.
    pub sides: Option<(WhatIfSideView, WhatIfSideView)>,
}

/// One side of a change.
#[derive(Clone, Debug)]
pub enum WhatIfSideView {
    /// The value.
    Value(SafeJson),
    /// There is none.
    Nothing,
}
