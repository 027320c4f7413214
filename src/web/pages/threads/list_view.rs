//! Threads, to be looked for.

use askama::Template;

use super::thread_view::ThreadStatusView;
use crate::web::pages::shared::layout::{PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /threads`.
#[derive(Template, Clone, Debug)]
#[template(path = "threads.html")]
pub struct ThreadsPage {
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
    None,
    Some,
}

/// One of several, in a form.
#[derive(Clone, Debug)]
pub struct SelectOption {
    pub value: String,
    pub label: SafeLine,
    pub chosen: SelectOptionState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SelectOptionState {
    Yes,
    No,
}

impl SelectOption {
    /// A choice; `now` is what was chosen.
    pub fn new(value: &str, label: &str, now: &str) -> Self {
        let chosen = if value == now { SelectOptionState::Yes } else { SelectOptionState::No };
        Self { value: value.to_owned(), label: SafeLine::new(label), chosen }
    }

    pub fn is_chosen(&self) -> bool {
        self.chosen == SelectOptionState::Yes
    }
}

#[derive(Clone, Debug)]
pub struct ThreadRow {
    pub url: String,
    pub name: SafeLine,
    pub title: Option<SafeLine>,
    pub flow: SafeLine,
    pub on_behalf_of: Option<SafeLine>,
    pub status: ThreadStatusView,
    pub version: u64,
    pub since: TimestampView,
}
