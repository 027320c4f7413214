//! Views of the pages for accounts and tokens.

use askama::Template;

use crate::pages::shared::findings::FindingRow;
use crate::pages::shared::layout::{PageLayout, TimestampView};
use crate::pages::shared::safe_text::SafeLine;

/// `GET /people`.
#[derive(Template, Clone, Debug)]
#[template(path = "people.html")]
pub struct PeoplePage {
    pub shell: PageLayout,
    pub csrf: String,
    pub people: Vec<PersonRow>,
    /// Links that are neither used nor expired.
    pub links: Vec<LinkRow>,
    /// Whether the reader is an administrator. Auditors see the page without forms.
    pub may_change: bool,
    /// The previous input, when the form is rejected.
    pub typed: PersonFormInput,
}

/// Fields of the forms for the role and groups of an account.
#[derive(Clone, Debug, Default)]
pub struct PersonFormInput {
    pub name: String,
    /// reviewer, admin or auditor.
    pub role: String,
    pub groups: String,
}

#[derive(Clone, Debug)]
pub struct PersonRow {
    pub url: String,
    pub name: SafeLine,
    pub role: &'static str,
    pub groups: Vec<SafeLine>,
    pub disabled: bool,
    /// Sign-in method: "a password".
    pub way: &'static str,
    pub created: TimestampView,
    /// The person and time of the last change.
    pub changed: Option<(SafeLine, TimestampView)>,
    /// Time of the last use. It is written at intervals, so it is approximate.
    pub seen: Option<TimestampView>,
    /// Whether this is the reader's own account.
    pub me: bool,
}

/// A one-time link that can still be used.
#[derive(Clone, Debug)]
pub struct LinkRow {
    pub id: String,
    /// Purpose of the link: "invitation as reviewer".
    pub words: String,
    pub name: SafeLine,
    pub by: SafeLine,
    pub until: TimestampView,
}

/// `GET /people/{account}`.
#[derive(Template, Clone, Debug)]
#[template(path = "person.html")]
pub struct PersonPage {
    pub shell: PageLayout,
    pub csrf: String,
    pub person: PersonRow,
    pub changing: PersonEditability,
    pub typed: PersonFormInput,
    /// Number of open sessions.
    pub sessions: usize,
    /// Number of registered passkeys.
    pub passkeys: usize,
    /// The address for email notifications.
    pub mail: Option<SafeLine>,
    /// End of the sign-in throttle for unknown browsers, after too many wrong passwords.
    pub slowed: Option<TimestampView>,
}

/// Whether the reader may change this account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PersonEditability {
    Open,
    /// The reader's own account. Administrators cannot change their own role.
    Oneself,
    /// The reader is not an administrator.
    Looking,
}

#[derive(Template, Clone, Debug)]
#[template(path = "secret.html")]
pub struct SecretPage {
    pub shell: PageLayout,
    pub title: String,
    pub lead: &'static str,
    pub label: &'static str,
    pub secret: String,
    pub until: Option<TimestampView>,
    pub note: Option<String>,
    /// Missing reviewers and tokens of the flow of a new token.
    pub findings: Vec<FindingRow>,
    pub back: &'static str,
    pub back_words: &'static str,
}

/// `GET /tokens`.
#[derive(Template, Clone, Debug)]
#[template(path = "tokens.html")]
pub struct TokensPage {
    pub shell: PageLayout,
    pub csrf: String,
    /// Active tokens, newest first, then revoked tokens.
    pub tokens: Vec<TokenRow>,
    pub flows: Vec<SafeLine>,
    /// Whether the reader is an administrator. Auditors see the page without forms.
    pub may_change: bool,
    /// The previous input, when the form is rejected.
    pub typed: TokenFormInput,
}

#[derive(Clone, Debug, Default)]
pub struct TokenFormInput {
    pub name: String,
    /// host, agent, writer, auditor or admin.
    pub role: String,
    pub owner: String,
    /// Whether the owner is a new group, which may have no members yet.
    pub new_group: bool,
    pub flow: String,
    pub nodes: String,
}

#[derive(Clone, Debug)]
pub struct TokenRow {
    pub id: String,
    pub name: SafeLine,
    pub role: &'static str,
    pub owner: SafeLine,
    /// Reviewers who cannot approve the token's proposals (separation of duties).
    pub excludes: Vec<SafeLine>,
    /// Whether an account has the owner's name or is a member of that group.
    pub owner_exists: bool,
    pub flow: Option<SafeLine>,
    pub nodes: Vec<SafeLine>,
    pub revoked: bool,
    /// Time of the last use. It is written at intervals, so it is approximate.
    pub used: Option<TimestampView>,
    pub created: TimestampView,
}
