//! The signed-in visitor of a page. Without a session, the browser is redirected to sign-in and then back.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::Method;
use actix_web::{FromRequest, HttpRequest};
use countersign_domain::chain::hash::Digest;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::VoteRejected;
use countersign_service::error::{Error, Result};
use countersign_service::inbox::Inbox;
use countersign_service::inbox::list::WaitingCount;
use countersign_service::log::Log;
use countersign_service::platform::core::Core;

use super::error_page::PageError;
use super::form_nonce::{Nonce, NonceBinding};
use super::layout::{FlashNotice, PageLayout, SignedInView};
use super::nav::Navigation;
use super::return_path::LocalPath;
use super::safe_text::SafeLine;
use crate::auth::extractors::Person;
use crate::auth::permissions;
use crate::state::{Capability, FromState as _};

/// Limit of the number in the title. More reviews need no exact number.
const WAITING_MAX: u32 = 100;

/// A signed-in person who may open this page.
#[derive(Clone, Debug)]
pub struct Visitor(pub Person, PageVisit);

/// The requested page, and the capabilities behind the methods of the visitor.
#[derive(Clone, Debug)]
struct PageVisit {
    path: String,
    /// Log position before the page was read. Later events may be missing on the page.
    reach: u64,
    core: Capability<Core>,
    inbox: Capability<Inbox>,
}

impl FromRequest for Visitor {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (person, request) = (Person::from_request(request, payload), request.clone());
        Box::pin(async move {
            match person.await {
                Ok(person) => {
                    // The log position is read before the page's data, so that the live stream misses no event in
                    // between.
                    let reach = Capability::<Log>::of(&request).log_end().await;
                    let reach = reach.map_err(|error| PageError::of(&request, error))?;
                    let visit = PageVisit {
                        path: request.path().to_owned(),
                        reach,
                        core: Capability::of(&request),
                        inbox: Capability::of(&request),
                    };
                    Ok(Self(person, visit))
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

    /// Returns the time by the gateway's clock.
    pub fn now(&self) -> Timestamp {
        self.1.core.now()
    }

    /// Returns the base URL under which people reach the gateway.
    pub fn public_url(&self) -> &str {
        self.1.core.public_url()
    }

    /// Makes a nonce for a form of this session. `page` is the unique name of the form's page.
    pub fn nonce(&self, page: &str, digest: Digest, stage: u32) -> Result<String> {
        let nonce = Nonce::new(self.1.core.keys()?.row(), &self.binding(page, digest, stage));
        Ok(nonce.as_str().to_owned())
    }

    /// Reads the nonce of a sent form. Returns an error unless the gateway made it for this session, page, digest and
    /// stage.
    pub fn read_nonce(&self, page: &str, digest: Digest, stage: u32, text: &str) -> Result<String> {
        let nonce = Nonce::read(self.1.core.keys()?.row(), &self.binding(page, digest, stage), text);
        Ok(nonce.ok_or(VoteRejected::NonceUsed)?.as_str().to_owned())
    }

    fn binding<'a>(&'a self, page: &'a str, digest: Digest, stage: u32) -> NonceBinding<'a> {
        NonceBinding { session: &self.0.signed_in.session.record.id, page, digest, stage }
    }

    /// Builds the frame of a page, with the number of waiting reviews.
    pub async fn shell(&self, notice: Option<FlashNotice>) -> Result<PageLayout> {
        let waiting = self.1.inbox.count_waiting(self.account(), WAITING_MAX).await?;
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
