//! Views of the account page and of the page that sets a password.

use askama::Template;

use crate::pages::shared::layout::{PageLayout, TimestampView};
use crate::pages::shared::safe_text::SafeLine;

/// `GET /account`.
#[derive(Template, Clone, Debug)]
#[template(path = "account.html")]
pub struct AccountPage {
    pub shell: PageLayout,
    pub csrf: String,
    pub name: SafeLine,
    pub role: &'static str,
    pub groups: Vec<SafeLine>,
    /// The saved address for email notifications, or the rejected input.
    pub mail: String,
    /// Whether one email collects all notifications of a period.
    pub digest: bool,
    /// The error of the form for email notifications.
    pub mail_problem: Option<String>,
    /// Whether the account signs in with a password.
    pub has_password: bool,
    pub password_chars_min: usize,
    /// Open sessions, newest first.
    pub sessions: Vec<SessionRow>,
    /// The error of the password form.
    pub problem: Option<String>,
}

#[derive(Clone, Debug)]
pub struct SessionRow {
    /// Safe to show: the secret of the cookie cannot be derived from it.
    pub id: String,
    pub this: bool,
    /// Browser and network: "Firefox on Linux", "192.0.2.0/24".
    pub origin: Option<(SafeLine, SafeLine)>,
    pub began: TimestampView,
    /// Time of the last use. It is written at intervals, so it is approximate.
    pub seen: Option<TimestampView>,
    pub ends: TimestampView,
}

/// `GET /password/{secret}`; posts `password`, `again` and `csrf` to the same address.
#[derive(Template, Clone, Debug)]
#[template(path = "password.html")]
pub struct PasswordPage {
    pub shell: PageLayout,
    /// The form posts to the one-time link itself.
    pub action: String,
    pub csrf: String,
    pub title: &'static str,
    pub name: SafeLine,
    /// Role and groups of the invited account. `None` for a password reset.
    pub invited: Option<(&'static str, Vec<SafeLine>)>,
    pub by: SafeLine,
    pub password_chars_min: usize,
    /// The error to show when the form is rejected.
    pub problem: Option<String>,
}
