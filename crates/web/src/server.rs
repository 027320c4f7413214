//! Assembles routes and middleware, and runs the HTTP server.

use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Server, ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::error::QueryPayloadError;
use actix_web::http::header::CONTENT_ENCODING;
use actix_web::middleware::{Compress, Next, from_fn};
use actix_web::{App as ActixApp, HttpRequest, HttpServer, ResponseError as _, web};
use countersign_service::error::Error;

use super::api::problem::Problem;
use super::limits::response_buffer;
use super::state::{AppState, Capability, EdgeConfig, FromState as _};
use super::{api, assets, mcp, pages, request_log};

/// Serves on a bound listener. The caller binds it, so that a used port is detected first.
pub fn serve(
    app: AppState,
    listener: std::net::TcpListener,
    workers: usize,
    shutdown: Duration,
) -> std::io::Result<Server> {
    let server = HttpServer::new(move || site(app.clone()));
    // The caller handles signals, because every signal must shut down gracefully.
    let server = server.disable_signals();
    Ok(server.workers(workers).shutdown_timeout(shutdown.as_secs()).listen(listener)?.run())
}

/// Returns the app with all routes and middleware.
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
    let speaker = mcp::mcp_service(&app);
    ActixApp::new()
        .configure(|config| app.register(config))
        .app_data(web::Data::new(speaker))
        // The last middleware runs first, so the request log also contains refused requests.
        .wrap(from_fn(response_buffer::counted))
        .wrap(from_fn(guard))
        .wrap(from_fn(request_log::tag))
        .configure(api::routes)
        .service(
            web::scope("")
                // The uncompressed length counts, so this runs before compression.
                .wrap(from_fn(response_buffer::counted))
                .wrap(Compress::default())
                .configure(pages::routes)
                .service(web::resource("/assets/{name:.*}").route(web::get().to(assets::serve)))
                .default_service(web::to(pages::shared::error_page::not_found)),
        )
        .app_data(web::QueryConfig::default().error_handler(|error, request| unreadable_query(&error, request)))
        .default_service(web::to(pages::shared::error_page::not_found))
}

/// Refuses connections that do not come from localhost or a configured proxy. Their passwords and tokens crossed the
/// network unencrypted, and the error prevents that this continues.
async fn guard(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let edge = Capability::<EdgeConfig>::of(request.request());
    // The gateway serves plain HTTP, so only localhost and configured proxies may connect.
    if request.peer_addr().is_some_and(|peer| edge.peers.admits(peer.ip())) {
        // A compressed body can expand a thousandfold before the sender is authenticated (decompression bomb).
        if request.headers().get_all(CONTENT_ENCODING).any(|it| it != "identity") {
            let error = Error::invalid("", "send the body uncompressed, without `Content-Encoding`");
            let refusal = response_buffer::refused(request.request(), error);
            return Ok(request.into_response(refusal));
        }
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    let refusal = Problem::of(request.request(), Error::Misdirected).error_response();
    Ok(request.into_response(refusal))
}

/// Returns a problem for API calls and a page for browsers.
fn unreadable_query(error: &QueryPayloadError, request: &HttpRequest) -> actix_web::Error {
    if request.path().starts_with("/v1/") {
        // The name of a missing parameter is safe to return. The name of an unknown one comes from the client.
        let error = error.to_string();
        let detail = match error.split_once("missing field `").and_then(|it| it.1.split_once('`')) {
            Some((name, _)) => format!("the query parameter `{name}` is missing"),
            None => "the query has an unknown parameter or an invalid value".to_owned(),
        };
        Problem::of(request, Error::invalid("", detail)).into()
    } else {
        pages::shared::error_page::PageError::unreadable(request).into()
    }
}
