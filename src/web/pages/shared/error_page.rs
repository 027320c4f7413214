//! What went wrong, as a page for a person: what happened, that nothing was lost, and what to do.

use std::fmt;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use askama::Template as _;

use super::error_view::{ErrorAction, ErrorPage};
use super::format::html;
use super::layout::PageLayout;
use super::return_path::LocalPath;
use crate::domain::identity::oidc_identity::SignInRejected;
use crate::service::error::Error;
use crate::web::api::{self, problem::Problem};

/// Why a page is not the one that was asked for.
#[derive(Debug)]
pub enum PageError {
    /// Nobody is signed in: sign in, and go on to there.
    SignInFirst(LocalPath),
    Page(Box<ErrorPage>),
}

impl PageError {
    /// The page of an error, which is logged here once if it is the gateway's own.
    pub fn of(request: &HttpRequest, error: Error) -> Self {
        Self::told(&Problem::of(request, error))
    }

    /// The page of an error that was logged already.
    pub fn told(problem: &Problem) -> Self {
        let words = words_of(&problem.error);
        Self::Page(Box::new(ErrorPage {
            shell: PageLayout::anonymous(),
            status: problem.status().as_u16(),
            happened: words.happened,
            kept: words.kept.to_owned(),
            action: words.action,
            request_id: problem.request_id().to_owned(),
        }))
    }

    /// The page for a form or a query that cannot be read.
    pub fn unreadable(request: &HttpRequest) -> Self {
        Self::of(request, Error::invalid("", "The form could not be read"))
    }
}

/// There is nothing at this address: a page for people, a problem for machines.
pub async fn not_found(request: HttpRequest) -> HttpResponse {
    let accepts = request.headers().get(header::ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
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

/// A new error does not compile until a person is told what it means.
fn words_of(error: &Error) -> ErrorText {
    let sentence = |text: String| {
        let mut rest = text.chars();
        rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or(text)
    };
    match error {
        Error::NotFound("link") => words(
            "This link cannot be used",
            "It was used before, or its time is over. Links work once: ask for another, or sign in.",
            sign_in(),
        ),
        Error::NotFound(what) => words(
            format!("There is no such {what}"),
            "The address may be mistyped, or it is of another gateway.",
            inbox(),
        ),
        Error::Forbidden(why) => words(sentence((*why).to_owned()), UNTOUCHED, inbox()),
        Error::NotOfRole { .. } => words(sentence(error.to_string()), UNTOUCHED, inbox()),
        Error::Unauthenticated => words("You are not signed in", UNTOUCHED, sign_in()),
        Error::Invalid { detail, .. } => words(sentence(detail.clone()), UNTOUCHED, inbox()),
        Error::HeadMoved { .. } => words("The thread has moved on meanwhile", UNTOUCHED, inbox()),
        Error::ThreadHeld(review) => words(
            "The thread waits for a decision",
            UNTOUCHED,
            ErrorAction { words: "Open the review".to_owned(), url: format!("/reviews/{review}") },
        ),
        Error::Json(_)
        | Error::Rejected(_)
        | Error::StepReused { .. }
        | Error::Conflict { .. }
        | Error::NotSealed(_)
        | Error::Envelope(_)
        | Error::Policy(_)
        | Error::NotRepeated(_)
        | Error::WriteInProgress
        | Error::Halted
        | Error::Closed
        | Error::Imported
        | Error::Exists(_)
        | Error::WrongState(_)
        | Error::Expired
        | Error::Misdirected
        | Error::Vote(_)
        | Error::Passkey(_)
        | Error::NotTaken(_)
        | Error::Denied(_) => words(sentence(error.to_string()), UNTOUCHED, inbox()),
        Error::NotLetIn(reason) => not_let_in(*reason),
        Error::TooMany => words("That was too fast", "Nothing was changed. Wait a minute and try again.", inbox()),
        Error::Busy => words("The gateway is busy", "Nothing was changed. Try again in a moment.", inbox()),
        Error::ClockSkew => wrong_clock(),
        Error::Unavailable(_) => unknown_outcome("The gateway's database cannot be used now"),
        _ if error.outcome_is_unknown() => unknown_outcome("The gateway's database failed"),
        Error::Erased => erased(),
        Error::Archive(_) | Error::NoArchives => no_archive(),
        Error::Broken(_) => broken(),
        Error::Store(_) | Error::Unwritten(_) | Error::Copy(_) | Error::Mail(_) | Error::Keyring(_) => failed(),
    }
}

fn failed() -> ErrorText {
    words(
        "The gateway failed",
        "Nothing was changed. Try again; if it stays so, tell whoever runs the gateway.",
        inbox(),
    )
}

fn wrong_clock() -> ErrorText {
    words(
        "The gateway's clock is wrong",
        "Nothing was changed, and nothing is decided until the clock is set right. Tell whoever runs the gateway.",
        inbox(),
    )
}

fn unknown_outcome(happened: &str) -> ErrorText {
    words(
        happened,
        "Your last action may or may not have been carried out. Wait a moment, look, and only then repeat it. If this lasts, \
         call an administrator.",
        inbox(),
    )
}

fn erased() -> ErrorText {
    words(
        "The values of this version are erased",
        "The policy says how long they are kept. What was signed of it stays, and the versions after it are there.",
        inbox(),
    )
}

fn no_archive() -> ErrorText {
    words(
        "An archive cannot be used",
        "Nothing was changed. The values of this version are in a file that is not there, or not as it was written. \
         Tell whoever runs the gateway.",
        inbox(),
    )
}

fn broken() -> ErrorText {
    words(
        "What is stored is not what was signed",
        "Nothing was changed, and nothing can be decided or written here until somebody has looked into it. \
         Tell whoever runs the gateway.",
        inbox(),
    )
}

/// Why a sign-in with an OpenID provider came to nothing, and what helps.
fn not_let_in(reason: SignInRejected) -> ErrorText {
    let (happened, helps) = match reason {
        SignInRejected::Refused => {
            ("Your organisation did not sign you in", "You, or it, said no. Nothing was changed; you can try again.")
        }
        SignInRejected::ProviderDown => (
            "Your organisation's sign-in does not answer",
            "Nothing was changed. Try again in a minute; if it stays so, tell whoever runs the gateway.",
        ),
        SignInRejected::UnknownState => (
            "This sign-in is not known here any more",
            "It took longer than ten minutes, was used already, or was begun in another browser. Begin again.",
        ),
        SignInRejected::WrongProvider => (
            "The answer came from another provider",
            "Nothing was changed. Begin again here, and do not follow links to sign in; if it stays so, tell whoever \
             runs the gateway.",
        ),
        SignInRejected::BadSignature => (
            "What your organisation says is not signed by it",
            "Nothing was changed. Try again; if it stays so, tell whoever runs the gateway.",
        ),
        SignInRejected::NotForUs => (
            "What your organisation says was not said to this gateway",
            "Nothing was changed. Begin again; if it stays so, tell whoever runs the gateway.",
        ),
        SignInRejected::WrongTime => (
            "What your organisation says is out of date",
            "Nothing was changed. Its clock, or this gateway's, is wrong by more than a minute: tell whoever runs them.",
        ),
        SignInRejected::NotMapped => (
            "You have no access to this gateway",
            "Your organisation knows you, and none of your groups there is let in here. Ask an administrator.",
        ),
        SignInRejected::UnusableName => (
            "Your name cannot be used here",
            "Your organisation gives none, or one with other characters than letters, digits and . _ - @. Ask an \
             administrator.",
        ),
        SignInRejected::NameTaken => (
            "Your name belongs to somebody else here",
            "There is an account of that name, or of one that looks like it, and it is not yours. Ask an administrator.",
        ),
        SignInRejected::Disabled => ("Your account is disabled here", "Ask an administrator."),
    };
    words(happened, helps, ErrorAction { words: "Back to the sign-in page".to_owned(), url: "/sign-in".to_owned() })
}
