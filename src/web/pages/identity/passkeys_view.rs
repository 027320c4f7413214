//! One's own passkeys.

use askama::Template;

use crate::web::pages::shared::layout::{PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /account/passkeys`; its forms post to the same address and to `/account/passkeys/removal`.
#[derive(Template, Clone, Debug)]
#[template(path = "passkeys.html")]
pub struct PasskeysPage {
    pub shell: PageLayout,
    /// The session's CSRF token.
    pub csrf: String,
    /// Whether passkeys work at this gateway's address.
    pub place: PasskeyAvailability,
    /// The passkeys, the first one first.
    pub rows: Vec<PasskeyRow>,
}

/// Whether browsers allow passkeys at the gateway's address.
#[derive(Clone, Debug)]
pub enum PasskeyAvailability {
    /// They do: one can be registered.
    Here(AddPasskeyForm),
    /// They do not; the address.
    Nowhere(String),
}

/// What a passkey is asked to sign.
#[derive(Clone, Debug)]
pub struct PasskeyChallengeView {
    /// The host that passkeys are bound to.
    pub rp_id: String,
    /// The challenge, in base64url.
    pub challenge: String,
    /// Which passkeys may sign it, by blanks.
    pub allow: String,
}

/// The form that registers one.
#[derive(Clone, Debug)]
pub struct AddPasskeyForm {
    /// What was typed for its name.
    pub name: SafeLine,
    /// The host that passkeys are bound to.
    pub rp_id: String,
    /// The challenge, in base64url.
    pub challenge: String,
    pub user: String,
    pub user_name: String,
    /// What else has to be shown.
    pub confirm: PasskeyConfirmationView,
}

/// What has to be shown to register a passkey.
#[derive(Clone, Debug)]
pub enum PasskeyConfirmationView {
    /// The password: it is the first.
    Password,
    /// That one signed in a moment ago: it is the first, and there is no password.
    FreshSession,
    /// A passkey that is there has to sign this.
    Passkey(PasskeyChallengeView),
}

impl PasskeyConfirmationView {
    /// What a passkey that is there has to sign.
    pub fn asking(&self) -> Option<&PasskeyChallengeView> {
        match self {
            Self::Passkey(asking) => Some(asking),
            Self::Password | Self::FreshSession => None,
        }
    }

    /// Whether the password is asked for.
    pub fn by_password(&self) -> bool {
        matches!(self, Self::Password)
    }
}

#[derive(Clone, Debug)]
pub struct PasskeyRow {
    /// As its authenticator names it.
    pub id: String,
    pub name: SafeLine,
    pub added: TimestampView,
    pub used: Option<TimestampView>,
    pub kept: &'static str,
    /// What is signed to remove it.
    pub remove: PasskeyChallengeView,
}
