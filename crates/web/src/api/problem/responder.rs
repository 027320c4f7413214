//! Converts errors of handlers to problem responses.

use actix_web::{Handler, HttpRequest, Responder};
use countersign_service::error::Result as Done;
use futures_util::future::LocalBoxFuture;

use super::Problem;

/// A handler whose errors become problem responses.
#[derive(Clone, Copy, Debug)]
pub struct ProblemResponder<F>(pub F);

impl<F, Args, R> Handler<(HttpRequest, Args)> for ProblemResponder<F>
where
    F: Handler<Args, Output = Done<R>>,
    F::Future: 'static,
    R: Responder + 'static,
{
    type Output = Result<R, Problem>;
    type Future = LocalBoxFuture<'static, Self::Output>;

    fn call(&self, args: (HttpRequest, Args)) -> Self::Future {
        // A problem contains the path and the ID of its request.
        let (request, args) = args;
        let done = self.0.call(args);
        Box::pin(async move { done.await.map_err(|error| Problem::of(&request, error)) })
    }
}
