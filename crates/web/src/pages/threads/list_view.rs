//! The list of threads.

use askama::Template;

use super::thread_view::ThreadStatusView;
use crate::pages::shared::layout::{PageLayout, TimestampView};
use crate::pages::shared::safe_text::SafeLine;

/// `GET /threads`.
#[derive(Template, Clone, Debug)]
#[template(path = "threads.html")]
pub struct ThreadsPage {
    pub shell: PageLayout,
    pub flows: Vec<SelectOption>,
    pub statuses: Vec<SelectOption>,
    /// Typed start of the name.
    pub name: SafeLine,
    /// Typed start of the title.
    pub title: SafeLine,
    /// Whether a filter is set.
    pub filter: FilterState,
    pub rows: Vec<ThreadRow>,
    /// Number of searched threads, if a later page can have more matches.
    pub looked: Option<usize>,
    pub more_url: Option<String>,
    /// Error of an invalid filter.
    pub problem: Option<String>,
}

/// Whether a filter is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilterState {
    None,
    Some,
}

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
    /// Builds an option. `now` is the selected value.
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
