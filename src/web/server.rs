//! Every route with what stands around it, and the server that serves them.

use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Server, ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::error::QueryPayloadError;
use actix_web::http::header::CONTENT_ENCODING;
use actix_web::middleware::{Compress, Next, from_fn};
use actix_web::{App as ActixApp, HttpRequest, HttpServer, ResponseError as _, web};

use super::api::problem::Problem;
use super::limits::response_buffer;
use super::state::AppState;
use super::{api, assets, mcp, pages, request_log};
use crate::service::error::Error;

/// Serves on a listener that is already bound, so that a taken port is known before anything is said.
pub fn serve(
    app: AppState,
    listener: std::net::TcpListener,
    workers: usize,
    shutdown: Duration,
) -> std::io::Result<Server> {
    let server = HttpServer::new(move || site(app.clone()));
    // Who serves decides what a signal means: requests under way end, whichever signal it was.
    let server = server.disable_signals();
    Ok(server.workers(workers).shutdown_timeout(shutdown.as_secs()).listen(listener)?.run())
}

/// Every route with what stands around it.
pub fn site(
    app: AppState,
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
    let speaker = mcp::mcp_service(app.clone());
    ActixApp::new()
        .app_data(web::Data::new(app))
        .app_data(web::Data::new(speaker))
        .app_data(web::PayloadConfig::new(body_bytes_max))
        .wrap(from_fn(response_buffer::counted))
        .wrap(from_fn(guard))
        .wrap(from_fn(request_log::tag))
        .configure(api::routes)
        .service(
            web::scope("")
                // As long as it is before it is compressed.
                .wrap(from_fn(response_buffer::counted))
                .wrap(Compress::default())
                .configure(pages::routes)
                .service(web::resource("/assets/{name:.*}").route(web::get().to(assets::serve)))
                .default_service(web::to(pages::shared::error_page::not_found)),
        )
        .app_data(web::QueryConfig::default().error_handler(|error, request| unreadable_query(&error, request)))
        .default_service(web::to(pages::shared::error_page::not_found))
}

/// Answers nobody but this machine and the named proxies: passwords and tokens of anybody else have just crossed
/// a network in the clear, and should not do so again.
async fn guard(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let app = request.app_data::<web::Data<AppState>>().expect("the server gives every handler the app");
    if request.peer_addr().is_some_and(|peer| app.edge.peers.admits(peer.ip())) {
        // A few packed bytes are a thousand times as many when they are unpacked, before anybody asks whose they are.
        if request.headers().get_all(CONTENT_ENCODING).any(|it| it != "identity") {
            let error = Error::invalid("", "send the body as it is, without `Content-Encoding`");
            let refusal = response_buffer::refused(request.request(), error);
            return Ok(request.into_response(refusal));
        }
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    let refusal = Problem::of(request.request(), Error::Misdirected).error_response();
    Ok(request.into_response(refusal))
}

/// Machines are answered as machines, people as people.
fn unreadable_query(error: &QueryPayloadError, request: &HttpRequest) -> actix_web::Error {
    if request.path().starts_with("/v1/") {
        // What is lacking is a name of ours; what is too much is anybody's.
        let error = error.to_string();
        let detail = match error.split_once("missing field `").and_then(|it| it.1.split_once('`')) {
            Some((name, _)) => format!("the query lacks `{name}`"),
            None => "the query has a name or a value that this call does not take".to_owned(),
        };
        Problem::of(request, Error::invalid("", detail)).into()
    } else {
        pages::shared::error_page::PageError::unreadable(request).into()
    }
}
