//! JSON for machines: one file for each resource.

pub mod admin;
pub mod branches;
pub mod endpoints;
pub mod envelopes;
pub mod episodes;
pub mod error_codes;
pub mod events;
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

use actix_web::web::{ServiceConfig, delete, get, patch, post, put};
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};

use problem::Problem;
use problem::responder::Told;

use super::auth::extractors::Machine;
use super::auth::permissions;
use super::mcp;
use crate::domain::primitives::id::FlowId;
use crate::service::error::{Error, Result};

/// This surface, described from its own types.
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
        crate::domain::episode::Artefact,
        crate::domain::primitives::id::TokenId
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
    )
)]
pub struct Description;

/// Every machine's route. Who may call which is said in `roles`.
pub fn routes(config: &mut ServiceConfig) {
    // Routes are tried in this order: what is asked most and has a fixed path comes first.
    config
        .route("/v1/verify", post().to(Told(writes::verify)))
        .route("/v1/threads", post().to(Told(threads::create)))
        .route("/v1/threads/{thread}/transitions", post().to(Told(transitions::propose)))
        .route("/v1/threads/{thread}", get().to(Told(threads::read)))
        .route("/v1/threads/{thread}/state", get().to(Told(threads::state)))
        .route("/v1/threads/{thread}/envelope", get().to(Told(envelopes::envelope)))
        .route("/v1/envelopes/verify", post().to(Told(envelopes::verify)))
        .route("/v1/flows/{flow}/nodes/{node}/envelope-secret", get().to(Told(envelopes::secret)))
        .route("/v1/threads/{thread}/chain", get().to(Told(threads::chain)))
        .route("/v1/threads/{thread}/rollbacks", post().to(Told(transitions::roll_back)))
        .route("/v1/threads/{thread}/forks", post().to(Told(branches::fork)))
        .route("/v1/threads/{thread}/joins", post().to(Told(branches::join)))
        .route("/v1/threads/{thread}/episode/events", post().to(Told(episodes::add_event)))
        .route("/v1/threads/{thread}/episode/{artefact}", get().to(Told(episodes::artefact)))
        .route("/v1/threads/{thread}/closing", post().to(Told(threads::close)))
        .route("/v1/threads/{thread}/reopening", post().to(Told(threads::reopen)))
        .route("/v1/threads/{thread}/lapses/{write_id}/resolution", post().to(Told(writes::resolve)))
        .route("/v1/transitions/{digest}", get().to(Told(transitions::read)))
        .route("/v1/transitions/{digest}/decision", get().to(Told(transitions::decision)))
        .route("/v1/transitions/{digest}/cancellation", post().to(Told(transitions::cancel)))
        .route("/v1/writes/{write_id}/confirm", post().to(Told(writes::confirm)))
        .route("/v1/writes/{write_id}/abort", post().to(Told(writes::abort)))
        .route("/v1/receipts/{jti}/revocation", post().to(Told(admin::revoke)))
        .route("/v1/halts/{scope}", put().to(Told(admin::halt)))
        .route("/v1/endpoints", post().to(Told(endpoints::add)))
        .route("/v1/endpoints", get().to(Told(endpoints::list)))
        .route("/v1/endpoints/{endpoint}", get().to(Told(endpoints::read)))
        .route("/v1/endpoints/{endpoint}", patch().to(Told(endpoints::change)))
        .route("/v1/endpoints/{endpoint}", delete().to(Told(endpoints::remove)))
        .route("/v1/endpoints/{endpoint}/secret", post().to(Told(endpoints::secret)))
        .route("/v1/endpoints/{endpoint}/test", post().to(Told(endpoints::test)))
        .route("/v1/endpoints/{endpoint}/redeliveries", post().to(Told(endpoints::deliveries::redeliver_many)))
        .route("/v1/endpoints/{endpoint}/deliveries", get().to(Told(endpoints::deliveries::deliveries)))
        .route("/v1/endpoints/{endpoint}/deliveries/{delivery}", get().to(Told(endpoints::deliveries::delivery)))
        .route(
            "/v1/endpoints/{endpoint}/deliveries/{delivery}/redelivery",
            post().to(Told(endpoints::deliveries::redeliver)),
        )
        .route("/v1/rejections", get().to(Told(rejected_proposals::list)))
        .route("/v1/passkeys", get().to(Told(passkeys::list)))
        .route("/v1/receipts/{jti}/evidence", get().to(Told(passkeys::evidence)))
        .route("/v1/interrupts", post().to(Told(interrupts::post)))
        .route("/v1/interrupts/{interrupt}", get().to(Told(interrupts::read)))
        .route("/v1/events", get().to(Told(events::events)))
        .route("/v1/flows/{flow}/policies", post().to(Told(admin::activate)))
        .route("/v1/flows/{flow}/amendments", get().to(Told(policy_changes::list)))
        .route("/v1/amendments/{amendment}", get().to(Told(policy_changes::read)))
        .route("/v1/amendments/{amendment}/cancellation", post().to(Told(policy_changes::cancel)))
        .route("/v1/flows/{flow}/judgements", post().to(Told(what_if::judge)))
        .route("/v1/flows/{flow}/replays", post().to(Told(replays::replay)))
        .route("/.well-known/jwks.json", get().to(Told(public::jwks)))
        .route("/openapi.json", get().to(public::openapi))
        .route("/mcp", post().to(mcp::answer))
        .route("/metrics", get().to(metrics::metrics))
        .route("/livez", get().to(public::livez))
        .route("/readyz", get().to(Told(public::readyz)));
}

/// No such route; or not by this method.
pub async fn not_found(request: HttpRequest) -> HttpResponse {
    match permissions::methods_of(request.path()) {
        methods if methods.is_empty() => Problem::of(&request, Error::NotFound("route")).error_response(),
        methods => problem::wrong_method(&request, &methods),
    }
}

/// Whether a machine that is bound to a flow reads of its own flow. Others are told, in the very words, what they
/// are told where there is no such thing.
pub fn of_own_flow(machine: &Machine, flow: &FlowId, what: &'static str) -> Result<()> {
    let token = &machine.0.record;
    if token.flow.is_none() || token.of_flow(flow) { Ok(()) } else { Err(Error::NotFound(what)) }
}
