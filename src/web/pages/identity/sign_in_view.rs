//! The pages that are seen without a session.

use askama::Template;

use super::passkeys_view::PasskeyChallengeView;
use crate::web::pages::shared::layout::PageLayout;
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /sign-in`; posts `username`, `password`, `csrf` and `next` to `/sign-in`.
#[derive(Template, Clone, Debug)]
#[template(path = "sign_in.html")]
pub struct SignInPage {
    pub shell: PageLayout,
    /// The form's own token, from before there is a session.
    pub csrf: String,
    /// The path to go on to, on this gateway.
    pub next: String,
    /// What was typed, when the page comes again.
    pub username: SafeLine,
    /// What the button says that leads to an OpenID provider, where there is one.
    pub elsewhere: Option<SafeLine>,
    /// Whether names and passwords of this gateway's own are asked for.
    pub asks_password: bool,
    /// Why it comes again: "User name and password do not match. Nothing else was tried."
    pub problem: Option<String>,
    /// What a passkey would sign, where passkeys work. Posts to `/sign-in/passkey`.
    pub passkey: Option<PasskeyChallengeView>,
}

/// `GET /sign-in/{secret}`: a one-time link's only button. Posts `csrf` and `next` to the same address.
#[derive(Template, Clone, Debug)]
#[template(path = "sign_in_link.html")]
pub struct SignInLinkPage {
    pub shell: PageLayout,
    /// Where the form goes: the one-time link itself.
    pub action: String,
    pub csrf: String,
    /// The path to go on to, on this gateway.
    pub next: String,
}

/// A page that leads on to another site.
#[derive(Template, Clone, Debug)]
#[template(path = "leaving.html")]
pub struct RedirectPage {
    pub shell: PageLayout,
    pub url: String,
    /// What happens: "Signing in".
    pub title: String,
    pub lead: String,
}

/// What the first account will be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoleChoice {
    /// Decides on what agents propose.
    Reviewer,
    /// Runs the gateway; never votes.
    Admin,
}

impl RoleChoice {
    /// Whether it is the one that decides.
    pub const fn is_reviewer(self) -> bool {
        matches!(self, Self::Reviewer)
    }
}

/// `GET /set-up/{secret}`, once; posts `username`, `password`, `groups`, `role`, `csrf` to the same address.
#[derive(Template, Clone, Debug)]
#[template(path = "set_up.html")]
pub struct SetUpPage {
    pub shell: PageLayout,
    /// Where the form goes: the one-time link itself.
    pub action: String,
    pub csrf: String,
    /// What the account is for: "It is the first account of this gateway."
    pub purpose: String,
    /// What was typed or is proposed, when there is something.
    pub username: SafeLine,
    /// The groups it stands for, as typed: "reviewers, finance".
    pub groups: SafeLine,
    pub role: RoleChoice,
    /// The shortest password that is taken.
    pub password_chars_min: usize,
    /// Why the page comes again.
    pub problem: Option<String>,
}
