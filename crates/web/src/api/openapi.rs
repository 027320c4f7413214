//! Builds the OpenAPI 3.1 document from the handlers and their types. It adds the facts that apply to all calls: roles,
//! errors and their codes.

use actix_web::http::Method;
use countersign_domain::identity::account::MachineRole;
use serde_json::{Value, json};
use utoipa::OpenApi as _;

use super::{OpenApiDocument, error_codes, openapi_examples};
use crate::auth::permissions::{RoutePermission, TABLE};

/// Calls that ignore `Idempotency-Key`: they have a `write_id`, or repeating them has no effect.
pub const KEYLESS: &[&str] = &[
    "/v1/verify",
    "/v1/envelopes/verify",
    "/v1/writes/{write_id}/confirm",
    "/v1/writes/{write_id}/abort",
    "/mcp",
    "/mcp/upstreams/{name}",
    "/aap/v1/requests/{id}/outcome",
    "/v1/callable-tools",
    "/v1/hooks/claude-code",
];

/// The tags, in the order in which a reader needs them.
const TAGS: &[(&str, &str)] = &[
    ("threads", "A thread is one piece of work with its state and its chain of versions."),
    ("proposals", "Propose state changes and read the decisions."),
    ("writes", "Verify a write before it is carried out, and report its outcome."),
    ("approval requests", "Ask for the approval of single tool calls, by the Agent Approval Protocol."),
    ("interrupts", "Request decisions for host applications that keep their own state."),
    ("events", "The audit log, as pages or as a stream."),
    ("audit", "Calls for auditors."),
    ("policies", "Activate, test and replay policies."),
    ("episodes", "Agent runs: their events and run artifacts."),
    ("administration", "Halt flows, close threads and revoke receipts."),
    ("endpoints", "Webhooks, chats and agent servers that receive events."),
    ("mcp", "The Model Context Protocol, for agents that call tools."),
    ("open", "Calls that need no token."),
];

/// The prefix of the paths of the Agent Approval Protocol.
const AAP: &str = "/aap/";

/// The largest integer that is exact in JSON. Larger ones are refused.
const INTEGER_MAX: u64 = (1 << 53) - 1;

pub fn description() -> Value {
    let mut told = serde_json::to_value(OpenApiDocument::openapi()).expect("a description is made of texts and lists");
    told["tags"] = TAGS.iter().map(|(name, what)| json!({"name": name, "description": what})).collect();
    // A relative URL is correct at every installation.
    told["servers"] = json!([{"url": "/", "description": "This gateway"}]);
    for (path, item) in told["paths"].as_object_mut().into_iter().flatten() {
        for (method, call) in item.as_object_mut().into_iter().flatten() {
            complete(path, method, call);
            for parameter in call.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
                // A log position is returned as a JSON number, so it must be exact. Other numbers in paths are not.
                let most = if parameter["name"] == "after" { INTEGER_MAX } else { u64::MAX };
                bound(&mut parameter["schema"], most);
                // Optional parameters are left out of a request, and never null.
                if let Some(kind) = parameter["schema"]["type"].as_array().and_then(|it| it.first()).cloned() {
                    parameter["schema"]["type"] = kind;
                }
            }
        }
    }
    mark_required_bodies(&mut told);
    let parts = &mut told["components"];
    for (_, schema) in parts["schemas"].as_object_mut().into_iter().flatten() {
        bound(schema, INTEGER_MAX);
    }
    parts["securitySchemes"] = json!({"token": {
        "type": "http", "scheme": "bearer", "bearerFormat": "cs_…",
        "description": "A token with one role. Create it with `countersign token add`.",
    }});
    // The codes come from the tables that responses use, so the document cannot miss one.
    parts["schemas"]["ProblemCode"] = json!({
        "type": "string", "description": "The error code, for programs.", "enum": all_codes(),
    });
    parts["schemas"]["FieldErrorCode"] =
        json!({"type": "string", "description": "The code of one item of `errors`.", "enum": error_codes::faults()});
    parts["schemas"]["DenialCode"] = json!({
        "type": "string", "enum": error_codes::denials(),
        "description": "The code of a denial of `verify`, in the order of the checks.",
    });
    parts["responses"] = error_codes::BY_STATUS
        .iter()
        .map(|(status, what, codes)| (name_of(*status), problem(*status, what, codes)))
        .collect();
    let protocol = error_codes::BY_STATUS.iter().map(|(status, what, codes)| {
        let mut described = problem(*status, what, codes);
        described["content"] =
            json!({"application/json": {"schema": {"$ref": "#/components/schemas/AapErrorResponse"}}});
        (format!("AapProblem{status}"), described)
    });
    parts["responses"].as_object_mut().into_iter().for_each(|it| it.extend(protocol.clone()));
    // The two forms have different members, so each of them is closed.
    for form in parts["schemas"]["RedactedChange"]["oneOf"].as_array_mut().into_iter().flatten() {
        form["additionalProperties"] = json!(false);
    }
    // A writer must not write after any 403 of `verify`, so its codes have a response of their own.
    parts["responses"]["Denied"] = problem(403, "The write is denied. Do not write.", &error_codes::denials());
    openapi_examples::put(&mut told);
    told
}

/// Marks bodies as required only if they have a required member. An empty body counts as `{}`.
fn mark_required_bodies(told: &mut Value) {
    let schemas = told["components"]["schemas"].clone();
    let calls = told["paths"].as_object_mut().into_iter().flatten().flat_map(|(_, it)| it.as_object_mut());
    for (_, call) in calls.flatten() {
        let Some(body) = call.get_mut("requestBody") else { continue };
        let schema = &body["content"]["application/json"]["schema"];
        let name = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next()).unwrap_or_default();
        body["required"] = json!(!schemas[name]["required"].is_null());
    }
}

/// Sets the largest value of unsigned integers, because Rust's types and the OpenAPI formats differ.
fn bound(value: &mut Value, integer_max: u64) {
    if value["minimum"] == 0 && value["format"].is_string() {
        let most = if value["format"] == "int32" { u64::from(u32::MAX) } else { integer_max };
        let members = value.as_object_mut().into_iter();
        members.for_each(|it| drop(it.remove("format")));
        if value["maximum"].is_null() {
            value["maximum"] = json!(most);
        }
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(|it| bound(it, integer_max)),
        Value::Array(items) => items.iter_mut().for_each(|it| bound(it, integer_max)),
        _ => {}
    }
}

fn all_codes() -> Vec<&'static str> {
    let mut all: Vec<_> =
        error_codes::BY_STATUS.iter().flat_map(|it| it.2).copied().chain(error_codes::denials()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn name_of(status: u16) -> String {
    format!("Problem{status}")
}

fn problem(status: u16, what: &str, codes: &[&str]) -> Value {
    let line = |code: &&str| {
        error_codes::text_of(status, code)
            .map(|it| format!("- `{code}`: {} {}", it.meaning, it.fix))
            .unwrap_or_default()
    };
    let what = format!("{what}\n\n{}", codes.iter().map(line).collect::<Vec<_>>().join("\n"));
    let only = json!({"properties": {"code": {"enum": codes}}});
    let schema = json!({"allOf": [{"$ref": "#/components/schemas/ProblemBody"}, only]});
    json!({"description": what, "content": {"application/problem+json": {"schema": schema}}})
}

/// Adds the facts that follow from the path and the method of a call.
fn complete(path: &str, method: &str, call: &mut Value) {
    let name = call["operationId"].as_str().unwrap_or_default().to_owned();
    let of = path.trim_start_matches("/v1").split('/').find(|it| !it.is_empty()).unwrap_or_default();
    // Handlers of different modules share names, and an operation ID must be unique.
    call["operationId"] = json!(if of == name { name } else { format!("{name}_{of}") });
    let rule = TABLE.iter().find(|it| it.route == path && it.method.eq_ignore_ascii_case(method));
    let machines = rule.filter(|it| !it.machines.is_empty());
    if let Some(rule) = machines {
        describe_roles(rule, call);
    }
    let post = method == Method::POST.as_str().to_lowercase() && machines.is_some();
    if post && !KEYLESS.contains(&path) {
        push(
            &mut call["parameters"],
            json!({
                "name": "Idempotency-Key", "in": "header", "required": path.starts_with(AAP),
                "description": "The client's unique key for the request. A repeated request with the same key and body gets the stored response.",
                "schema": {"type": "string", "pattern": "^[!-~]{1,255}$", "minLength": 1, "maxLength": 255},
                "example": "8e03978e-40d5-43dd-bc93-6894a57f9324",
            }),
        );
    }
    for status in failures(path, method, call, machines.is_some()) {
        call["responses"][status.to_string()] = json!({"$ref": format!("#/components/responses/{}", name_of(status))});
    }
    if path.starts_with(AAP) {
        describe_protocol_errors(call);
    }
    if path == "/v1/verify" {
        call["responses"]["403"] = json!({"$ref": "#/components/responses/Denied"});
    }
    if path == "/mcp" {
        // Protocol errors of MCP have their own format.
        let message = json!({"schema": {"type": "object"}});
        let mut refused = problem(400, "The request is invalid.", &["malformed"]);
        refused["content"]["application/problem+json"]["schema"] = json!({"$ref": "#/components/schemas/ProblemBody"});
        refused["content"]["application/json"] = message.clone();
        call["responses"]["400"] = refused;
        call["responses"]["404"] =
            json!({"description": "The method does not exist", "content": {"application/json": message}});
    }
    if path == "/v1/interrupts" && post {
        // A signed post has no token.
        call["security"] = json!([{"token": []}, {}]);
    }
}

/// Describes errors in the form of the Agent Approval Protocol.
fn describe_protocol_errors(call: &mut Value) {
    for (status, response) in call["responses"].as_object_mut().into_iter().flatten() {
        let failed = status.parse().is_ok_and(|it: u16| it >= 400);
        if failed {
            *response = json!({"$ref": format!("#/components/responses/AapProblem{status}")});
        }
    }
}

fn describe_roles(rule: &RoutePermission, call: &mut Value) {
    let roles: Vec<&str> = rule.machines.iter().copied().map(MachineRole::as_str).collect();
    let said = call["description"].as_str().or(call["summary"].as_str()).unwrap_or_default();
    call["description"] = json!(format!("{said}\n\nRoles: {}.", roles.join(", ")).trim_start());
    call["x-roles"] = json!(roles);
    call["security"] = json!([{"token": []}]);
}

/// Returns the error statuses that a call can have.
fn failures(path: &str, method: &str, call: &Value, asks_who: bool) -> Vec<u16> {
    // Any call can come past the proxy, and any call can fail.
    let mut all = vec![421, 500];
    // A call with a token reads that token from the database and counts against its rate limit.
    if asks_who {
        all.extend([401, 403, 429, 503]);
    }
    let parameters = call["parameters"].as_array().into_iter().flatten();
    let reads = parameters.clone().any(|it| it["in"] == "path" || it["in"] == "query");
    let (body, verify) = (!call["requestBody"].is_null(), path == "/v1/verify");
    if body {
        all.push(413);
    }
    // An unreadable request of `verify` is a denial, and not a 400.
    if (reads || body) && !verify {
        all.push(400);
    }
    // The metrics are 404 if the configuration disables them.
    if (path.contains('{') || path == "/v1/threads" || path.starts_with(AAP) || path == "/metrics") && !verify {
        all.push(404);
    }
    if !matches!(method, "get") && !verify && path != "/mcp" {
        all.extend([409, 422]);
    }
    if ["/v1/threads", "/v1/transitions"].iter().any(|it| path.starts_with(it)) {
        // The values of an earlier version can be erased.
        all.push(410);
    }
    if path.starts_with("/v1/threads/{thread}") {
        // The thread can be an imported run.
        all.push(409);
    }
    if path.ends_with("/envelope") {
        // A required path can be missing or too large.
        all.push(422);
    }
    all
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(list) => list.push(item),
        list => *list = json!([item]),
    }
}
