//! People and tokens, as administrators look after them.

use askama::Template;

use crate::web::pages::shared::layout::{PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /people`.
#[derive(Template, Clone, Debug)]
#[template(path = "people.html")]
pub struct PeoplePage {
    pub shell: PageLayout,
    pub csrf: String,
    pub people: Vec<PersonRow>,
    /// What was sent and not used yet.
    pub links: Vec<LinkRow>,
    /// Whether the reader may change anything.
    pub may_change: bool,
    /// What was typed, when the page comes again.
    pub typed: PersonFormInput,
}

/// A form about what a person may do.
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
    /// Whether they are let in no more.
    pub disabled: bool,
    /// How they sign in: "a password".
    pub way: &'static str,
    /// Since when there is an account.
    pub created: TimestampView,
    /// Who last had a hand in it, and when.
    pub changed: Option<(SafeLine, TimestampView)>,
    /// When they were last seen, roughly.
    pub seen: Option<TimestampView>,
    /// Whether it is the reader.
    pub me: bool,
}

/// A link that was given to somebody.
#[derive(Clone, Debug)]
pub struct LinkRow {
    /// Its id, for withdrawing it.
    pub id: String,
    /// What it does: "makes the account ana, reviewer".
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
    /// What may be done to them here; why not, otherwise.
    pub changing: PersonEditability,
    /// What the form begins with.
    pub typed: PersonFormInput,
    /// How many sessions of theirs are open.
    pub sessions: usize,
    /// How many passkeys of theirs count.
    pub passkeys: usize,
    /// Where they are told by mail.
    pub mail: Option<SafeLine>,
    /// Until when strangers wait, after too many wrong passwords.
    pub slowed: Option<TimestampView>,
}

/// Whether the reader may change this person.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PersonEditability {
    Open,
    Oneself,
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
    /// Until when it can be used.
    pub until: Option<TimestampView>,
    pub note: Option<String>,
    pub back: &'static str,
    pub back_words: &'static str,
}

/// `GET /tokens`.
#[derive(Template, Clone, Debug)]
#[template(path = "tokens.html")]
pub struct TokensPage {
    pub shell: PageLayout,
    pub csrf: String,
    /// Every token, the latest first.
    pub tokens: Vec<TokenRow>,
    pub flows: Vec<SafeLine>,
    /// Whether the reader may change anything.
    pub may_change: bool,
    /// What was typed, when the page comes again.
    pub typed: TokenFormInput,
}

#[derive(Clone, Debug, Default)]
pub struct TokenFormInput {
    pub name: String,
    /// host, agent, writer, auditor or admin.
    pub role: String,
    pub owner: String,
    /// Whether that is a group which may have no members yet.
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
    /// The reviewers who cannot approve what comes of it.
    pub excludes: Vec<SafeLine>,
    /// Whether an account has the owner's name or is in that group.
    pub owner_exists: bool,
    pub flow: Option<SafeLine>,
    pub nodes: Vec<SafeLine>,
    /// Whether nothing is accepted from it any more.
    pub revoked: bool,
    /// When it was last used, roughly.
    pub used: Option<TimestampView>,
    pub created: TimestampView,
}
