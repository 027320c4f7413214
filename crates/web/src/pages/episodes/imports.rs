//! `GET /imports`: lists the imported episodes, newest first.

use actix_web::web;
use countersign_domain::episode::imported::{RunImport, RunSigner};
use countersign_domain::primitives::time::Timestamp;
use countersign_service::episodes::Episodes;
use countersign_service::error::{Error, Result};
use countersign_service::proposals::rejection_list::OlderCursor;
use serde::Deserialize;

use super::imports_view::{ImportRow, ImportsPage};
use super::run_parts::ended;
use crate::pages::shared::format::moment;
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

const ROWS_MAX: u32 = 30;

/// `?older=`: the cursor of the next page.
#[derive(Deserialize)]
pub struct ImportsQuery {
    older: Option<String>,
}

/// `GET /imports`.
pub async fn show(
    episodes: Capability<Episodes>,
    visitor: Visitor,
    query: web::Query<ImportsQuery>,
) -> Result<ImportsPage> {
    // A damaged cursor names no page, so it gets 404.
    let after =
        query.older.as_deref().map(|token| OlderCursor::read(token).ok_or(Error::NotFound("page"))).transpose()?;
    let (runs, next) = episodes.imported_runs(after.as_ref(), ROWS_MAX).await?;
    let now = visitor.now();
    Ok(ImportsPage {
        shell: visitor.shell(None).await?,
        rows: runs.iter().map(|it| row(it, now)).collect(),
        older_url: next.map(|it| format!("/imports?older={}", it.token())),
    })
}

fn row(import: &RunImport, now: Timestamp) -> ImportRow {
    ImportRow {
        url: format!("/threads/{}/episode", import.id),
        // An imported run was written elsewhere, so its text is sanitised.
        task: SafeLine::new(import.task.as_str()),
        episode: SafeLine::new(import.episode_id.as_str()),
        vouched: match import.voucher {
            RunSigner::Nobody {} => "not signed",
            RunSigner::Unchecked { .. } => "signed, signature not checked",
            RunSigner::Gateway { .. } => "signed by this gateway",
            RunSigner::Other { .. } => "signed by another gateway",
        },
        status: ended(import.status),
        at: moment(import.at, now),
    }
}
