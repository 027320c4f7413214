//! Turns a handler that returns a view or a service error into a handler that returns a page.

use actix_web::http::StatusCode;
use actix_web::{Handler, HttpRequest, HttpResponse};
use askama::Template;
use countersign_service::error::Result as Done;
use futures_util::future::LocalBoxFuture;

use super::error_page::PageError;
use super::format::html;

/// A handler whose views and errors become pages.
#[derive(Clone, Copy, Debug)]
pub struct PageResponder<F>(pub F);

impl<F, Args, P> Handler<(HttpRequest, Args)> for PageResponder<F>
where
    F: Handler<Args, Output = Done<P>>,
    F::Future: 'static,
    P: Template + 'static,
{
    type Output = Result<HttpResponse, PageError>;
    type Future = LocalBoxFuture<'static, Self::Output>;

    fn call(&self, args: (HttpRequest, Args)) -> Self::Future {
        let (request, args) = args;
        let done = self.0.call(args);
        Box::pin(async move {
            // The error page shows the ID of the request, so the request is stored beside the arguments.
            let page = done.await.map_err(|error| PageError::of(&request, error))?;
            Ok(html(StatusCode::OK, page.render()))
        })
    }
}
