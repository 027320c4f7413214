//! Views of the passkeys page and of every form that a passkey confirms.

use askama::Template;

use crate::pages::shared::layout::{PageLayout, TimestampView};
use crate::pages::shared::safe_text::SafeLine;

/// `GET /account/passkeys`; its forms post to the same address and to `/account/passkeys/removal`.
#[derive(Template, Clone, Debug)]
#[template(path = "passkeys.html")]
pub struct PasskeysPage {
    pub shell: PageLayout,
    pub csrf: String,
    pub place: PasskeyAvailability,
    /// Registered passkeys, oldest first.
    pub rows: Vec<PasskeyRow>,
}

/// Whether browsers allow passkeys at the gateway's address.
#[derive(Clone, Debug)]
pub enum PasskeyAvailability {
    /// Browsers allow passkeys, so the page has a form.
    Here(AddPasskeyForm),
    /// Browsers do not allow passkeys at this address.
    Nowhere(String),
}

/// The challenge that a passkey has to sign.
#[derive(Clone, Debug)]
pub struct PasskeyChallengeView {
    /// The relying party: the host that passkeys are bound to.
    pub rp_id: String,
    /// In base64url.
    pub challenge: String,
    /// Ids of the passkeys that may sign it, separated by spaces.
    pub allow: String,
}

/// The form that registers a passkey.
#[derive(Clone, Debug)]
pub struct AddPasskeyForm {
    pub name: SafeLine,
    /// The relying party: the host that passkeys are bound to.
    pub rp_id: String,
    /// In base64url.
    pub challenge: String,
    pub user: String,
    pub user_name: String,
    pub confirm: PasskeyConfirmationView,
}

/// The confirmation that an action needs in addition to the session.
#[derive(Clone, Debug)]
pub enum PasskeyConfirmationView {
    /// The password: the user has no passkey yet.
    Password,
    /// A recent sign-in: the user has neither a passkey nor a password.
    FreshSession,
    /// A signature by a registered passkey.
    Passkey(PasskeyChallengeView),
}

impl PasskeyConfirmationView {
    /// Returns the challenge that a registered passkey has to sign.
    pub fn asking(&self) -> Option<&PasskeyChallengeView> {
        match self {
            Self::Passkey(asking) => Some(asking),
            Self::Password | Self::FreshSession => None,
        }
    }

    /// Returns whether the form asks for the password.
    pub fn by_password(&self) -> bool {
        matches!(self, Self::Password)
    }
}

#[derive(Clone, Debug)]
pub struct PasskeyRow {
    /// The credential id that the authenticator assigned.
    pub id: String,
    pub name: SafeLine,
    pub added: TimestampView,
    pub used: Option<TimestampView>,
    pub kept: &'static str,
    /// The challenge that confirms the removal.
    pub remove: PasskeyChallengeView,
}
