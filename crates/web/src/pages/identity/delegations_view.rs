//! Views of the delegation pages.

use askama::Template;

use super::passkeys_view::PasskeyConfirmationView;
use crate::pages::shared::layout::{PageLayout, TimestampView};
use crate::pages::shared::safe_text::SafeLine;

/// `GET /delegations`; its forms post to the same address and to `/delegations/{id}/end`.
#[derive(Template, Clone, Debug)]
#[template(path = "delegations.html")]
pub struct DelegationsPage {
    pub shell: PageLayout,
    pub csrf: String,
    /// The form for a new delegation. Only a reviewer in at least one group has a vote to delegate.
    pub naming: Option<NewDelegationForm>,
    /// Delegations by the reader, newest first.
    pub given: Vec<DelegationRow>,
    /// Active delegations to the reader.
    pub received: Vec<DelegationRow>,
    /// All active delegations, for administrators and auditors.
    pub all: Option<Vec<DelegationRow>>,
}

#[derive(Clone, Debug)]
pub struct NewDelegationForm {
    pub to: SafeLine,
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
    /// Active, and the reader may end it.
    Now,
    /// Active, but the reader may not end it.
    NowForOthers,
    Over,
    Ended {
        by: SafeLine,
        at: TimestampView,
    },
}

/// The confirm page before a delegation is created. Its form sends `confirmed=yes`.
#[derive(Template, Clone, Debug)]
#[template(path = "delegate.html")]
pub struct DelegatePage {
    pub shell: PageLayout,
    pub csrf: String,
    pub to: SafeLine,
    pub hours: u64,
    pub until: TimestampView,
    /// The reader's groups, whose votes are delegated.
    pub groups: Vec<SafeLine>,
    pub confirm: PasskeyConfirmationView,
    /// The error to show when the form is rejected.
    pub problem: Option<String>,
}

impl DelegationLengthOption {
    pub fn is_chosen(&self) -> bool {
        self.chosen == DelegationOptionState::Yes
    }
}
