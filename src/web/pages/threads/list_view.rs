//! Threads, to be looked for.

use askama::Template;

use super::thread_view::ThreadStatus;
use crate::web::pages::shared::layout::{Moment, Shell};
use crate::web::pages::shared::safe_text::Line;

/// `GET /threads`.
#[derive(Template, Clone, Debug)]
#[template(path = "threads.html")]
pub struct ThreadsPage {
    /// The frame.
    pub shell: Shell,
    /// The flows to choose from.
    pub flows: Vec<Choice>,
    /// The states to choose from.
    pub statuses: Vec<Choice>,
    /// What the names begin with, as typed.
    pub name: Line,
    /// What the titles begin with, as typed.
    pub title: Line,
    /// Whether anything was asked for.
    pub filter: Filter,
    /// What was found.
    pub rows: Vec<ThreadRow>,
    /// How many were looked at, where more might be found further on.
    pub looked: Option<usize>,
    /// The next page, if there is one.
    pub more_url: Option<String>,
    /// Why nothing was looked for.
    pub problem: Option<String>,
}

/// Whether anything was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filter {
    /// All are listed.
    None,
    /// Only what fits.
    Some,
}

/// One of several, in a form.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What is sent.
    pub value: String,
    /// What is shown.
    pub label: Line,
    /// Whether it is the one.
    pub chosen: Chosen,
}

/// Whether it is the one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chosen {
    /// It is.
    Yes,
    /// It is not.
    No,
}

impl Choice {
    /// A choice; `now` is what was chosen.
    pub fn new(value: &str, label: &str, now: &str) -> Self {
        let chosen = if value == now { Chosen::Yes } else { Chosen::No };
        Self { value: value.to_owned(), label: Line::new(label), chosen }
    }

    /// Whether it is the one.
    pub fn is_chosen(&self) -> bool {
        self.chosen == Chosen::Yes
    }
}

/// A thread.
#[derive(Clone, Debug)]
pub struct ThreadRow {
    /// Its page.
    pub url: String,
    /// Its name.
    pub name: Line,
    /// What the host calls it.
    pub title: Option<Line>,
    /// Its flow.
    pub flow: Line,
    /// For whom it works.
    pub on_behalf_of: Option<Line>,
    /// Where it stands.
    pub status: ThreadStatus,
    /// Its last version.
    pub version: u64,
    /// Since when it exists.
    pub since: Moment,
}
