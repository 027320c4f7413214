//! The JSON API for tokens, with a file for each resource.

pub mod aap;
pub mod admin;
pub mod branches;
pub mod endpoints;
pub mod envelopes;
pub mod episodes;
pub mod error_codes;
pub mod events;
pub mod hooks;
pub mod idempotency_key;
pub mod interrupts;
pub mod json_body;
pub mod long_poll;
mod marks;
pub mod metrics;
pub mod openapi;
pub mod openapi_examples;
pub mod passkeys;
pub mod policy_changes;
pub mod problem;
pub mod public;
pub mod rejected_proposals;
pub mod replays;
pub mod responses;
pub mod threads;
pub mod transitions;
pub mod what_if;
pub mod writes;

use actix_web::web::{ServiceConfig, delete, get, post, put};
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};
use countersign_domain::primitives::id::FlowId;
use countersign_service::error::{Error, Result};

use super::auth::extractors::Machine;
use super::auth::permissions;
use super::mcp;
use problem::Problem;
use problem::responder::ProblemResponder;

/// The OpenAPI document.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Countersign",
        description = "Countersign is an approval gateway for AI agents: a change waits until reviewers have signed exactly \
            that change. `docs/reference/http-api.md` describes authentication, idempotency, pagination and limits. JSON is \
            read strictly: duplicate keys, inexact numbers and unknown members are refused. Responses may have more members \
            than are described here.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(
        problem::ProblemBody,
        problem::protocol_error::AapErrorResponse,
        countersign_domain::episode::Artefact,
        countersign_domain::primitives::id::TokenId
    )),
    paths(
        threads::create,
        threads::read,
        threads::state,
        threads::chain,
        envelopes::envelope,
        envelopes::verify,
        envelopes::secret,
        threads::close,
        threads::reopen,
        episodes::add_event,
        episodes::artefact,
        transitions::propose,
        transitions::roll_back,
        branches::fork,
        branches::join,
        transitions::read,
        transitions::decision,
        transitions::cancel,
        aap::instances::create_instance,
        aap::create,
        aap::read,
        aap::cancel,
        aap::consume,
        aap::report,
        aap::callable,
        hooks::claude_code,
        writes::verify,
        writes::confirm,
        writes::abort,
        writes::resolve,
        admin::activate,
        policy_changes::list,
        policy_changes::read,
        policy_changes::cancel,
        admin::halt,
        admin::revoke,
        public::jwks,
        public::livez,
        public::readyz,
        what_if::judge,
        replays::replay,
        rejected_proposals::list,
        passkeys::list,
        passkeys::evidence,
        events::events,
        metrics::metrics,
        interrupts::post,
        interrupts::read,
        endpoints::add,
        endpoints::list,
        endpoints::read,
        endpoints::change,
        endpoints::remove,
        endpoints::secret,
        endpoints::test,
        endpoints::deliveries::deliveries,
        endpoints::deliveries::delivery,
        endpoints::deliveries::redeliver,
        endpoints::deliveries::redeliver_many,
        mcp::answer,
        mcp::upstreams::post,
        mcp::upstreams::listen,
        mcp::upstreams::end,
    )
)]
pub struct OpenApiDocument;

/// Registers the routes of the API. The permission table has the roles that may call each of them.
pub fn routes(config: &mut ServiceConfig) {
    // Routes match in this order, so frequent ones with a fixed path come first.
    config
        .route("/v1/verify", post().to(ProblemResponder(writes::verify)))
        .route("/aap/v1/instances", post().to(ProblemResponder(aap::instances::create_instance)))
        .route("/aap/v1/requests", post().to(ProblemResponder(aap::create)))
        .route("/aap/v1/requests/{id}", get().to(ProblemResponder(aap::read)))
        .route("/aap/v1/requests/{id}", delete().to(ProblemResponder(aap::cancel)))
        .route("/aap/v1/requests/{id}/consume", post().to(ProblemResponder(aap::consume)))
        .route("/aap/v1/requests/{id}/outcome", post().to(ProblemResponder(aap::report)))
        .route("/v1/callable-tools", post().to(ProblemResponder(aap::callable)))
        .route("/v1/hooks/claude-code", post().to(ProblemResponder(hooks::claude_code)))
        .route("/v1/threads", post().to(ProblemResponder(threads::create)))
        .route("/v1/threads/{thread}/transitions", post().to(ProblemResponder(transitions::propose)))
        .route("/v1/threads/{thread}", get().to(ProblemResponder(threads::read)))
        .route("/v1/threads/{thread}/state", get().to(ProblemResponder(threads::state)))
        .route("/v1/threads/{thread}/envelope", get().to(ProblemResponder(envelopes::envelope)))
        .route("/v1/envelopes/verify", post().to(ProblemResponder(envelopes::verify)))
        .route("/v1/flows/{flow}/nodes/{node}/envelope-secret", get().to(ProblemResponder(envelopes::secret)))
        .route("/v1/threads/{thread}/chain", get().to(ProblemResponder(threads::chain)))
        .route("/v1/threads/{thread}/rollbacks", post().to(ProblemResponder(transitions::roll_back)))
        .route("/v1/threads/{thread}/forks", post().to(ProblemResponder(branches::fork)))
        .route("/v1/threads/{thread}/joins", post().to(ProblemResponder(branches::join)))
        .route("/v1/threads/{thread}/episode/events", post().to(ProblemResponder(episodes::add_event)))
        .route("/v1/threads/{thread}/episode/{artefact}", get().to(ProblemResponder(episodes::artefact)))
        .route("/v1/threads/{thread}/closing", post().to(ProblemResponder(threads::close)))
        .route("/v1/threads/{thread}/reopening", post().to(ProblemResponder(threads::reopen)))
        .route("/v1/threads/{thread}/lapses/{write_id}/resolution", post().to(ProblemResponder(writes::resolve)))
        .route("/v1/transitions/{digest}", get().to(ProblemResponder(transitions::read)))
        .route("/v1/transitions/{digest}/decision", get().to(ProblemResponder(transitions::decision)))
        .route("/v1/transitions/{digest}/cancellation", post().to(ProblemResponder(transitions::cancel)))
        .route("/v1/writes/{write_id}/confirm", post().to(ProblemResponder(writes::confirm)))
        .route("/v1/writes/{write_id}/abort", post().to(ProblemResponder(writes::abort)))
        .route("/v1/receipts/{jti}/revocation", post().to(ProblemResponder(admin::revoke)))
        .route("/v1/halts/{scope}", put().to(ProblemResponder(admin::halt)))
        .route("/v1/rejections", get().to(ProblemResponder(rejected_proposals::list)))
        .route("/v1/passkeys", get().to(ProblemResponder(passkeys::list)))
        .route("/v1/receipts/{jti}/evidence", get().to(ProblemResponder(passkeys::evidence)))
        .route("/v1/interrupts", post().to(ProblemResponder(interrupts::post)))
        .route("/v1/interrupts/{interrupt}", get().to(ProblemResponder(interrupts::read)))
        .route("/v1/events", get().to(ProblemResponder(events::events)))
        .route("/v1/flows/{flow}/policies", post().to(ProblemResponder(admin::activate)))
        .route("/v1/flows/{flow}/amendments", get().to(ProblemResponder(policy_changes::list)))
        .route("/v1/amendments/{amendment}", get().to(ProblemResponder(policy_changes::read)))
        .route("/v1/amendments/{amendment}/cancellation", post().to(ProblemResponder(policy_changes::cancel)))
        .route("/v1/flows/{flow}/judgements", post().to(ProblemResponder(what_if::judge)))
        .route("/v1/flows/{flow}/replays", post().to(ProblemResponder(replays::replay)))
        .route("/.well-known/jwks.json", get().to(ProblemResponder(public::jwks)))
        .route("/openapi.json", get().to(public::openapi))
        // Errors of MCP have their own format, so the handler answers them itself.
        .route("/mcp", post().to(mcp::answer))
        .route("/mcp/upstreams/{name}", post().to(ProblemResponder(mcp::upstreams::post)))
        .route("/mcp/upstreams/{name}", get().to(ProblemResponder(mcp::upstreams::listen)))
        .route("/mcp/upstreams/{name}", delete().to(ProblemResponder(mcp::upstreams::end)))
        .route("/metrics", get().to(metrics::metrics))
        .route("/livez", get().to(public::livez))
        .route("/readyz", get().to(ProblemResponder(public::readyz)))
        .configure(endpoints::routes);
}

/// Answers requests without a route, with 405 if the path has other methods.
pub async fn not_found(request: HttpRequest) -> HttpResponse {
    match permissions::methods_of(request.path()) {
        methods if methods.is_empty() => Problem::of(&request, Error::NotFound("route")).error_response(),
        methods => problem::wrong_method(&request, &methods),
    }
}

/// Refuses a token of another flow. The error is the same as for an object that does not exist, so that the token
/// learns nothing.
pub fn of_own_flow(machine: &Machine, flow: &FlowId, what: &'static str) -> Result<()> {
    let token = &machine.0.record;
    // The status is 404 and not 403, so that a token does not learn which names exist in other flows.
    if token.flow.is_none() || token.of_flow(flow) { Ok(()) } else { Err(Error::NotFound(what)) }
}
