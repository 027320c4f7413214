//! `GET /rejections`: proposals that a policy rejected, newest first.

use actix_web::web;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::transition::Rejection;
use countersign_domain::writes::write::ResultError;
use countersign_service::error::{Error, Result};
use countersign_service::proposals::Proposals;
use countersign_service::proposals::rejection_list::OlderCursor;
use serde::Deserialize;

use super::rejections_view::{RejectedRow, RejectionsPage};
use crate::pages::shared::format::{error_row, moment};
use crate::pages::shared::layout::DigestText;
use crate::pages::shared::safe_text::{SafeJson, SafeLine};
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

const ROWS_MAX: u32 = 25;

/// Maximum number of violations in one row.
const ERRORS_SHOWN: usize = 6;

/// `?older=`: the cursor of the next page.
#[derive(Deserialize)]
pub struct RejectionsQuery {
    older: Option<String>,
}

/// `GET /rejections`.
pub async fn show(
    proposals: Capability<Proposals>,
    visitor: Visitor,
    query: web::Query<RejectionsQuery>,
) -> Result<RejectionsPage> {
    let after =
        query.older.as_deref().map(|token| OlderCursor::read(token).ok_or(Error::NotFound("page"))).transpose()?;
    let (rejections, next) = proposals.rejections(&visitor.account().into(), after.as_ref(), ROWS_MAX).await?;
    let now = visitor.now();
    Ok(RejectionsPage {
        shell: visitor.shell(None).await?,
        rows: rejections.iter().map(|it| row(it, now)).collect(),
        older_url: next.map(|it| format!("/rejections?older={}", it.token())),
    })
}

fn row(rejection: &Rejection, now: Timestamp) -> RejectedRow {
    let errors = rejection.errors_shown();
    let error = |it: &ResultError| error_row(&it.code, &it.pointer, &it.detail);
    RejectedRow {
        node: SafeLine::new(rejection.node.as_str()),
        flow: SafeLine::new(rejection.flow.as_str()),
        thread: SafeLine::new(rejection.thread.as_str()),
        thread_url: format!("/threads/{}", rejection.thread),
        principal: SafeLine::new(rejection.principal.as_str()),
        errors: errors.iter().take(ERRORS_SHOWN).map(error).collect(),
        unfillable: rejection.unfillable.iter().map(|it| SafeLine::new(sentence(&it.to_string()))).collect(),
        more_errors: errors.len().saturating_sub(ERRORS_SHOWN),
        patch: DigestText::new(rejection.patch.to_string()),
        excerpt: SafeJson::new(rejection.excerpt.as_str()),
        at: moment(rejection.at, now),
    }
}

/// Returns a text that begins with a capital letter and ends with a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
