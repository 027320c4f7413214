//! The two pages that are seen without a session.

use askama::Template;

use super::shell::Shell;
use super::text::Line;

/// `GET /sign-in`; posts `username`, `password`, `csrf` and `next` to `/sign-in`.
#[derive(Template, Clone, Debug)]
#[template(path = "sign_in.html")]
pub struct SignInPage {
    /// The frame.
    pub shell: Shell,
    /// The form's own token, from before there is a session.
    pub csrf: String,
    /// The path to go on to, on this gateway.
    pub next: String,
    /// What was typed, when the page comes again.
    pub username: Line,
    /// Why it comes again: "User name and password do not match. Nothing else was tried."
    pub problem: Option<String>,
}

/// `GET /set-up/{token}`, once; posts `username`, `password`, `csrf` to the same address.
#[derive(Template, Clone, Debug)]
#[template(path = "set_up.html")]
pub struct SetUpPage {
    /// The frame.
    pub shell: Shell,
    /// Where the form goes: the one-time link itself.
    pub action: String,
    /// The form's own token.
    pub csrf: String,
    /// What the account will be able to do: "You will administer this gateway.", "… review as finance."
    pub purpose: String,
    /// What was typed or is proposed, when there is something.
    pub username: Line,
    /// The shortest password that is taken.
    pub password_chars_min: usize,
    /// Why the page comes again.
    pub problem: Option<String>,
}
