//! Who votes in whose place.

use askama::Template;

use super::passkeys_view::Confirm;
use crate::web::pages::shared::layout::{Moment, Shell};
use crate::web::pages::shared::safe_text::Line;

/// `GET /delegations`; its forms post to the same address and to `/delegations/{id}/end`.
#[derive(Template, Clone, Debug)]
#[template(path = "delegations.html")]
pub struct DelegationsPage {
    /// The frame.
    pub shell: Shell,
    /// The session's CSRF token.
    pub csrf: String,
    /// The form that names somebody, for who has a vote to hand on.
    pub naming: Option<NamingForm>,
    /// Whom the reader has named, the latest first.
    pub given: Vec<DelegationRow>,
    /// For whom the reader votes now.
    pub received: Vec<DelegationRow>,
    /// All that stand, for who watches over people.
    pub all: Option<Vec<DelegationRow>>,
}

/// What was typed, and what can be chosen.
#[derive(Clone, Debug)]
pub struct NamingForm {
    /// The name.
    pub to: Line,
    /// For how long: what is sent, in words, and whether it is chosen.
    pub lengths: Vec<Length>,
}

/// For how long.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// As it is sent.
    pub hours: u64,
    /// As it is read.
    pub words: &'static str,
    /// Whether it is chosen.
    pub chosen: Chosen,
}

/// Whether it is the one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chosen {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// One delegation.
#[derive(Clone, Debug)]
pub struct DelegationRow {
    /// Its name.
    pub id: String,
    /// Who is away.
    pub from: Line,
    /// Who votes for them.
    pub to: Line,
    /// Since when.
    pub since: Moment,
    /// Until when.
    pub until: Moment,
    /// How it stands.
    pub standing: Standing,
}

/// How a delegation stands.
#[derive(Clone, Debug)]
pub enum Standing {
    /// It stands, and the reader may end it.
    Now,
    /// It stands.
    NowForOthers,
    /// Its time is over.
    Over,
    /// Somebody ended it.
    Ended {
        /// Who.
        by: Line,
        /// When.
        at: Moment,
    },
}

/// The second look before somebody is named; its own submit carries `confirmed=yes`.
#[derive(Template, Clone, Debug)]
#[template(path = "delegate.html")]
pub struct DelegatePage {
    /// The frame.
    pub shell: Shell,
    /// The session's CSRF token.
    pub csrf: String,
    /// Whom.
    pub to: Line,
    /// As the form sends it.
    pub hours: u64,
    /// Until when.
    pub until: Moment,
    /// What is handed on: the reader's groups.
    pub groups: Vec<Line>,
    /// What has to be shown.
    pub confirm: Confirm,
    /// Why the page comes again.
    pub problem: Option<String>,
}

impl Length {
    /// Whether it is chosen.
    pub fn is_chosen(&self) -> bool {
        self.chosen == Chosen::Yes
    }
}
