//! Links that sign a person in and open a review. They work until the demo ends.
//!
//! A link leads to a server of the demo on localhost. For each visit, the server creates a one-time link of the gateway and
//! redirects to it. The gateway itself knows only one-time links, in the demo as everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::sync::Arc;

use actix_web::http::header;
use actix_web::{App, HttpResponse, HttpServer, web};
use countersign_adapters::random;
use countersign_domain::primitives::id::{AccountId, ReviewId};
use countersign_service::Service;
use countersign_service::error::Result;
use countersign_service::inbox::InboxFilter;
use countersign_service::inbox::list::{InboxItem, InboxPageSelection};

use super::{DemoSetup, HERE, HISTORY_FLOW};
use crate::cli::CliError;

/// More reviews of one person are not announced at once.
const REVIEWS_MAX: usize = 20;

/// A person of the demo, with the secret in the links.
struct DemoPerson {
    name: &'static str,
    account: AccountId,
    secret: String,
}

/// The links of all people.
pub(super) struct SignInLinks {
    service: Arc<Service>,
    /// The URL of the gateway.
    gateway: String,
    /// The URL of this server.
    base: String,
    people: Vec<DemoPerson>,
}

impl SignInLinks {
    /// Starts the server of the links.
    pub(super) fn start(
        service: &Arc<Service>,
        gateway: &str,
        people: &[(&'static str, AccountId)],
    ) -> std::result::Result<Arc<Self>, CliError> {
        let listener = TcpListener::bind((HERE, 0)).map_err(CliError::Runtime)?;
        let port = listener.local_addr().map_err(CliError::Runtime)?.port();
        let person = |(name, account): &(&'static str, AccountId)| DemoPerson {
            name,
            account: account.clone(),
            secret: random::uuid_v4().simple().to_string(),
        };
        let links = Arc::new(Self {
            service: Arc::clone(service),
            gateway: gateway.to_owned(),
            base: format!("http://localhost:{port}"),
            people: people.iter().map(person).collect(),
        });
        let data = web::Data::from(Arc::clone(&links));
        let app = move || App::new().app_data(data.clone()).route("/{person}/{secret}/{path:.*}", web::get().to(visit));
        // The demo handles ctrl-c itself, so this server must not.
        let server = HttpServer::new(app).workers(1).disable_signals().listen(listener).map_err(CliError::Runtime)?;
        tokio::spawn(server.run());
        Ok(links)
    }

    /// Returns the link that signs a person in and opens a path of the gateway.
    pub(super) fn to(&self, name: &str, path: &str) -> String {
        let secret = self.people.iter().find(|it| it.name == name).map_or("", |it| it.secret.as_str());
        format!("{}/{name}/{secret}{path}", self.base)
    }

    /// Prints the links of each open review that a person of the demo can decide, once.
    pub(super) async fn announce(&self, stage: &DemoSetup) -> std::result::Result<(), CliError> {
        let mut announced = BTreeSet::new();
        loop {
            stage.pause().await;
            for (review, lines) in self.waiting().await? {
                if announced.insert(review) {
                    stage.voice.say(&lines);
                }
            }
        }
    }

    async fn waiting(&self) -> Result<BTreeMap<ReviewId, String>> {
        let mut reviews = BTreeMap::new();
        for person in &self.people {
            let account = self.service.identity.account_row(&person.account).await?.record;
            let (mine, first) = (InboxFilter::mine(), InboxPageSelection::First);
            let found = self.service.inbox.find(&account, &mine, &first, REVIEWS_MAX).await?;
            // The seeded history decides its own reviews.
            for item in found.items.iter().filter(|it| it.hold.flow.as_str() != HISTORY_FLOW) {
                let lines = reviews.entry(item.hold.id.clone()).or_insert_with(|| headline(item));
                let link = self.to(person.name, &format!("/reviews/{}", item.hold.id));
                lines.push_str(&format!("\n      as {}: {link}", person.name));
            }
        }
        Ok(reviews)
    }
}

fn headline(item: &InboxItem) -> String {
    let wish = match &item.call {
        Some(call) => format!("call {}", call.name),
        None => format!("change the thread {}", item.hold.thread),
    };
    format!("\n  ▶ {} wants to {wish}. Decide it:", item.hold.node)
}

/// Redirects to a new one-time link. Other paths than a review lead to the inbox.
async fn visit(links: web::Data<SignInLinks>, part: web::Path<(String, String, String)>) -> HttpResponse {
    let (name, secret, path) = part.into_inner();
    let Some(person) = links.people.iter().find(|it| it.name == name && it.secret == secret) else {
        return HttpResponse::NotFound().finish();
    };
    let review = path.strip_prefix("reviews/").and_then(|it| ReviewId::try_from(it).ok());
    let next = review.map_or_else(|| "/".to_owned(), |it| format!("/reviews/{it}"));
    match links.service.identity.sign_in_link(&person.account).await {
        Ok(link) => HttpResponse::SeeOther()
            .insert_header((header::LOCATION, format!("{}/sign-in/{link}?next={next}", links.gateway)))
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .insert_header((header::REFERRER_POLICY, "no-referrer"))
            .finish(),
        Err(error) => HttpResponse::ServiceUnavailable().body(error.to_string()),
    }
}
