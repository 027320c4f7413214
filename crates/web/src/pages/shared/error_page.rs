//! Error pages: the event, its effect on the visitor's action, and the next step.

use std::fmt;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use askama::Template as _;
use countersign_domain::identity::oidc_identity::SignInRejected;
use countersign_service::error::{Error, ErrorKind};

use super::error_view::{ErrorAction, ErrorPage};
use super::format::html;
use super::layout::PageLayout;
use super::return_path::LocalPath;
use crate::api::{self, problem::Problem};

#[derive(Debug)]
pub enum PageError {
    /// No session. After sign-in, the browser continues at this path.
    SignInFirst(LocalPath),
    Page(Box<ErrorPage>),
}

impl PageError {
    /// Builds the page of an error. An internal error is logged here once.
    pub fn of(request: &HttpRequest, error: Error) -> Self {
        Self::told(&Problem::of(request, error))
    }

    /// Builds the page of an error that is already logged.
    pub fn told(problem: &Problem) -> Self {
        let words = words_of(&problem.error);
        Self::Page(Box::new(ErrorPage {
            // The error can be that the database or the session is unusable, so the page needs neither.
            shell: PageLayout::anonymous(),
            status: problem.status().as_u16(),
            happened: words.happened,
            kept: words.kept.to_owned(),
            action: words.action,
            request_id: problem.request_id().to_owned(),
        }))
    }

    /// Builds the page for an unreadable form or query.
    pub fn unreadable(request: &HttpRequest) -> Self {
        Self::of(request, unreadable_input())
    }
}

/// The error of an unreadable form or query.
pub fn unreadable_input() -> Error {
    Error::invalid("", "The form could not be read")
}

/// Answers an unknown address: an HTML page for browsers, a problem document for other clients.
pub async fn not_found(request: HttpRequest) -> HttpResponse {
    let accepts = request.headers().get(header::ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    // Browsers ask for HTML, and other clients expect a problem document.
    if accepts.contains("text/html") {
        PageError::of(&request, Error::NotFound("page")).error_response()
    } else {
        api::not_found(request).await
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SignInFirst(_) => f.write_str("sign in first"),
            Self::Page(page) => f.write_str(&page.happened),
        }
    }
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::SignInFirst(_) => StatusCode::SEE_OTHER,
            Self::Page(page) => StatusCode::from_u16(page.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    fn error_response(&self) -> HttpResponse {
        match self {
            // The browser must load the sign-in page by GET, even if a form was sent.
            Self::SignInFirst(next) => HttpResponse::SeeOther()
                .insert_header((header::LOCATION, next.sign_in()))
                .insert_header((header::CACHE_CONTROL, "no-store"))
                .finish(),
            Self::Page(page) => html(self.status_code(), page.render()),
        }
    }
}

struct ErrorText {
    happened: String,
    kept: &'static str,
    action: ErrorAction,
}

fn words(happened: impl Into<String>, kept: &'static str, action: ErrorAction) -> ErrorText {
    ErrorText { happened: happened.into(), kept, action }
}

fn inbox() -> ErrorAction {
    ErrorAction { words: "Go to the inbox".to_owned(), url: "/".to_owned() }
}

fn sign_in() -> ErrorAction {
    ErrorAction { words: "Sign in".to_owned(), url: "/sign-in".to_owned() }
}

const UNTOUCHED: &str = "Nothing was changed.";

/// Returns the texts for an error. A refusal without a text of its own shows its sentence.
fn words_of(error: &Error) -> ErrorText {
    let sentence = |text: String| {
        let mut rest = text.chars();
        rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or(text)
    };
    match error {
        // A used link looks like an unknown one, so the text names both causes.
        Error::NotFound("link") => words(
            "This link cannot be used",
            "The link was already used or has expired. A link works once. Ask for another link, or sign in.",
            sign_in(),
        ),
        Error::NotFound(what) => words(
            format!("There is no such {what}"),
            "The address may be wrong, or may belong to another gateway.",
            inbox(),
        ),
        Error::Unauthenticated | Error::Token(_) => words("You are not signed in", UNTOUCHED, sign_in()),
        Error::HeadMoved { .. } => words("The thread has changed since you opened the page", UNTOUCHED, inbox()),
        Error::ThreadHeld(review) => words(
            "The thread is waiting for approval",
            UNTOUCHED,
            ErrorAction { words: "Open the review".to_owned(), url: format!("/reviews/{review}") },
        ),
        Error::NotLetIn(reason) => not_let_in(*reason),
        Error::TooMany => words("Too many requests", "Nothing was changed. Wait a minute and try again.", inbox()),
        Error::Busy => words("The gateway is busy", "Nothing was changed. Try again in a moment.", inbox()),
        Error::ClockSkew => wrong_clock(),
        Error::Unavailable(_) => unknown_outcome("The gateway's database is unavailable"),
        _ if error.outcome_is_unknown() => unknown_outcome("The gateway's database failed"),
        Error::Erased => erased(),
        Error::Archive(_) | Error::NoArchives => no_archive(),
        Error::Broken(_) => broken(),
        _ if error.kind() == ErrorKind::Failed => failed(),
        _ => words(sentence(error.to_string()), UNTOUCHED, inbox()),
    }
}

fn failed() -> ErrorText {
    words(
        "The gateway failed",
        "Nothing was changed. Try again. If the error persists, tell the operator of the gateway.",
        inbox(),
    )
}

fn wrong_clock() -> ErrorText {
    words(
        "The gateway's clock is wrong",
        "Nothing was changed. No decision is possible until the clock is correct. Tell the operator of the gateway.",
        inbox(),
    )
}

fn unknown_outcome(happened: &str) -> ErrorText {
    words(
        happened,
        "It is unknown whether your last action succeeded. Wait a moment and check before you repeat it. If the error \
         persists, ask an administrator.",
        inbox(),
    )
}

fn erased() -> ErrorText {
    words(
        "The values of this version are erased",
        "The policy limits how long values are stored. The signed statement and the later versions remain.",
        inbox(),
    )
}

fn no_archive() -> ErrorText {
    words(
        "An archive is not available",
        "Nothing was changed. The archive file with the values of this version is missing or was modified. Tell the \
         operator of the gateway.",
        inbox(),
    )
}

fn broken() -> ErrorText {
    words(
        "The stored data does not match its signature",
        "Nothing was changed. No decision or write is possible here until an administrator has investigated it. Tell \
         the operator of the gateway.",
        inbox(),
    )
}

/// Returns the texts for a rejected sign-in with an OpenID provider.
fn not_let_in(reason: SignInRejected) -> ErrorText {
    let (happened, helps) = match reason {
        SignInRejected::Refused => (
            "Your organisation did not sign you in",
            "You or your organisation refused the sign-in. You can try again.",
        ),
        SignInRejected::ProviderDown => (
            "Your organisation's sign-in is not available",
            "Nothing was changed. Try again in a minute. If the error persists, tell the operator of the gateway.",
        ),
        SignInRejected::UnknownState => (
            "This sign-in is no longer valid",
            "It took longer than ten minutes, was already used, or was started in another browser. Start again.",
        ),
        SignInRejected::WrongProvider => (
            "The response came from another identity provider",
            "Nothing was changed. Start again on the sign-in page and do not follow links to sign in. If the error \
             persists, tell the operator of the gateway.",
        ),
        SignInRejected::BadSignature => (
            "The signature of your organisation's sign-in is not valid",
            "Nothing was changed. Try again. If the error persists, tell the operator of the gateway.",
        ),
        SignInRejected::NotForUs => (
            "The sign-in of your organisation is for another application",
            "Nothing was changed. Start again. If the error persists, tell the operator of the gateway.",
        ),
        SignInRejected::WrongTime => (
            "The sign-in of your organisation has a wrong time",
            "Nothing was changed. The clock of the identity provider or of this gateway is wrong by more than a \
             minute. Tell the operator of the gateway.",
        ),
        SignInRejected::NotMapped => (
            "You have no access to this gateway",
            "Your organisation signed you in, but none of your groups has access to this gateway. Ask an \
             administrator.",
        ),
        SignInRejected::UnusableName => (
            "Your name cannot be used here",
            "Your organisation sent no name, or a name with characters other than letters, digits and . _ - @. Ask an \
             administrator.",
        ),
        SignInRejected::NameTaken => (
            "Your name is taken here",
            "Another account, a group or the owner of a token has this name or a name that looks like it. Ask an \
             administrator.",
        ),
        SignInRejected::Disabled => ("Your account is disabled here", "Ask an administrator."),
    };
    words(happened, helps, ErrorAction { words: "Back to the sign-in page".to_owned(), url: "/sign-in".to_owned() })
}
