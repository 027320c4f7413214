//! `/docs`: the reference of the API, for whoever reaches the gateway, where the configuration shows it.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template as _;

use super::failure::Failure;
use super::parts::html;
use super::view::reference::{REFERENCE, ReferencePage};
use super::view::shell::Shell;
use crate::service::error::Error;
use crate::web::app::App;

/// The page. It asks nobody who they are: it tells nothing of this gateway but its version.
pub async fn show(request: HttpRequest, app: Data<App>) -> Result<HttpResponse, Failure> {
    if !app.edge.docs {
        return Err(Failure::of(&request, Error::NotFound("page")));
    }
    Ok(html(StatusCode::OK, ReferencePage { shell: Shell::anonymous(), told: &REFERENCE }.render()))
}
