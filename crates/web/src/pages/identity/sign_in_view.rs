//! Views of the pages that need no session.

use askama::Template;

use super::passkeys_view::PasskeyChallengeView;
use crate::pages::shared::layout::PageLayout;
use crate::pages::shared::safe_text::SafeLine;

/// `GET /sign-in`; posts `username`, `password`, `csrf` and `next` to `/sign-in`.
#[derive(Template, Clone, Debug)]
#[template(path = "sign_in.html")]
pub struct SignInPage {
    pub shell: PageLayout,
    /// CSRF token of the anonymous session.
    pub csrf: String,
    /// The local path to open after sign-in.
    pub next: String,
    /// The previous input, when the form is rejected.
    pub username: SafeLine,
    /// Label of the button for the OpenID provider, if one is configured.
    pub elsewhere: Option<SafeLine>,
    /// Whether local accounts are enabled.
    pub asks_password: bool,
    /// The error to show: "User name and password do not match."
    pub problem: Option<String>,
    /// Challenge of the passkey form, which posts to `/sign-in/passkey`. `None` if passkeys are unavailable.
    pub passkey: Option<PasskeyChallengeView>,
}

/// `GET /sign-in/{secret}`: the button of a one-time link. It posts `csrf` and `next` to the same address.
#[derive(Template, Clone, Debug)]
#[template(path = "sign_in_link.html")]
pub struct SignInLinkPage {
    pub shell: PageLayout,
    /// The form posts to the one-time link itself.
    pub action: String,
    /// The user name of the account that the link is for.
    pub person: SafeLine,
    pub csrf: String,
    /// The local path to open after sign-in.
    pub next: String,
}

/// A page that forwards to another site.
#[derive(Template, Clone, Debug)]
#[template(path = "leaving.html")]
pub struct RedirectPage {
    pub shell: PageLayout,
    pub url: String,
    pub title: String,
    pub lead: String,
}

/// Role of the first account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoleChoice {
    /// Decides on proposals.
    Reviewer,
    /// Administers the gateway and cannot vote.
    Admin,
}

impl RoleChoice {
    pub const fn is_reviewer(self) -> bool {
        matches!(self, Self::Reviewer)
    }
}

/// `GET /set-up/{secret}`, once; posts `username`, `password`, `groups`, `role`, `csrf` to the same address.
#[derive(Template, Clone, Debug)]
#[template(path = "set_up.html")]
pub struct SetUpPage {
    pub shell: PageLayout,
    /// The form posts to the one-time link itself.
    pub action: String,
    pub csrf: String,
    pub purpose: String,
    pub username: SafeLine,
    /// Group names, separated by commas: "reviewers, finance".
    pub groups: SafeLine,
    pub role: RoleChoice,
    pub password_chars_min: usize,
    /// The error to show when the form is rejected.
    pub problem: Option<String>,
}
