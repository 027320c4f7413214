//! One's own account, and the link by which a password is chosen.

use askama::Template;

use crate::web::pages::shared::layout::{PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /account`.
#[derive(Template, Clone, Debug)]
#[template(path = "account.html")]
pub struct AccountPage {
    pub shell: PageLayout,
    pub csrf: String,
    pub name: SafeLine,
    pub role: &'static str,
    pub groups: Vec<SafeLine>,
    /// Where they are told by mail, or what they typed.
    pub mail: String,
    /// Whether all that came meanwhile comes in one mail.
    pub digest: bool,
    /// Why the form about that comes again.
    pub mail_problem: Option<String>,
    /// Whether there is a password here.
    pub has_password: bool,
    /// The shortest password that is taken.
    pub password_chars_min: usize,
    /// The open sessions, the latest first.
    pub sessions: Vec<SessionRow>,
    /// Why the form comes again.
    pub problem: Option<String>,
}

#[derive(Clone, Debug)]
pub struct SessionRow {
    /// Its id; the cookie's secret is not made of it.
    pub id: String,
    pub this: bool,
    /// "Firefox on Linux, from 192.0.2.0/24".
    pub origin: Option<(SafeLine, SafeLine)>,
    pub began: TimestampView,
    /// When it was last used, roughly.
    pub seen: Option<TimestampView>,
    pub ends: TimestampView,
}

/// `GET /password/{secret}`; posts `password`, `again` and `csrf` to the same address.
#[derive(Template, Clone, Debug)]
#[template(path = "password.html")]
pub struct PasswordPage {
    pub shell: PageLayout,
    /// Where the form goes: the one-time link itself.
    pub action: String,
    pub csrf: String,
    /// "Welcome" or "Choose another password".
    pub title: &'static str,
    pub name: SafeLine,
    /// What an invitation makes of them: role and groups.
    pub invited: Option<(&'static str, Vec<SafeLine>)>,
    pub by: SafeLine,
    /// The shortest password that is taken.
    pub password_chars_min: usize,
    /// Why the page comes again.
    pub problem: Option<String>,
}
