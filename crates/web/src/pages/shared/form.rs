//! Extracts a form and checks that a page of this gateway sent it from the same browser (CSRF). A handler cannot read
//! the fields of a form in any other way, so every handler makes the check.

use std::future::ready;

use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::{FromRequest, HttpRequest, web};
use countersign_service::error::Error;
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use serde::de::{DeserializeOwned, IgnoredAny};
use url::form_urlencoded;

use super::anonymous_session::AnonymousSession;
use super::error_page::PageError;
use super::visitor::Visitor;
use crate::auth::csrf::CsrfToken;
use crate::state::{Capability, EdgeConfig, FromState as _};

const CSRF: &str = "csrf";

/// The fields of a form and its sender.
pub struct SubmittedForm<T, B> {
    fields: T,
    sender: B,
}

/// A form of a signed-in visitor who is allowed to send it.
pub type SignedInForm<T> = SubmittedForm<T, Visitor>;

/// A form without fields.
pub type EmptyForm = SignedInForm<IgnoredAny>;

/// A form before sign-in.
pub type AnonymousForm<T> = SubmittedForm<T, AnonymousSession>;

/// The sender of a form.
pub trait FormSender: Sized + 'static {
    /// Identifies the sender from the request without its body.
    fn of(request: HttpRequest) -> LocalBoxFuture<'static, Result<Self, PageError>>;

    /// Returns the CSRF token of the sender's forms.
    fn csrf(&self) -> CsrfToken;
}

impl FormSender for Visitor {
    fn of(request: HttpRequest) -> LocalBoxFuture<'static, Result<Self, PageError>> {
        Self::extract(&request).boxed_local()
    }

    fn csrf(&self) -> CsrfToken {
        self.0.csrf.clone()
    }
}

impl FormSender for AnonymousSession {
    fn of(request: HttpRequest) -> LocalBoxFuture<'static, Result<Self, PageError>> {
        let older = Error::Forbidden("this form is older than the cookies of your browser; open the page again");
        ready(Self::shown(&edge(&request), &request).ok_or_else(|| PageError::of(&request, older))).boxed_local()
    }

    fn csrf(&self) -> CsrfToken {
        Self::csrf(self)
    }
}

impl<T, B> SubmittedForm<T, B> {
    pub fn parts(self) -> (B, T) {
        (self.sender, self.fields)
    }
}

impl<T: DeserializeOwned + 'static, B: FormSender> FromRequest for SubmittedForm<T, B> {
    type Error = actix_web::Error;
    type Future = LocalBoxFuture<'static, Result<Self, Self::Error>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, sent) = (request.clone(), web::Form::<Vec<(String, String)>>::from_request(request, payload));
        Box::pin(async move {
            // The sender is checked before the body is awaited, so that an anonymous client occupies no memory.
            let mut sender = B::of(request.clone()).await?;
            let heard = edge(&request).hearing.read_body(None, sent).await;
            let heard = heard.map_err(|error| PageError::of(&request, error))?;
            if heard.late {
                // A slow body can outlive the session, so the sender is checked again.
                sender = B::of(request.clone()).await?;
            }
            let mut sent = heard.sent?.into_inner();
            check(&request, &sender.csrf(), &sent).map_err(|error| PageError::of(&request, error))?;
            // Handlers do not know this field, and some collect all fields by name.
            sent.retain(|it| it.0 != CSRF);
            let text = form_urlencoded::Serializer::new(String::new()).extend_pairs(&sent).finish();
            let fields = web::Query::<T>::from_query(&text).map_err(|_| PageError::unreadable(&request))?;
            Ok(Self { fields: fields.into_inner(), sender })
        })
    }
}

/// Checks that the form has the expected token exactly once, and that a page of this gateway sent it.
fn check(request: &HttpRequest, expected: &CsrfToken, sent: &[(String, String)]) -> Result<(), Error> {
    let mut given = sent.iter().filter(|it| it.0 == CSRF).map(|it| it.1.as_str());
    // A repeated field is ambiguous, so it counts as no token.
    let given = given.next().filter(|_| given.next().is_none()).unwrap_or_default();
    let origin = request.headers().get(header::ORIGIN).and_then(|it| it.to_str().ok());
    let ours = match origin {
        // Our pages send no referrer, so browsers hide the origin of their own forms and name the site instead.
        Some("null") | None => request.headers().get("sec-fetch-site").is_some_and(|it| it == "same-origin"),
        // The origin is checked beside the token, so that a leaked token alone is not enough.
        Some(origin) => origin == edge(request).origin,
    };
    if ours && expected.is_shown_as(given) {
        Ok(())
    } else {
        Err(Error::Forbidden("this form is not from your session; open the page again"))
    }
}

fn edge(request: &HttpRequest) -> Capability<EdgeConfig> {
    Capability::of(request)
}
