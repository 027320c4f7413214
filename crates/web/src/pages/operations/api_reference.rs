//! `/docs`: the API reference, without sign-in, if the configuration enables it.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template as _;
use countersign_service::error::Error;

use super::api_reference_view::{REFERENCE, ReferencePage};
use crate::pages::shared::error_page::PageError;
use crate::pages::shared::format::html;
use crate::pages::shared::layout::PageLayout;
use crate::state::{Capability, EdgeConfig};

/// Shows the reference. The page needs no session because it discloses only the version of the gateway.
pub async fn show(request: HttpRequest, edge: Capability<EdgeConfig>) -> Result<HttpResponse, PageError> {
    // The page needs no session, so only the configuration decides whether it exists.
    if !edge.docs {
        return Err(PageError::of(&request, Error::NotFound("page")));
    }
    Ok(html(StatusCode::OK, ReferencePage { shell: PageLayout::anonymous(), told: &REFERENCE }.render()))
}
