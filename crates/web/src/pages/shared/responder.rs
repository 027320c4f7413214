//! Turns a handler that fails with a service error into a handler that answers with a page.

use actix_web::http::StatusCode;
use actix_web::{Handler, HttpRequest, HttpResponse};
use askama::Template;
use countersign_service::error::Result as Done;
use futures_util::future::LocalBoxFuture;

use super::error_page::PageError;
use super::flash::refusal;
use super::format::html;
use super::layout::FlashNotice;

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

/// A handler whose errors become error pages. It makes its responses itself, such as redirects and downloads.
#[derive(Clone, Copy, Debug)]
pub struct ErrorPageResponder<F>(pub F);

impl<F, Args> Handler<(HttpRequest, Args)> for ErrorPageResponder<F>
where
    F: Handler<Args, Output = Done<HttpResponse>>,
    F::Future: 'static,
{
    type Output = Result<HttpResponse, PageError>;
    type Future = LocalBoxFuture<'static, Self::Output>;

    fn call(&self, args: (HttpRequest, Args)) -> Self::Future {
        let (request, args) = args;
        let done = self.0.call(args);
        Box::pin(async move { done.await.map_err(|error| PageError::of(&request, error)) })
    }
}

/// Returns the response to a form. If the gateway refuses the form, the response is the form's page with the reason.
pub async fn or_page_again<P: Template>(
    done: Done<HttpResponse>,
    page: impl AsyncFnOnce(FlashNotice) -> Done<P>,
) -> Done<HttpResponse> {
    match done {
        Ok(response) => Ok(response),
        Err(error) => Ok(html(StatusCode::CONFLICT, page(refusal(error)?).await?.render())),
    }
}
