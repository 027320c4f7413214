//! The page that compares two versions of a thread.

use askama::Template;

use crate::pages::shared::layout::PageLayout;
use crate::pages::shared::proof_rows::OpeningRow;
use crate::pages::shared::safe_text::SafeLine;

/// `GET /threads/{thread}/compare`.
#[derive(Template, Clone, Debug)]
#[template(path = "compare.html")]
pub struct ComparePage {
    pub shell: PageLayout,
    pub thread: SafeLine,
    pub title: Option<SafeLine>,
    pub head: u64,
    pub from: u64,
    pub to: u64,
    pub rows: Vec<OpeningRow>,
    /// Number of differences beyond the listed ones.
    pub more: usize,
}
