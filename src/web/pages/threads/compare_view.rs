//! Two versions of a thread beside each other.

use askama::Template;

use crate::web::pages::shared::layout::Shell;
use crate::web::pages::shared::proof_rows::Row;
use crate::web::pages::shared::safe_text::Line;

/// `GET /threads/{thread}/compare`.
#[derive(Template, Clone, Debug)]
#[template(path = "compare.html")]
pub struct ComparePage {
    /// The frame.
    pub shell: Shell,
    /// The thread.
    pub thread: Line,
    /// What the host calls it.
    pub title: Option<Line>,
    /// The thread's last version.
    pub head: u64,
    /// The one.
    pub from: u64,
    /// The other.
    pub to: u64,
    /// What differs.
    pub rows: Vec<Row>,
    /// How many more differ than are listed.
    pub more: usize,
}
