//! `GET /imports`: runs that were imported, the last first.

use actix_web::web;
use serde::Deserialize;

use super::imports_view::{ImportRow, ImportsPage};
use super::run_parts::ended;
use crate::domain::episode::imported::{Imported, Voucher};
use crate::domain::primitives::time::Timestamp;
use crate::service::error::{Error, Result};
use crate::service::proposals::rejection_list::Older;
use crate::web::pages::shared::format::moment;
use crate::web::pages::shared::safe_text::Line;
use crate::web::pages::shared::visitor::Visitor;
use crate::web::state::App;

/// Runs on one page.
const ROWS_MAX: u32 = 30;

/// `?older=`: the page after that run.
#[derive(Deserialize)]
pub struct Where {
    older: Option<String>,
}

/// `GET /imports`.
pub async fn show(app: web::Data<App>, visitor: Visitor, query: web::Query<Where>) -> Result<ImportsPage> {
    page(&app, &visitor, query.older.as_deref()).await
}

async fn page(app: &App, visitor: &Visitor, older: Option<&str>) -> Result<ImportsPage> {
    let service = &app.service;
    let after = older.map(|token| Older::read(token).ok_or(Error::NotFound("page"))).transpose()?;
    let (runs, next) = service.imported_runs(after.as_ref(), ROWS_MAX).await?;
    let now = service.now();
    Ok(ImportsPage {
        shell: visitor.shell(service, None).await?,
        rows: runs.iter().map(|it| row(it, now)).collect(),
        older_url: next.map(|it| format!("/imports?older={}", it.token())),
    })
}

fn row(import: &Imported, now: Timestamp) -> ImportRow {
    ImportRow {
        url: format!("/threads/{}/episode", import.id),
        task: Line::new(import.task.as_str()),
        episode: Line::new(import.episode_id.as_str()),
        vouched: match import.voucher {
            Voucher::Nobody {} => "not signed",
            Voucher::Unchecked { .. } => "signed, by a key that nobody checked",
            Voucher::Gateway { .. } => "signed by this gateway",
            Voucher::Other { .. } => "signed by another gateway",
        },
        status: ended(import.status),
        at: moment(import.at, now),
    }
}
