//! `GET /threads/{thread}/compare`: compares two versions of a thread.

use actix_web::web;
use countersign_domain::primitives::id::ThreadId;
use countersign_service::error::{Error, Result};
use countersign_service::threads::Threads;
use serde::Deserialize;

use super::compare_view::ComparePage;
use crate::pages::shared::diff_rows::rows_of;
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

/// Limit of listed differences, because two states can differ in ten thousand leaves.
const ROWS_MAX: usize = 1_000;

/// The two versions. The default is the head and the version before it.
#[derive(Deserialize)]
pub struct CompareQuery {
    from: Option<u64>,
    to: Option<u64>,
}

/// `GET /threads/{thread}/compare`.
pub async fn show(
    threads: Capability<Threads>,
    visitor: Visitor,
    thread: web::Path<String>,
    two: web::Query<CompareQuery>,
) -> Result<ComparePage> {
    let id = ThreadId::try_from(thread.as_str()).map_err(|_| Error::NotFound("thread"))?;
    let (from, to) = match (two.from, two.to) {
        (Some(from), Some(to)) => (from, to),
        (from, to) => {
            let head = threads.overview(&id).await?.thread.head.version;
            let to = to.unwrap_or(head);
            // Without a choice, the page compares the version with the one before, which is the usual question.
            (from.unwrap_or(to.saturating_sub(1)), to)
        }
    };
    let compared = threads.compare(&id, from, to, &visitor.account().into()).await?;
    let mut rows = rows_of(&compared.differing)?.changed;
    // A value that was set again to the same one is no difference between two versions.
    rows.retain(|it| !it.is_set_again());
    let more = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    Ok(ComparePage {
        shell: visitor.shell(None).await?,
        thread: SafeLine::new(id.as_str()),
        title: compared.thread.context.title.as_deref().map(SafeLine::new),
        head: compared.thread.head.version,
        from,
        to,
        rows,
        more,
    })
}
