//! `/docs`: the API reference, without sign-in, if the configuration enables it.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template as _;
use countersign_service::error::{Error, Result};

use super::api_reference_view::{REFERENCE, ReferencePage};
use crate::pages::shared::format::html;
use crate::pages::shared::layout::PageLayout;
use crate::state::{Capability, EdgeConfig};

/// Shows the reference. The page needs no session because it discloses only the version of the gateway.
pub async fn show(edge: Capability<EdgeConfig>) -> Result<HttpResponse> {
    // The page needs no session, so only the configuration decides whether it exists.
    if !edge.docs {
        return Err(Error::NotFound("page"));
    }
    Ok(html(StatusCode::OK, ReferencePage { shell: PageLayout::anonymous(), told: &REFERENCE }.render()))
}
