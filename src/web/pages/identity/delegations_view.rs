//! Who votes in whose place.

use askama::Template;

use super::passkeys_view::PasskeyConfirmationView;
use crate::web::pages::shared::layout::{PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /delegations`; its forms post to the same address and to `/delegations/{id}/end`.
#[derive(Template, Clone, Debug)]
#[template(path = "delegations.html")]
pub struct DelegationsPage {
    /// The frame.
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
    /// The name.
    pub to: SafeLine,
    /// For how long: what is sent, in words, and whether it is chosen.
    pub lengths: Vec<DelegationLengthOption>,
}

/// For how long.
#[derive(Clone, Copy, Debug)]
pub struct DelegationLengthOption {
    /// As it is sent.
    pub hours: u64,
    /// As it is read.
    pub words: &'static str,
    /// Whether it is chosen.
    pub chosen: DelegationOptionState,
}

/// Whether it is the one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelegationOptionState {
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
    pub from: SafeLine,
    /// Who votes for them.
    pub to: SafeLine,
    /// Since when.
    pub since: TimestampView,
    /// Until when.
    pub until: TimestampView,
    /// How it stands.
    pub standing: DelegationStatusView,
}

/// How a delegation stands.
#[derive(Clone, Debug)]
pub enum DelegationStatusView {
    /// It stands, and the reader may end it.
    Now,
    /// It stands.
    NowForOthers,
    /// Its time is over.
    Over,
    /// Somebody ended it.
    Ended {
        /// Who.
        by: SafeLine,
        /// When.
        at: TimestampView,
    },
}

/// The second look before somebody is named; its own submit carries `confirmed=yes`.
#[derive(Template, Clone, Debug)]
#[template(path = "delegate.html")]
pub struct DelegatePage {
    /// The frame.
    pub shell: PageLayout,
    /// The session's CSRF token.
    pub csrf: String,
    /// Whom.
    pub to: SafeLine,
    /// As the form sends it.
    pub hours: u64,
    /// Until when.
    pub until: TimestampView,
    /// What is handed on: the reader's groups.
    pub groups: Vec<SafeLine>,
    /// What has to be shown.
    pub confirm: PasskeyConfirmationView,
    /// Why the page comes again.
    pub problem: Option<String>,
}

impl DelegationLengthOption {
    /// Whether it is chosen.
    pub fn is_chosen(&self) -> bool {
        self.chosen == DelegationOptionState::Yes
    }
}
