//! What every handler can reach, and the server around the handlers.

use std::sync::Arc;
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{Server, ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::{Compress, from_fn};
use actix_web::{App as ActixApp, HttpRequest, HttpServer, web};

use super::api::problem::Problem;
use super::peers::Peers;
use super::streams::Streams;
use super::throttle::Throttle;
use super::{api, assets, mcp, pages, peers, request_id};
use crate::config::MetricsAccess;
use crate::service::Service;
use crate::service::error::Error;

/// What every handler can reach.
#[derive(Clone)]
pub struct App {
    /// The use cases.
    pub service: Arc<Service>,
    /// How the edge behaves.
    pub edge: Arc<Edge>,
}

/// How the edge behaves.
pub struct Edge {
    /// The longest body.
    pub body_bytes_max: usize,
    /// The deepest JSON.
    pub depth_max: usize,
    /// The longest wait for a decision.
    pub wait_max: Duration,
    /// Whether people come over https: then cookies are `__Host-`.
    pub secure: bool,
    /// Where pages are served from: what `Origin` must say on a POST.
    pub origin: String,
    /// Whom it talks to, and whose word it takes for where a request comes from.
    pub peers: Peers,
    /// Bounds requests of each token.
    pub requests: Throttle,
    /// Bounds sign-ins with an OpenID provider.
    pub elsewhere: Throttle,
    /// Bounds how fast each person looks at hidden values.
    pub reveals: Throttle,
    /// Who reads what the gateway counts of itself.
    pub metrics: MetricsAccess,
    /// Whether the reference of the API is shown at `/docs`.
    pub docs: bool,
    /// Every stream that is open.
    pub streams: Streams,
}

/// Serves on a listener that is already bound, so that a taken port is known before anything is said.
pub fn serve(app: App, listener: std::net::TcpListener, workers: usize, shutdown: Duration) -> std::io::Result<Server> {
    let server = HttpServer::new(move || site(app.clone()));
    // Who serves decides what a signal means: requests under way end, whichever signal it was.
    let server = server.disable_signals();
    Ok(server.workers(workers).shutdown_timeout(shutdown.as_secs()).listen(listener)?.run())
}

/// Every route with what stands around it.
pub fn site(
    app: App,
) -> ActixApp<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    let body_bytes_max = app.edge.body_bytes_max;
    let speaker = mcp::speaker(app.clone());
    ActixApp::new()
        .app_data(web::Data::new(app))
        .app_data(web::Data::new(speaker))
        .app_data(web::PayloadConfig::new(body_bytes_max))
        .wrap(from_fn(peers::guard))
        .wrap(from_fn(request_id::tag))
        .configure(api::routes)
        .service(
            web::scope("")
                .wrap(Compress::default())
                .configure(pages::routes)
                .service(web::resource("/assets/{name:.*}").route(web::get().to(assets::serve)))
                .default_service(web::to(pages::failure::not_found)),
        )
        .app_data(web::QueryConfig::default().error_handler(|_, request| unreadable_query(request)))
        .default_service(web::to(pages::failure::not_found))
}

/// Machines are answered as machines, people as people.
fn unreadable_query(request: &HttpRequest) -> actix_web::Error {
    if request.path().starts_with("/v1/") {
        Problem::of(request, Error::invalid("", "the query has a name or a value that this call does not take")).into()
    } else {
        pages::failure::Failure::unreadable(request).into()
    }
}
