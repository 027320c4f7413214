//! Runs that were imported.

use askama::Template;

use super::episode_view::StatusBadge;
use crate::web::pages::shared::layout::{PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /imports`.
#[derive(Template, Clone, Debug)]
#[template(path = "imports.html")]
pub struct ImportsPage {
    /// The frame.
    pub shell: PageLayout,
    /// The runs.
    pub rows: Vec<ImportRow>,
    /// The next page, if there is one.
    pub older_url: Option<String>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct ImportRow {
    /// Its page.
    pub url: String,
    /// What it was for.
    pub task: SafeLine,
    /// What it calls itself.
    pub episode: SafeLine,
    /// Who vouched for it when it was imported.
    pub vouched: &'static str,
    /// How it ended.
    pub status: StatusBadge,
    /// When it was imported.
    pub at: TimestampView,
}
