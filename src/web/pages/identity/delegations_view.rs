//! Who votes in whose place.

use askama::Template;

use super::passkeys_view::PasskeyConfirmationView;
use crate::web::pages::shared::layout::{PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /delegations`; its forms post to the same address and to `/delegations/{id}/end`.
#[derive(Template, Clone, Debug)]
#[template(path = "delegations.html")]
pub struct DelegationsPage {
    pub shell: PageLayout,
    /// The session's CSRF token.
    pub csrf: String,
    /// The form that names somebody, for who has a vote to hand on.
    pub naming: Option<NewDelegationForm>,
    /// Whom the reader has named, the latest first.
    pub given: Vec<DelegationRow>,
    /// For whom the reader votes now.
    pub received: Vec<DelegationRow>,
    /// All that stand, for who watches over people.
    pub all: Option<Vec<DelegationRow>>,
}

/// What was typed, and what can be chosen.
#[derive(Clone, Debug)]
pub struct NewDelegationForm {
    pub to: SafeLine,
    /// For how long: what is sent, in words, and whether it is chosen.
    pub lengths: Vec<DelegationLengthOption>,
}

#[derive(Clone, Copy, Debug)]
pub struct DelegationLengthOption {
    pub hours: u64,
    pub words: &'static str,
    pub chosen: DelegationOptionState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelegationOptionState {
    Yes,
    No,
}

#[derive(Clone, Debug)]
pub struct DelegationRow {
    pub id: String,
    pub from: SafeLine,
    pub to: SafeLine,
    pub since: TimestampView,
    pub until: TimestampView,
    pub standing: DelegationStatusView,
}

#[derive(Clone, Debug)]
pub enum DelegationStatusView {
    /// It stands, and the reader may end it.
    Now,
    NowForOthers,
    Over,
    Ended {
        by: SafeLine,
        at: TimestampView,
    },
}

/// The second look before somebody is named; its own submit carries `confirmed=yes`.
#[derive(Template, Clone, Debug)]
#[template(path = "delegate.html")]
pub struct DelegatePage {
    pub shell: PageLayout,
    /// The session's CSRF token.
    pub csrf: String,
    pub to: SafeLine,
    pub hours: u64,
    pub until: TimestampView,
    /// What is handed on: the reader's groups.
    pub groups: Vec<SafeLine>,
    pub confirm: PasskeyConfirmationView,
    /// Why the page comes again.
    pub problem: Option<String>,
}

impl DelegationLengthOption {
    pub fn is_chosen(&self) -> bool {
        self.chosen == DelegationOptionState::Yes
    }
}
