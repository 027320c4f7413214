//! The signed-in visitor of a page. Without a session, the browser is redirected to sign-in and then back.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::Method;
use actix_web::{FromRequest, HttpRequest, web};
use countersign_service::Service;
use countersign_service::error::{Error, Result};
use countersign_service::inbox::list::WaitingCount;

use super::error_page::PageError;
use super::layout::{FlashNotice, PageLayout, SignedInView};
use super::nav::Navigation;
use super::return_path::LocalPath;
use super::safe_text::SafeLine;
use crate::auth::extractors::Person;
use crate::auth::permissions;
use crate::state::AppState;

/// Limit of the number in the title. More reviews need no exact number.
const WAITING_MAX: u32 = 100;

/// A signed-in person who may open this page.
#[derive(Clone, Debug)]
pub struct Visitor(pub Person, PageVisit);

/// The requested page and the time of the visit.
#[derive(Clone, Debug)]
struct PageVisit {
    path: String,
    /// Log position before the page was read. Later events may be missing on the page.
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
                    // The log position is read before the page's data, so that the live stream misses no event in
                    // between.
                    let reach = app.service.log.log_end().await.map_err(|error| PageError::of(&request, error))?;
                    Ok(Self(person, PageVisit { path: request.path().to_owned(), reach }))
                }
                // A person without a session can sign in and come back, so this is a redirect and not an error page.
                Err(problem) if matches!(problem.error, Error::Unauthenticated) => {
                    Err(PageError::SignInFirst(asked(&request)))
                }
                Err(problem) => Err(PageError::told(&problem)),
            }
        })
    }
}

/// Returns the page after sign-in: the requested page, or the page of the sent form.
fn asked(request: &HttpRequest) -> LocalPath {
    if request.method() == Method::GET {
        return LocalPath::of(request.uri().path_and_query().map_or("/", |it| it.as_str()));
    }
    // A form's own address has no page, so the nearest page above it is used.
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
    pub fn account(&self) -> &countersign_domain::identity::account::Account {
        &self.0.signed_in.account.record
    }

    /// Builds the frame of a page, with the number of waiting reviews.
    pub async fn shell(&self, service: &Service, notice: Option<FlashNotice>) -> Result<PageLayout> {
        let waiting = service.inbox.count_waiting(self.account(), WAITING_MAX).await?;
        Ok(self.shell_beside(waiting, notice))
    }

    /// Builds the frame with a known number of waiting reviews.
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
