//! View of the list of imported episodes.

use askama::Template;

use super::episode_view::StatusBadge;
use crate::pages::shared::layout::{PageLayout, TimestampView};
use crate::pages::shared::safe_text::SafeLine;

/// `GET /imports`.
#[derive(Template, Clone, Debug)]
#[template(path = "imports.html")]
pub struct ImportsPage {
    pub shell: PageLayout,
    pub rows: Vec<ImportRow>,
    pub older_url: Option<String>,
}

#[derive(Clone, Debug)]
pub struct ImportRow {
    pub url: String,
    pub task: SafeLine,
    pub episode: SafeLine,
    /// Signer at the time of the import.
    pub vouched: &'static str,
    pub status: StatusBadge,
    pub at: TimestampView,
}
