//! Tests sign-in with an OpenID provider over HTTP: with a real one, and with one that returns false data.

mod faults;
mod names;
mod peer;
#[path = "../../support/provider.rs"]
mod provider;
mod real;
mod switched_off;
mod visitor;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::identity::account::Account;
use countersign_domain::log::event::Event;

use countersign_adapters::clock::ClockOffset;
use countersign_adapters::keyring::Keyring;
use countersign_adapters::oidc_provider::OidcConfig;
use countersign_adapters::oidc_provider::Provider;
use countersign_service::identity::sign_in_config::LocalAccounts;
use countersign_service::identity::sign_in_config::SignInMethods;
use countersign_service::{PeopleSettings, Service};
use countersign_store::sqlite::SqliteStore;
use countersign_web::limits::rate_limit::RateLimiter;

use crate::gateway::{MovedClock, POLICY, TestGateway, settings, spawn_letting_in};
use crate::sqlite::unsynced;

/// A port reserved for a gateway, so that a provider can be configured with it before the gateway starts.
pub struct ReservedPort(TcpListener);

impl ReservedPort {
    pub fn take() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub fn url(&self) -> String {
        format!("http://localhost:{}", self.0.local_addr().unwrap().port())
    }

    /// Starts a gateway on the port, with that provider.
    pub async fn gateway(self, oidc: OidcConfig) -> TestGateway {
        let (folder, clock) = (tempfile::tempdir().unwrap(), ClockOffset::default());
        let options = unsynced(&clock);
        let store = Arc::new(SqliteStore::open(folder.path().join("countersign.db"), options).unwrap());
        let ways = ways(oidc, &self.url(), &clock, LocalAccounts::On);
        let requests = RateLimiter::new(100_000, Duration::from_micros(1));
        spawn_letting_in(folder, (clock, store), (POLICY, requests, PeopleSettings::default()), (self.0, ways)).await
    }
}

fn ways(oidc: OidcConfig, url: &str, clock: &ClockOffset, local: LocalAccounts) -> SignInMethods {
    let provider = Provider::new(oidc, url, Arc::new(MovedClock(clock.clone()))).unwrap();
    SignInMethods { local, provider: Some(Arc::new(provider)) }
}

/// Starts a second gateway on the same database and keyring, with other sign-in methods.
async fn beside(g: &TestGateway, ways: SignInMethods) -> Service {
    let options = unsynced(&g.clock);
    let store = Arc::new(SqliteStore::open(g.folder.path().join("countersign.db"), options).unwrap());
    let keyring = Keyring::open(&g.folder.path().join("keyring.json"), None).unwrap();
    let clock = Arc::new(MovedClock(g.clock.clone()));
    Service::open(store, keyring, clock, settings(&g.url)).await.unwrap().with_sign_in_methods(ways)
}

/// Every event of that name, in order.
async fn told(g: &TestGateway, name: &str) -> Vec<Event> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (events, _) = g.service.log.events_after(0, None, 1000).await.unwrap();
    let is = |it: &Event| serde_json::to_value(it.kind).unwrap() == name;
    events.into_iter().map(|it| it.event).filter(is).collect()
}

/// Returns the account of the session cookie.
async fn whose(g: &TestGateway, secret: &str) -> Account {
    g.service.identity.session_of(secret).await.unwrap().account.record
}
