//! Threads, to be looked for.

use askama::Template;

use super::thread_view::ThreadStatusView;
use crate::web::pages::shared::layout::{PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /threads`.
#[derive(Template, Clone, Debug)]
#[template(path = "threads.html")]
pub struct ThreadsPage {
    /// The frame.
    pub shell: PageLayout,
    /// The flows to choose from.
    pub flows: Vec<SelectOption>,
    /// The states to choose from.
    pub statuses: Vec<SelectOption>,
    /// What the names begin with, as typed.
    pub name: SafeLine,
    /// What the titles begin with, as typed.
    pub title: SafeLine,
    /// Whether anything was asked for.
    pub filter: FilterState,
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
pub enum FilterState {
    /// All are listed.
    None,
    /// Only what fits.
    Some,
}

/// One of several, in a form.
#[derive(Clone, Debug)]
pub struct SelectOption {
    /// What is sent.
    pub value: String,
    /// What is shown.
    pub label: SafeLine,
    /// Whether it is the one.
    pub chosen: SelectOptionState,
}

/// Whether it is the one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SelectOptionState {
    /// It is.
    Yes,
    /// It is not.
    No,
}

impl SelectOption {
    /// A choice; `now` is what was chosen.
    pub fn new(value: &str, label: &str, now: &str) -> Self {
        let chosen = if value == now { SelectOptionState::Yes } else { SelectOptionState::No };
        Self { value: value.to_owned(), label: SafeLine::new(label), chosen }
    }

    /// Whether it is the one.
    pub fn is_chosen(&self) -> bool {
        self.chosen == SelectOptionState::Yes
    }
}

/// A thread.
#[derive(Clone, Debug)]
pub struct ThreadRow {
    /// Its page.
    pub url: String,
    /// Its name.
    pub name: SafeLine,
    /// What the host calls it.
    pub title: Option<SafeLine>,
    /// Its flow.
    pub flow: SafeLine,
    /// For whom it works.
    pub on_behalf_of: Option<SafeLine>,
    /// Where it stands.
    pub status: ThreadStatusView,
    /// Its last version.
    pub version: u64,
    /// Since when it exists.
    pub since: TimestampView,
}
