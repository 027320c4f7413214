//! What a flow's policy would make of a patch.

use askama::Template;

use crate::web::pages::shared::layout::{Shell, Tone};
use crate::web::pages::shared::safe_text::{Json, Line, Path};

/// `GET /what-if`, and what a submit there comes to.
#[derive(Template, Clone, Debug)]
#[template(path = "what_if.html")]
pub struct WhatIfPage {
    /// The frame.
    pub shell: Shell,
    /// Where a policy can be tried on what was recorded, for those who may.
    pub replays_url: Option<&'static str>,
    /// What there is to choose from.
    pub flows: Vec<FlowChoice>,
    /// What was typed.
    pub typed: Typed,
    /// What could not be read of it.
    pub problem: Option<String>,
    /// The judgement.
    pub told: Option<Told>,
    /// The session's CSRF token.
    pub csrf: String,
}

/// A flow to choose.
#[derive(Clone, Debug)]
pub struct FlowChoice {
    /// Its name.
    pub name: Line,
    /// Whether it is the one chosen.
    pub chosen: Chosen,
}

/// Whether one of several is the one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chosen {
    /// It is.
    Yes,
    /// It is not.
    No,
}

impl Chosen {
    /// For the template.
    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Yes)
    }
}

/// The person's own words, to go on from.
#[derive(Clone, Debug, Default)]
pub struct Typed {
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
pub struct Told {
    /// How it is meant.
    pub tone: Tone,
    /// "It would be held: people would be asked."
    pub words: &'static str,
    /// Why it would be held.
    pub reasons: Vec<Line>,
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
    pub path: Path,
    /// Before and after; `None` of a hidden one.
    pub sides: Option<(Side, Side)>,
}

/// One side of a change.
#[derive(Clone, Debug)]
pub enum Side {
    /// The value.
    Value(Json),
    /// There is none.
    Nothing,
}
