//! People and tokens, as administrators look after them.

use askama::Template;

use crate::web::pages::shared::layout::{PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /people`.
#[derive(Template, Clone, Debug)]
#[template(path = "people.html")]
pub struct PeoplePage {
    /// The frame.
    pub shell: PageLayout,
    /// The session's token.
    pub csrf: String,
    /// Everybody, by name.
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
    /// What they sign in with.
    pub name: String,
    /// reviewer, admin or auditor.
    pub role: String,
    /// Separated by commas.
    pub groups: String,
}

/// One person.
#[derive(Clone, Debug)]
pub struct PersonRow {
    /// Their page.
    pub url: String,
    /// What they are called.
    pub name: SafeLine,
    /// "reviewer".
    pub role: &'static str,
    /// What they stand for.
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
    /// For whom.
    pub name: SafeLine,
    /// Who made it.
    pub by: SafeLine,
    /// Until when.
    pub until: TimestampView,
}

/// `GET /people/{account}`.
#[derive(Template, Clone, Debug)]
#[template(path = "person.html")]
pub struct PersonPage {
    /// The frame.
    pub shell: PageLayout,
    /// The session's token.
    pub csrf: String,
    /// The person.
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
    /// They may.
    Open,
    /// It is themselves.
    Oneself,
    /// They only look.
    Looking,
}

/// A secret, this once.
#[derive(Template, Clone, Debug)]
#[template(path = "secret.html")]
pub struct SecretPage {
    /// The frame.
    pub shell: PageLayout,
    /// "Invitation for ana".
    pub title: String,
    /// What to do with it.
    pub lead: &'static str,
    /// What it is: "Link".
    pub label: &'static str,
    /// The secret.
    pub secret: String,
    /// Until when it can be used.
    pub until: Option<TimestampView>,
    /// What follows from it.
    pub note: Option<String>,
    /// Where to go on to.
    pub back: &'static str,
    /// What that is called.
    pub back_words: &'static str,
}

/// `GET /tokens`.
#[derive(Template, Clone, Debug)]
#[template(path = "tokens.html")]
pub struct TokensPage {
    /// The frame.
    pub shell: PageLayout,
    /// The session's token.
    pub csrf: String,
    /// Every token, the latest first.
    pub tokens: Vec<TokenRow>,
    /// The flows there are.
    pub flows: Vec<SafeLine>,
    /// Whether the reader may change anything.
    pub may_change: bool,
    /// What was typed, when the page comes again.
    pub typed: TokenFormInput,
}

/// A form about a token.
#[derive(Clone, Debug, Default)]
pub struct TokenFormInput {
    /// What people call it.
    pub name: String,
    /// host, agent, writer, auditor or admin.
    pub role: String,
    /// Who answers for it.
    pub owner: String,
    /// Whether that is a group which may have no members yet.
    pub new_group: bool,
    /// The flow, or nothing.
    pub flow: String,
    /// Separated by commas.
    pub nodes: String,
}

/// One token.
#[derive(Clone, Debug)]
pub struct TokenRow {
    /// Its public part.
    pub id: String,
    /// What people call it.
    pub name: SafeLine,
    /// "writer".
    pub role: &'static str,
    /// Who answers for it.
    pub owner: SafeLine,
    /// The reviewers who cannot approve what comes of it.
    pub excludes: Vec<SafeLine>,
    /// Whether an account has the owner's name or is in that group.
    pub owner_exists: bool,
    /// The flow it is bound to.
    pub flow: Option<SafeLine>,
    /// What it acts as.
    pub nodes: Vec<SafeLine>,
    /// Whether nothing is accepted from it any more.
    pub revoked: bool,
    /// When it was last used, roughly.
    pub used: Option<TimestampView>,
    /// Since when there is one.
    pub created: TimestampView,
}
