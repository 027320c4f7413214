//! The permission table: the roles that may call each route. A test checks every route.

use actix_web::http::Method;
use countersign_domain::chain::denial::DenialCode;
use countersign_domain::identity::account::{MachineRole, PersonRole};
use countersign_service::error::Error;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallerRole {
    Machine(MachineRole),
    Person(PersonRole),
}

use countersign_domain::identity::account::MachineRole::{
    Admin, Agent, Auditor, Host, Instance, Monitor, Provisioner, Writer,
};

/// A route and its roles.
pub struct RoutePermission {
    pub method: &'static str,
    /// The route pattern.
    pub route: &'static str,
    pub machines: &'static [MachineRole],
    pub people: &'static [PersonRole],
}

const fn machine(method: &'static str, route: &'static str, machines: &'static [MachineRole]) -> RoutePermission {
    RoutePermission { method, route, machines, people: &[] }
}

const fn person(method: &'static str, route: &'static str, people: &'static [PersonRole]) -> RoutePermission {
    RoutePermission { method, route, machines: &[], people }
}

const EVERYBODY: &[PersonRole] = &[PersonRole::Reviewer, PersonRole::Admin, PersonRole::Auditor];

/// Roles that may replay recorded proposals against their own policy and export the audit log. The rules of such a
/// policy can test values that pages redact, and the log contains all comments.
const OVERSEERS: &[PersonRole] = &[PersonRole::Admin, PersonRole::Auditor];

/// Roles that manage accounts and tokens, and that lift halts.
const ADMINS: &[PersonRole] = &[PersonRole::Admin];

/// Roles that may halt a flow and end a delegation. Both only remove permissions, so reviewers may do them too.
const STOPPERS: &[PersonRole] = &[PersonRole::Reviewer, PersonRole::Admin];

/// Every route that needs authentication. A route that is missing here refuses every caller.
pub const TABLE: &[RoutePermission] = &[
    machine("POST", "/v1/threads", &[Host]),
    machine("GET", "/v1/threads/{thread}", &[Host, Writer, Auditor]),
    machine("GET", "/v1/threads/{thread}/state", &[Agent, Auditor]),
    machine("GET", "/v1/threads/{thread}/chain", &[Host, Auditor]),
    machine("GET", "/v1/threads/{thread}/envelope", &[Agent, Auditor]),
    machine("POST", "/v1/envelopes/verify", &[Agent, Auditor]),
    machine("GET", "/v1/flows/{flow}/nodes/{node}/envelope-secret", &[Agent]),
    machine("POST", "/v1/threads/{thread}/transitions", &[Agent]),
    machine("POST", "/v1/threads/{thread}/rollbacks", &[Agent]),
    machine("POST", "/v1/threads/{thread}/forks", &[Agent]),
    machine("POST", "/v1/threads/{thread}/joins", &[Agent]),
    machine("POST", "/v1/threads/{thread}/episode/events", &[Agent]),
    machine("GET", "/v1/threads/{thread}/episode/{artefact}", &[Host, Auditor]),
    machine("POST", "/v1/threads/{thread}/closing", &[Admin]),
    machine("POST", "/v1/threads/{thread}/reopening", &[Admin]),
    machine("POST", "/v1/threads/{thread}/lapses/{write_id}/resolution", &[Admin]),
    machine("GET", "/v1/transitions/{digest}", &[Host, Agent, Auditor]),
    machine("GET", "/v1/transitions/{digest}/decision", &[Host, Agent, Auditor]),
    machine("POST", "/v1/transitions/{digest}/cancellation", &[Agent]),
    machine("POST", "/mcp", &[Agent]),
    machine("POST", "/mcp/upstreams/{name}", &[Instance]),
    machine("GET", "/mcp/upstreams/{name}", &[Instance]),
    machine("DELETE", "/mcp/upstreams/{name}", &[Instance]),
    machine("POST", "/aap/v1/instances", &[Provisioner]),
    machine("POST", "/aap/v1/requests", &[Instance]),
    machine("GET", "/aap/v1/requests/{id}", &[Instance]),
    machine("DELETE", "/aap/v1/requests/{id}", &[Instance]),
    machine("POST", "/aap/v1/requests/{id}/consume", &[Instance]),
    machine("POST", "/aap/v1/requests/{id}/outcome", &[Instance]),
    machine("POST", "/v1/callable-tools", &[Instance]),
    machine("POST", "/v1/hooks/claude-code", &[Instance]),
    machine("POST", "/v1/verify", &[Writer]),
    machine("POST", "/v1/writes/{write_id}/confirm", &[Writer]),
    machine("POST", "/v1/writes/{write_id}/abort", &[Writer]),
    machine("POST", "/v1/receipts/{jti}/revocation", &[Admin]),
    machine("PUT", "/v1/halts/{scope}", &[Admin]),
    machine("POST", "/v1/endpoints", &[Admin]),
    machine("GET", "/v1/endpoints", &[Admin, Auditor]),
    machine("GET", "/v1/endpoints/{endpoint}", &[Admin, Auditor]),
    machine("PATCH", "/v1/endpoints/{endpoint}", &[Admin]),
    machine("DELETE", "/v1/endpoints/{endpoint}", &[Admin]),
    machine("POST", "/v1/endpoints/{endpoint}/secret", &[Admin]),
    machine("POST", "/v1/endpoints/{endpoint}/test", &[Admin]),
    machine("POST", "/v1/endpoints/{endpoint}/redeliveries", &[Admin]),
    machine("GET", "/v1/endpoints/{endpoint}/deliveries", &[Admin, Auditor]),
    machine("GET", "/v1/endpoints/{endpoint}/deliveries/{delivery}", &[Admin, Auditor]),
    machine("POST", "/v1/endpoints/{endpoint}/deliveries/{delivery}/redelivery", &[Admin]),
    machine("GET", "/v1/rejections", &[Auditor]),
    machine("GET", "/v1/passkeys", &[Auditor, Admin]),
    machine("GET", "/v1/receipts/{jti}/evidence", &[Auditor]),
    machine("POST", "/v1/interrupts", &[Host]),
    machine("GET", "/v1/interrupts/{interrupt}", &[Host, Auditor]),
    machine("GET", "/v1/events", &[Host, Auditor]),
    machine("POST", "/v1/flows/{flow}/policies", &[Admin]),
    machine("GET", "/v1/flows/{flow}/amendments", &[Admin, Auditor]),
    machine("GET", "/v1/amendments/{amendment}", &[Admin, Auditor]),
    machine("POST", "/v1/amendments/{amendment}/cancellation", &[Admin]),
    machine("POST", "/v1/flows/{flow}/judgements", &[Admin, Auditor]),
    machine("POST", "/v1/flows/{flow}/replays", &[Admin, Auditor]),
    // Used if `metrics.access` is `token`.
    machine("GET", "/metrics", &[Monitor, Auditor]),
    person("GET", "/", EVERYBODY),
    person("GET", "/live", EVERYBODY),
    person("GET", "/reviews/{review}", EVERYBODY),
    person("GET", "/reviews/{review}/arguments", EVERYBODY),
    person("POST", "/votes", &[PersonRole::Reviewer]),
    person("POST", "/reviews/{review}/decision", &[PersonRole::Reviewer]),
    person("POST", "/reviews/{review}/revocation", &[PersonRole::Reviewer]),
    person("POST", "/reviews/{review}/withdrawal", &[PersonRole::Reviewer]),
    person("POST", "/reviews/{review}/extension", &[PersonRole::Reviewer]),
    person("GET", "/reviews/{review}/edit", &[PersonRole::Reviewer]),
    person("POST", "/reviews/{review}/edit", &[PersonRole::Reviewer]),
    person("POST", "/reviews/{review}/comments", &[PersonRole::Reviewer, PersonRole::Admin]),
    person("POST", "/reviews/{review}/reveal", EVERYBODY),
    person("GET", "/interrupts/{interrupt}", EVERYBODY),
    person("POST", "/interrupts/{interrupt}/decision", &[PersonRole::Reviewer]),
    person("GET", "/threads", EVERYBODY),
    person("GET", "/imports", EVERYBODY),
    person("GET", "/threads/{thread}", EVERYBODY),
    person("GET", "/threads/{thread}/episode", EVERYBODY),
    person("GET", "/threads/{thread}/episode/{artefact}", EVERYBODY),
    person("GET", "/threads/{thread}/compare", EVERYBODY),
    person("GET", "/threads/{thread}/versions/{version}", EVERYBODY),
    person("POST", "/threads/{thread}/versions/{version}/rollback", &[PersonRole::Reviewer]),
    person("GET", "/insight", EVERYBODY),
    person("GET", "/log", EVERYBODY),
    person("GET", "/log.jsonl", OVERSEERS),
    person("GET", "/log/{event}", EVERYBODY),
    person("GET", "/verifier", EVERYBODY),
    person("POST", "/verifier", EVERYBODY),
    person("GET", "/rejections", EVERYBODY),
    person("GET", "/what-if", EVERYBODY),
    person("POST", "/what-if", EVERYBODY),
    person("GET", "/policies", EVERYBODY),
    person("GET", "/amendments/{amendment}", EVERYBODY),
    person("POST", "/amendments/{amendment}/decision", &[PersonRole::Reviewer]),
    person("GET", "/replays", OVERSEERS),
    person("POST", "/replays", OVERSEERS),
    person("GET", "/emergency", EVERYBODY),
    person("POST", "/emergency", STOPPERS),
    person("POST", "/emergency/lifting", ADMINS),
    person("GET", "/people", OVERSEERS),
    person("POST", "/people/invitations", ADMINS),
    person("POST", "/people/links/{link}/withdrawal", ADMINS),
    person("GET", "/people/{account}", OVERSEERS),
    person("POST", "/people/{account}/access", ADMINS),
    person("POST", "/people/{account}/admission", ADMINS),
    person("POST", "/people/{account}/passkeys", ADMINS),
    person("POST", "/people/{account}/reset", ADMINS),
    person("POST", "/people/{account}/unlocking", ADMINS),
    person("GET", "/endpoints", OVERSEERS),
    person("POST", "/endpoints", ADMINS),
    person("GET", "/endpoints/{endpoint}", OVERSEERS),
    person("POST", "/endpoints/{endpoint}/settings", ADMINS),
    person("POST", "/endpoints/{endpoint}/serving", ADMINS),
    person("POST", "/endpoints/{endpoint}/secret", ADMINS),
    person("POST", "/endpoints/{endpoint}/test", ADMINS),
    person("POST", "/endpoints/{endpoint}/redeliveries", ADMINS),
    person("POST", "/endpoints/{endpoint}/removal", ADMINS),
    person("GET", "/endpoints/{endpoint}/deliveries/{delivery}", OVERSEERS),
    person("POST", "/endpoints/{endpoint}/deliveries/{delivery}/redelivery", ADMINS),
    person("GET", "/tokens", OVERSEERS),
    person("POST", "/tokens", ADMINS),
    person("POST", "/tokens/{token}/revocation", ADMINS),
    person("GET", "/delegations", EVERYBODY),
    person("POST", "/delegations", &[PersonRole::Reviewer]),
    person("POST", "/delegations/{delegation}/end", STOPPERS),
    person("GET", "/account", EVERYBODY),
    person("POST", "/account/password", EVERYBODY),
    person("POST", "/account/contact", EVERYBODY),
    person("POST", "/account/sessions", EVERYBODY),
    person("GET", "/account/passkeys", EVERYBODY),
    person("POST", "/account/passkeys", EVERYBODY),
    person("POST", "/account/passkeys/removal", EVERYBODY),
    person("POST", "/sign-out", EVERYBODY),
];

fn rule_of(method: &Method, route: &str) -> Option<&'static RoutePermission> {
    // The method and the pattern must be equal, so a new route is closed until it is listed.
    TABLE.iter().find(|it| it.method == method.as_str() && it.route == route)
}

/// Returns true if the caller may call the route.
pub fn may(caller: CallerRole, method: &Method, route: &str) -> bool {
    rule_of(method, route).is_some_and(|rule| match caller {
        CallerRole::Machine(role) => rule.machines.contains(&role),
        CallerRole::Person(role) => rule.people.contains(&role),
    })
}

/// Checks the role, and names the allowed roles in the error. Verify returns a denial instead.
pub fn admit(caller: CallerRole, method: &Method, route: &str) -> Result<(), Error> {
    if may(caller, method, route) {
        return Ok(());
    }
    let rule = rule_of(method, route);
    let (role, admitted): (_, Vec<_>) = match caller {
        CallerRole::Machine(role) => {
            (role.as_str(), rule.iter().flat_map(|it| it.machines).map(|it| it.as_str()).collect())
        }
        CallerRole::Person(role) => {
            (role.as_str(), rule.iter().flat_map(|it| it.people).map(|it| it.as_str()).collect())
        }
    };
    Err(match route {
        // A writer treats every denial of `verify` the same way, so this error is one too.
        "/v1/verify" => Error::Denied(DenialCode::Forbidden),
        // A route can admit people only, or machines only, so the list of roles for this kind of caller can be empty.
        _ if admitted.is_empty() => Error::Forbidden("no role is allowed to call this route"),
        _ => Error::NotOfRole { role, may: admitted.join(" or ") },
    })
}

/// Returns true if the path is a page for people.
pub fn is_page(path: &str) -> bool {
    TABLE.iter().any(|it| it.method == "GET" && !it.people.is_empty() && fits(it.route, path))
}

/// Routes without authentication.
pub const OPEN: &[&str] = &["/.well-known/jwks.json", "/openapi.json", "/docs", "/livez", "/readyz"];

/// Returns the methods of a path for tokens. A fixed route has precedence over one with parameters.
pub fn methods_of(path: &str) -> Vec<&'static str> {
    let open = OPEN.contains(&path).then_some("GET");
    let fitting = || TABLE.iter().filter(|it| !it.machines.is_empty() && fits(it.route, path));
    let places = |it: &RoutePermission| it.route.matches('{').count();
    // A fixed path also fits a pattern with a parameter, and the fixed route is the one that answers.
    let fewest = fitting().map(places).min();
    let machines = fitting().filter(|it| Some(places(it)) == fewest).map(|it| it.method);
    open.into_iter().chain(machines).collect()
}

fn fits(route: &str, path: &str) -> bool {
    // `zip` stops at the shorter of the two, so the number of parts is compared below.
    let same = route.split('/').zip(path.split('/')).all(|(name, it)| name.starts_with('{') || name == it);
    same && route.split('/').count() == path.split('/').count()
}
