//! Several reviews decided at once: what each is about, why some cannot be, and what became of each.

use askama::Template;

use crate::web::pages::reviews::review_view::Rationale;
use crate::web::pages::shared::headline::Headline;
use crate::web::pages::shared::layout::{Hash, Moment, Shell, Tone};
use crate::web::pages::shared::proof_rows::Row;
use crate::web::pages::shared::proof_rows::WriterReads;
use crate::web::pages::shared::safe_text::{Line, Prose};
use crate::web::pages::shared::widgets::Asker;
use crate::web::pages::shared::widgets::Urgency;
use crate::web::pages::shared::widgets::{Call, CommentWish, Reason, Verdict};

/// Answers the ticks: what is decided is what this page shows.
#[derive(Template, Clone, Debug)]
#[template(path = "several.html")]
pub struct SeveralPage {
    /// The frame.
    pub shell: Shell,
    /// The session's CSRF token.
    pub csrf: String,
    /// Which page this is; part of what its nonces are for.
    pub sheet: String,
    /// The flow of all of them.
    pub flow: Line,
    /// The policy of all of them.
    pub policy: Hash,
    /// Why all of them are held.
    pub reasons: Vec<Reason>,
    /// Each of them.
    pub rows: Vec<SeveralRow>,
    /// What was ticked and is not among them.
    pub left_out: Vec<LeftOutRow>,
    /// Whether a comment must be given.
    pub comment: CommentWish,
    /// What was typed, when the page comes again.
    pub typed: Prose,
    /// Why the page comes again.
    pub problem: Option<String>,
    /// What follows where a vote is the last that is needed.
    pub consequence: String,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct SeveralRow {
    /// Review, stage, digest and one-time nonce, as the form sends them.
    pub token: String,
    /// The review's page.
    pub url: String,
    /// The change in words.
    pub headline: Headline,
    /// Its thread.
    pub thread: Line,
    /// What the host calls the thread.
    pub title: Option<Line>,
    /// For whom the thread works, if the host said.
    pub on_behalf_of: Option<Line>,
    /// Who asked for it.
    pub asked_by: Option<Asker>,
    /// What is signed.
    pub digest: Hash,
    /// "1 more from finance".
    pub needs: String,
    /// When it ends by itself.
    pub deadline: Moment,
    /// Whether that is near.
    pub urgency: Urgency,
    /// Everything that differs, protected keys first.
    pub rows: Vec<Row>,
    /// What each writer node would read.
    pub writers: Vec<WriterReads>,
    /// The tool that the agent calls along with it.
    pub call: Option<Call>,
    /// What the agent says it used.
    pub usage: Option<Line>,
    /// What rules warn of.
    pub warnings: Vec<Reason>,
    /// What the agent says of it.
    pub rationale: Option<Rationale>,
}

/// One that is not among them.
#[derive(Clone, Debug)]
pub struct LeftOutRow {
    /// The review's page.
    pub url: String,
    /// The change in words.
    pub headline: Headline,
    /// Its thread.
    pub thread: Line,
    /// Why it is not.
    pub why: String,
}

/// Answers ticks that cannot be decided at once.
#[derive(Template, Clone, Debug)]
#[template(path = "several_apart.html")]
pub struct ApartPage {
    /// The frame.
    pub shell: Shell,
    /// The session's CSRF token.
    pub csrf: String,
    /// Why not.
    pub problem: String,
    /// Those that are alike, to go on with.
    pub groups: Vec<Vec<ApartRow>>,
    /// What cannot be decided at once at all.
    pub left_out: Vec<LeftOutRow>,
}

/// One of those that are alike.
#[derive(Clone, Debug)]
pub struct ApartRow {
    /// The review's id, as the form sends it.
    pub review: String,
    /// The review's page.
    pub url: String,
    /// The change in words.
    pub headline: Headline,
    /// Its flow.
    pub flow: Line,
    /// Its thread.
    pub thread: Line,
}

/// What became of each vote.
#[derive(Template, Clone, Debug)]
#[template(path = "several_told.html")]
pub struct ToldPage {
    /// The frame.
    pub shell: Shell,
    /// What the votes said.
    pub verdict: Verdict,
    /// How many were counted.
    pub counted: usize,
    /// Each of them.
    pub rows: Vec<ToldRow>,
    /// What was typed, if some of it was not counted.
    pub unsent: Option<Prose>,
}

/// What became of one vote.
#[derive(Clone, Debug)]
pub struct ToldRow {
    /// The review's page.
    pub url: String,
    /// The change in words.
    pub headline: Headline,
    /// Its thread.
    pub thread: Line,
    /// In a word.
    pub word: &'static str,
    /// How it is meant.
    pub tone: Tone,
    /// What happened.
    pub words: String,
    /// Who decided it, if somebody did.
    pub by: Vec<Line>,
    /// When it ended, if it did.
    pub at: Option<Moment>,
}

impl ToldPage {
    /// The heading.
    pub fn title(&self) -> String {
        match (self.counted, self.rows.len()) {
            (1, 1) => "Your vote is counted".to_owned(),
            (counted, all) if counted == all => format!("All {all} votes are counted"),
            (0, _) => "None of your votes was counted".to_owned(),
            (counted, all) => format!("{counted} of your {all} votes are counted"),
        }
    }
}
