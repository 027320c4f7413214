//! A small MCP server: the help desk of a shop, with one tool that reads and one that pays. Only the gateway has its
//! secret, so its clients need the gateway.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_web::http::header;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use countersign_adapters::random;
use countersign_domain::primitives::secret::Secret;
use countersign_mcp_guard::upstream::UpstreamSettings;
use serde_json::{Value, json};

use super::HERE;
use crate::cli::CliError;

/// The name of the server in the configuration of the gateway and in the policy.
pub(super) const SERVER: &str = "desk";

struct DeskState {
    authorization: String,
    refunds: AtomicUsize,
}

/// Starts the server. Returns its settings for the gateway.
pub(super) fn start() -> Result<UpstreamSettings, CliError> {
    let listener = TcpListener::bind((HERE, 0)).map_err(CliError::Runtime)?;
    let port = listener.local_addr().map_err(CliError::Runtime)?.port();
    let secret = random::uuid_v4().simple().to_string();
    let state = web::Data::new(DeskState { authorization: format!("Bearer {secret}"), refunds: AtomicUsize::new(0) });
    let app = move || App::new().app_data(state.clone()).route("/mcp", web::post().to(answer));
    // The demo handles ctrl-c itself, so this server must not.
    let server = HttpServer::new(app).workers(1).disable_signals().listen(listener).map_err(CliError::Runtime)?;
    tokio::spawn(server.run());
    let url = format!("http://{HERE}:{port}/mcp");
    let url = url.parse().map_err(|error| CliError::Demo(format!("the MCP server has no valid URL: {error}")))?;
    Ok(UpstreamSettings { name: SERVER.to_owned(), url, secret: Some(Secret::new(secret)) })
}

/// Returns the ways to connect an MCP client of the user.
pub(super) fn connect_lines(url: &str, token: &str) -> String {
    let url = format!("{url}/mcp/upstreams/{SERVER}");
    let header = format!("Bearer {token}");
    let server = json!({"type": "http", "url": url, "headers": {"Authorization": header}});
    format!(
        "\nConnect your own MCP client to the same server. Its refunds are held too:\n  \
         claude mcp add --transport http {SERVER} {url} --header \"Authorization: {header}\"\n  {}",
        json!({"mcpServers": {SERVER: server}})
    )
}

async fn answer(request: HttpRequest, body: web::Json<Value>, state: web::Data<DeskState>) -> HttpResponse {
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
    if authorization != Some(state.authorization.as_str()) {
        return HttpResponse::Unauthorized().finish();
    }
    let Some(id) = body.get("id") else { return HttpResponse::Accepted().finish() };
    let result = match body["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": body["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": SERVER, "version": env!("CARGO_PKG_VERSION")},
        }),
        "ping" => json!({}),
        "tools/list" => json!({"tools": tools()}),
        "tools/call" => {
            let text = call(&state, &body["params"]);
            json!({"content": [{"type": "text", "text": text}], "isError": false})
        }
        other => {
            let error = json!({"code": -32_601, "message": format!("unknown method {other}")});
            return HttpResponse::Ok().json(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    HttpResponse::Ok().json(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn tools() -> Value {
    let text = json!({"type": "string"});
    json!([
        {"name": "look_up_order", "description": "Returns an order of the shop.", "inputSchema": {
            "type": "object", "properties": {"order": text}, "required": ["order"]}},
        {"name": "issue_refund", "description": "Sends money back to the customer.", "inputSchema": {
            "type": "object", "properties": {"order": text, "customer": text, "amount": {"type": "number"}},
            "required": ["order", "customer", "amount"]}},
    ])
}

fn call(state: &DeskState, params: &Value) -> String {
    let (order, amount) = (params["arguments"]["order"].as_str().unwrap_or("?"), &params["arguments"]["amount"]);
    match params["name"].as_str() {
        Some("look_up_order") => format!("Order {order} of customer C-17: 40 EUR, delivered broken."),
        Some("issue_refund") => {
            let count = state.refunds.fetch_add(1, Ordering::SeqCst) + 1;
            format!("Refunded {amount} EUR for order {order}. It is refund number {count}.")
        }
        _ => "There is no such tool.".to_owned(),
    }
}
