//! A person who is signed in, on a page. Whoever is not is led to sign in, and back.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::Method;
use actix_web::{FromRequest, HttpRequest, web};

use super::error_page::PageError;
use super::layout::{FlashNotice, PageLayout, SignedInView};
use super::nav::Navigation;
use super::return_path::LocalPath;
use super::safe_text::SafeLine;
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::inbox::WaitingCount;
use crate::web::auth::extractors::Person;
use crate::web::auth::permissions;
use crate::web::state::AppState;

/// What a title counts to; more than anybody decides in a sitting.
const WAITING_MAX: u32 = 100;

/// A person who is signed in and may open this page, and where they stand.
#[derive(Clone, Debug)]
pub struct Visitor(pub Person, PageVisit);

/// What is asked for, and when.
#[derive(Clone, Debug)]
struct PageVisit {
    path: String,
    /// How far the log reached before anything of the page was read: what comes after may not be on it.
    reach: u64,
}

impl FromRequest for Visitor {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (person, request) = (Person::from_request(request, payload), request.clone());
        Box::pin(async move {
            match person.await {
                Ok(person) => {
                    let app =
                        request.app_data::<web::Data<AppState>>().expect("the server gives every handler the app");
                    let reach = app.service.log_end().await.map_err(|error| PageError::of(&request, error))?;
                    Ok(Self(person, PageVisit { path: request.path().to_owned(), reach }))
                }
                Err(problem) if matches!(problem.error, Error::Unauthenticated) => {
                    Err(PageError::SignInFirst(asked(&request)))
                }
                Err(problem) => Err(PageError::told(&problem)),
            }
        })
    }
}

/// Where to go on after signing in: to the page, or to the one whose form was sent.
fn asked(request: &HttpRequest) -> LocalPath {
    if request.method() == Method::GET {
        return LocalPath::of(request.uri().path_and_query().map_or("/", |it| it.as_str()));
    }
    // The nearest page above the form's address.
    let mut path = request.path();
    while let Some((above, _)) = path.rsplit_once('/') {
        if permissions::is_page(path) {
            return LocalPath::of(path);
        }
        path = above;
    }
    LocalPath::inbox()
}

impl Visitor {
    pub fn account(&self) -> &crate::domain::identity::account::Account {
        &self.0.signed_in.account.record
    }

    /// The frame of a page, with how much waits for them.
    pub async fn shell(&self, service: &Service, notice: Option<FlashNotice>) -> Result<PageLayout> {
        let waiting = service.count_waiting(self.account(), WAITING_MAX).await?;
        Ok(self.shell_beside(waiting, notice))
    }

    /// The same, of a page that knows how much waits for them.
    pub fn shell_beside(&self, waiting: WaitingCount, notice: Option<FlashNotice>) -> PageLayout {
        let account = self.account();
        let groups = account.groups.iter().map(|it| SafeLine::new(it.as_str())).collect();
        let csrf = self.0.csrf.shown();
        let navigation = Navigation::of(account.role, &self.1.path, waiting);
        let account = SignedInView {
            name: SafeLine::new(account.name.as_str()),
            groups,
            waiting,
            navigation,
            reach: self.1.reach,
            csrf,
        };
        PageLayout { account: Some(account), notice }
    }
}
