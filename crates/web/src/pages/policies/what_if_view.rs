//! View of the what-if page (dry run).

use askama::Template;

use crate::pages::shared::layout::{PageLayout, Tone};
use crate::pages::shared::safe_text::{SafeJson, SafeLine, SafePath};

/// `GET /what-if`, and the result of its form.
#[derive(Template, Clone, Debug)]
#[template(path = "what_if.html")]
pub struct WhatIfPage {
    pub shell: PageLayout,
    /// Address of the replay page (backtest), if the reader may open it.
    pub replays_url: Option<&'static str>,
    pub flows: Vec<FlowChoice>,
    pub typed: WhatIfInputView,
    /// The error in the form.
    pub problem: Option<String>,
    pub told: Option<JudgementView>,
    pub csrf: String,
}

#[derive(Clone, Debug)]
pub struct FlowChoice {
    pub name: SafeLine,
    pub chosen: WhatIfOptionState,
}

/// Whether an option is selected.
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

/// The submitted input, to fill the form again.
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
    /// The outcome in a sentence.
    pub words: &'static str,
    pub reasons: Vec<SafeLine>,
    pub warnings: Vec<super::rejections_view::ErrorRow>,
    /// Reasons for a rejection.
    pub errors: Vec<super::rejections_view::ErrorRow>,
    pub changes: Vec<ChangeRow>,
    /// Number of changes that the page leaves out.
    pub more_changes: usize,
}

/// A changed leaf of the state.
#[derive(Clone, Debug)]
pub struct ChangeRow {
    pub path: SafePath,
    /// Values before and after. `None` if the value is redacted.
    pub sides: Option<(WhatIfSideView, WhatIfSideView)>,
}

#[derive(Clone, Debug)]
pub enum WhatIfSideView {
    Value(SafeJson),
    Nothing,
}
