//! Two local webhook receivers, so that the webhook page has content. One accepts deliveries, and one rejects them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::sync::Arc;

use actix_web::{App, HttpResponse, HttpServer, web};
use countersign_adapters::network::Network;
use countersign_domain::delivery::endpoint::EventPattern;
use countersign_domain::primitives::id::AccountId;
use countersign_domain::primitives::secret::Secret;
use countersign_service::Service;
use countersign_service::delivery::endpoint_kind::NewKind;
use countersign_service::delivery::endpoints::NewEndpoint;
use countersign_service::error::{Error, Result};
use countersign_service::identity::actor::Actor;

use super::HERE;
use crate::cli::CliError;
use crate::config::WebhooksConfig;

/// Returns webhook settings that allow only these receivers.
pub(super) fn settings() -> WebhooksConfig {
    WebhooksConfig { allow_networks: Network::parse(HERE).into_iter().collect(), plain_http: false }
}

/// Starts the receivers and adds endpoints for them.
pub(super) async fn engage(service: &Arc<Service>, admin: &AccountId) -> std::result::Result<(), CliError> {
    let listener = TcpListener::bind((HERE, 0)).map_err(CliError::Runtime)?;
    let port = listener.local_addr().map_err(CliError::Runtime)?.port();
    let receivers = || {
        let moving =
            // This receiver always fails, so that the webhook page shows failed deliveries.
            || async { HttpResponse::ServiceUnavailable().body("The chat is in maintenance. Try again on Monday.") };
        App::new()
            .route("/ledger", web::post().to(|| async { HttpResponse::NoContent().finish() }))
            .route("/chat", web::post().to(moving))
    };
    // The demo handles ctrl-c itself, so this server must not.
    let server = HttpServer::new(receivers).workers(1).disable_signals().listen(listener).map_err(CliError::Runtime)?;
    tokio::spawn(server.run());
    add(service, admin, "ledger", port, &["write.*", "transition.*"]).await?;
    Ok(add(service, admin, "chat", port, &["transition.held"]).await?)
}

async fn add(service: &Service, admin: &AccountId, name: &str, port: u16, events: &[&str]) -> Result<()> {
    let events = events.iter().map(|it| EventPattern::try_from((*it).to_owned()));
    let events: std::result::Result<BTreeSet<_>, _> = events.collect();
    let new = NewEndpoint {
        name: name.to_owned(),
        kind: NewKind::Webhook,
        url: Secret::new(format!("http://{HERE}:{port}/{name}")),
        events: events.map_err(|error| Error::invalid("/events", error.to_string()))?,
        flows: BTreeSet::new(),
        ordered: false,
        headers: BTreeMap::new(),
        after: None,
    };
    let admin = service.identity.account_row(admin).await?;
    service.delivery.add_endpoint(Actor::Person(&admin), &new).await?;
    Ok(())
}
