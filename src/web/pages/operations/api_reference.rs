//! `/docs`: the reference of the API, for whoever reaches the gateway, where the configuration shows it.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template as _;

use super::api_reference_view::{REFERENCE, ReferencePage};
use crate::service::error::Error;
use crate::web::pages::shared::error_page::PageError;
use crate::web::pages::shared::format::html;
use crate::web::pages::shared::layout::PageLayout;
use crate::web::state::AppState;

/// The page. It asks nobody who they are: it tells nothing of this gateway but its version.
pub async fn show(request: HttpRequest, app: Data<AppState>) -> Result<HttpResponse, PageError> {
    if !app.edge.docs {
        return Err(PageError::of(&request, Error::NotFound("page")));
    }
    Ok(html(StatusCode::OK, ReferencePage { shell: PageLayout::anonymous(), told: &REFERENCE }.render()))
}
