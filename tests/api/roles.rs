//! Tests every route of the gateway's table with every role, against the table in the specification. The test has its
//! own copy of that table.

use std::collections::BTreeSet;

use countersign_domain::identity::account::{MachineRole, PersonRole};

use countersign_service::identity::accounts::{NewAccount, NewToken};
use countersign_web::auth::permissions::TABLE;
use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, POLICY, TestGateway, code_of, source, spawn_gateway};
use crate::passwords::hashed;

const HOST: &str = "host";
const AGENT: &str = "agent";
const WRITER: &str = "writer";
const AUDITOR: &str = "auditor";
const ADMIN: &str = "admin";
const MONITOR: &str = "monitor";
const INSTANCE: &str = "instance";
const PROVISIONER: &str = "provisioner";
const ROLES: [&str; 8] = [HOST, AGENT, INSTANCE, PROVISIONER, WRITER, AUDITOR, ADMIN, MONITOR];

/// The table "Who may call what", one entry for each line.
const MAY: &[(&str, &str, &[&str])] = &[
    ("POST", "/v1/threads", &[HOST]),
    ("GET", "/v1/threads/{thread}", &[HOST, WRITER, AUDITOR]),
    ("GET", "/v1/threads/{thread}/state", &[AGENT, AUDITOR]),
    ("GET", "/v1/threads/{thread}/chain", &[HOST, AUDITOR]),
    ("POST", "/v1/threads/{thread}/transitions", &[AGENT]),
    ("POST", "/v1/threads/{thread}/rollbacks", &[AGENT]),
    ("GET", "/v1/threads/{thread}/envelope", &[AGENT, AUDITOR]),
    ("POST", "/v1/envelopes/verify", &[AGENT, AUDITOR]),
    ("GET", "/v1/flows/{flow}/nodes/{node}/envelope-secret", &[AGENT]),
    ("POST", "/v1/threads/{thread}/forks", &[AGENT]),
    ("POST", "/v1/threads/{thread}/joins", &[AGENT]),
    ("POST", "/v1/threads/{thread}/episode/events", &[AGENT]),
    ("GET", "/v1/threads/{thread}/episode/{artefact}", &[HOST, AUDITOR]),
    ("POST", "/v1/threads/{thread}/closing", &[ADMIN]),
    ("POST", "/v1/threads/{thread}/reopening", &[ADMIN]),
    ("POST", "/v1/threads/{thread}/lapses/{write_id}/resolution", &[ADMIN]),
    ("GET", "/v1/transitions/{digest}", &[HOST, AGENT, AUDITOR]),
    ("GET", "/v1/transitions/{digest}/decision", &[HOST, AGENT, AUDITOR]),
    ("POST", "/v1/transitions/{digest}/cancellation", &[AGENT]),
    ("POST", "/mcp", &[AGENT]),
    ("POST", "/mcp/upstreams/{name}", &[INSTANCE]),
    ("GET", "/mcp/upstreams/{name}", &[INSTANCE]),
    ("DELETE", "/mcp/upstreams/{name}", &[INSTANCE]),
    ("POST", "/aap/v1/instances", &[PROVISIONER]),
    ("POST", "/aap/v1/requests", &[INSTANCE]),
    ("GET", "/aap/v1/requests/{id}", &[INSTANCE]),
    ("DELETE", "/aap/v1/requests/{id}", &[INSTANCE]),
    ("POST", "/aap/v1/requests/{id}/consume", &[INSTANCE]),
    ("POST", "/aap/v1/requests/{id}/outcome", &[INSTANCE]),
    ("POST", "/v1/callable-tools", &[INSTANCE]),
    ("POST", "/v1/hooks/claude-code", &[INSTANCE]),
    ("POST", "/v1/verify", &[WRITER]),
    ("POST", "/v1/writes/{write_id}/confirm", &[WRITER]),
    ("POST", "/v1/writes/{write_id}/abort", &[WRITER]),
    ("POST", "/v1/receipts/{jti}/revocation", &[ADMIN]),
    ("PUT", "/v1/halts/{scope}", &[ADMIN]),
    ("POST", "/v1/endpoints", &[ADMIN]),
    ("GET", "/v1/endpoints", &[ADMIN, AUDITOR]),
    ("GET", "/v1/endpoints/{endpoint}", &[ADMIN, AUDITOR]),
    ("PATCH", "/v1/endpoints/{endpoint}", &[ADMIN]),
    ("DELETE", "/v1/endpoints/{endpoint}", &[ADMIN]),
    ("POST", "/v1/endpoints/{endpoint}/secret", &[ADMIN]),
    ("POST", "/v1/endpoints/{endpoint}/test", &[ADMIN]),
    ("POST", "/v1/endpoints/{endpoint}/redeliveries", &[ADMIN]),
    ("GET", "/v1/endpoints/{endpoint}/deliveries", &[ADMIN, AUDITOR]),
    ("GET", "/v1/endpoints/{endpoint}/deliveries/{delivery}", &[ADMIN, AUDITOR]),
    ("POST", "/v1/endpoints/{endpoint}/deliveries/{delivery}/redelivery", &[ADMIN]),
    ("GET", "/v1/rejections", &[AUDITOR]),
    ("GET", "/v1/passkeys", &[AUDITOR, ADMIN]),
    ("GET", "/v1/receipts/{jti}/evidence", &[AUDITOR]),
    ("POST", "/v1/interrupts", &[HOST]),
    ("GET", "/v1/interrupts/{interrupt}", &[HOST, AUDITOR]),
    ("GET", "/v1/events", &[HOST, AUDITOR]),
    ("POST", "/v1/flows/{flow}/policies", &[ADMIN]),
    ("GET", "/v1/flows/{flow}/amendments", &[ADMIN, AUDITOR]),
    ("GET", "/v1/amendments/{amendment}", &[ADMIN, AUDITOR]),
    ("POST", "/v1/amendments/{amendment}/cancellation", &[ADMIN]),
    ("POST", "/v1/flows/{flow}/judgements", &[ADMIN, AUDITOR]),
    ("POST", "/v1/flows/{flow}/replays", &[ADMIN, AUDITOR]),
    ("GET", "/metrics", &[MONITOR, AUDITOR]),
];

fn token_of<'a>(g: &'a TestGateway, role: &str) -> &'a str {
    match role {
        HOST => &g.host,
        AGENT => &g.planner,
        INSTANCE => &g.instance,
        PROVISIONER => &g.provisioner,
        WRITER => &g.writer,
        AUDITOR => &g.auditor,
        MONITOR => &g.monitor,
        _ => &g.admin,
    }
}

/// Returns the route with names of things that do not exist.
pub fn path_of(route: &str) -> String {
    let digest = format!("sha256:{}", "0".repeat(64));
    route
        .replace("{digest}", &digest)
        .replace("{thread}", "no-such-thread")
        .replace("{write_id}", "no-such-write")
        .replace("{jti}", "AAAAAAAAAAAAAAAAAAAAAA")
        .replace("{scope}", "no-such-flow")
        .replace("{flow}", "no-such-flow")
        .replace("{node}", "planner")
        .replace("{amendment}", "no-such-amendment")
        .replace("{interrupt}", "no-such-interrupt")
        .replace("{review}", "no-such-review")
        .replace("{account}", "no-such-account")
        .replace("{token}", "no-such-token")
        .replace("{link}", "no-such-link")
        .replace("{artefact}", "state.json")
        .replace("{version}", "1")
        .replace("{name:.*}", "no-such-asset")
        .replace("{name}", "no-such-server")
}

async fn call(g: &TestGateway, method: &str, path: &str, token: Option<&str>) -> ApiResponse {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let request = g.http.request(method.clone(), format!("{}{path}", g.url));
    let request = if method == Method::GET { request } else { request.json(&json!({})) };
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    ApiResponse::of(request.send().await.unwrap()).await
}

#[test]
fn role_table_equals_the_specification() {
    let ours: BTreeSet<_> = TABLE
        .iter()
        .filter(|rule| !rule.machines.is_empty())
        .map(|rule| {
            let roles: BTreeSet<&str> = rule.machines.iter().map(|role| role.as_str()).collect();
            (rule.method, rule.route, roles)
        })
        .collect();
    let theirs: BTreeSet<_> =
        MAY.iter().map(|(method, route, roles)| (*method, *route, roles.iter().copied().collect())).collect();
    assert_eq!(ours, theirs);
    let routes: BTreeSet<_> = TABLE.iter().map(|rule| (rule.method, rule.route)).collect();
    assert_eq!(routes.len(), TABLE.len(), "a route stands there once, or the second line would say nothing");
}

#[tokio::test]
async fn every_route_admits_only_its_roles() {
    let g = spawn_gateway().await;
    for (method, route, roles) in MAY {
        let path = path_of(route);
        for role in ROLES {
            let answer = call(&g, method, &path, Some(token_of(&g, role))).await;
            let refused = (answer.status, answer.code()) == (403, "forbidden");
            assert_eq!(refused, !roles.contains(&role), "{method} {route} as {role}: {}", answer.body);
            assert_ne!(answer.status, 401, "{method} {route} as {role}");
            let said = answer.body["detail"].as_str().or(answer.body["error"]["message"].as_str());
            let may = said.and_then(|it| it.split_once("it takes ")).map(|(_, may)| may);
            let told: BTreeSet<_> = may.unwrap_or_default().split(" or ").collect();
            let verify = *route == "/v1/verify";
            assert!(!refused || verify || told == roles.iter().copied().collect(), "{method} {route}: {}", answer.body);
            // A hook denies by its answer.
            let is_denied = answer.body["hookSpecificOutput"]["permissionDecision"] == "deny";
            assert!(
                answer.status >= 400
                    || is_denied
                    || ["/v1/events", "/v1/passkeys", "/v1/rejections", "/v1/endpoints", "/metrics"].contains(route),
                "{method} {route} as {role} did something"
            );
        }
        for nobody in [None, Some(""), Some("cs_unknown_token"), Some("x")] {
            let answer = call(&g, method, &path, nobody).await;
            assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{method} {route} as {nobody:?}");
        }
    }
}

/// The cause helps a client, and an unknown token and a wrong secret look alike.
#[tokio::test]
async fn each_cause_of_a_401_has_its_text() {
    let g = spawn_gateway().await;
    let parts: Vec<&str> = g.planner.splitn(3, '_').collect();
    let wrong = format!("cs_{}_{}", parts[1], "A".repeat(parts[2].len()));
    let unknown = format!("cs_{}_{}", "0".repeat(parts[1].len()), parts[2]);
    let shown = async |authorization: Option<&str>| {
        let mut get = g.http.get(format!("{}/v1/threads/t", g.url));
        if let Some(authorization) = authorization {
            get = get.header("authorization", authorization);
        }
        let answer = ApiResponse::of(get.send().await.unwrap()).await;
        assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{authorization:?}");
        answer.body["detail"].as_str().unwrap().to_owned()
    };
    assert!(shown(None).await.starts_with("The request has no token."));
    for malformed in ["Basic eDp5", "Bearer", "Bearer x"] {
        assert!(shown(Some(malformed)).await.starts_with("The header `Authorization` has no token."), "{malformed}");
    }
    let of_unknown = shown(Some(&format!("Bearer {unknown}"))).await;
    assert!(of_unknown.starts_with("The token is unknown."), "{of_unknown}");
    assert_eq!(shown(Some(&format!("Bearer {wrong}"))).await, of_unknown, "a guess learns nothing");
    let id = g.service.identity.token_of(&g.planner).await.unwrap().record.id;
    g.service.identity.revoke_token(&id).await.unwrap();
    let ended = shown(Some(&format!("Bearer {}", g.planner))).await;
    assert!(ended.starts_with("The token was revoked or has expired."), "{ended}");
    assert_eq!(shown(Some(&format!("Bearer {wrong}"))).await, of_unknown, "without the secret, the end is not shown");
}

#[tokio::test]
async fn a_machine_is_no_person_and_a_person_no_machine() {
    let g = spawn_gateway().await;
    let link = g.service.identity.sign_in_link(&g.alice.id).await.unwrap();
    let (_, secret) = g.service.identity.use_sign_in_link(&link).await.unwrap();
    for rule in TABLE {
        let path = path_of(rule.route);
        if rule.machines.is_empty() {
            for role in ROLES {
                let answer =
                    call_once(&g, rule.method, &path, ("authorization", &format!("Bearer {}", token_of(&g, role))))
                        .await;
                assert!(answer.status >= 300, "{} {} as {role}: {}", rule.method, rule.route, answer.status);
            }
        } else {
            let answer = call_once(&g, rule.method, &path, ("cookie", &format!("countersign={secret}"))).await;
            assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{} {}", rule.method, rule.route);
        }
    }
}

/// Sends one request with one header, and does not follow redirects.
async fn call_once(g: &TestGateway, method: &str, path: &str, header: (&str, &str)) -> ApiResponse {
    let still = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let request = still.request(method.clone(), format!("{}{path}", g.url)).header(header.0, header.1);
    let request = if method == Method::GET { request } else { request.body("{}") };
    ApiResponse::of(request.send().await.unwrap()).await
}

/// Calls every route that names a thread, a transition or a flow with tokens of another flow.
#[tokio::test]
async fn token_of_another_flow_reads_and_changes_nothing() {
    let g = spawn_gateway().await;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let (id, digest) = (thread["thread"].as_str().unwrap(), held["transition"].as_str().unwrap());
    let refunds = POLICY.replace("flow = \"payments\"", "flow = \"refunds\"");
    g.service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, source(&refunds), BTreeSet::new())
        .await
        .unwrap();
    let host = other_flows(&g, "other-host", MachineRole::Host, &[]).await;
    let agent = other_flows(&g, "other-agent", MachineRole::Agent, &["planner"]).await;
    let proposal = json!({"node": "planner", "parent": thread["transition"], "patch": {"target_user_id": 99}});
    let interrupt = g.post("/v1/interrupts", &g.host, crate::interrupts::asked()).await.expect(202);
    let interrupt = interrupt["id"].as_str().unwrap();
    let asked: Vec<(&str, String, &str, Option<Value>)> = vec![
        ("GET", format!("/v1/interrupts/{interrupt}"), &host, None),
        ("GET", format!("/v1/threads/{id}"), &host, None),
        ("GET", format!("/v1/threads/{id}/chain"), &host, None),
        ("GET", format!("/v1/threads/{id}/episode/state.json"), &host, None),
        ("GET", format!("/v1/transitions/{digest}"), &host, None),
        ("GET", format!("/v1/transitions/{digest}/decision"), &host, None),
        ("GET", format!("/v1/threads/{id}"), &agent, None),
        ("GET", format!("/v1/threads/{id}/state?node=planner"), &agent, None),
        ("GET", format!("/v1/transitions/{digest}"), &agent, None),
        ("GET", format!("/v1/transitions/{digest}/decision"), &agent, None),
        ("POST", format!("/v1/threads/{id}/transitions"), &agent, Some(proposal)),
        (
            "POST",
            format!("/v1/threads/{id}/rollbacks"),
            &agent,
            Some(json!({"node": "planner", "parent": held["transition"], "to_version": 0})),
        ),
        ("POST", format!("/v1/transitions/{digest}/cancellation"), &agent, Some(json!({"reason": "x"}))),
        ("POST", "/v1/threads".to_owned(), &host, Some(json!({"flow": "payments", "state": {}}))),
    ];
    let nowhere = format!("sha256:{}", "0".repeat(64));
    for (method, path, token, body) in asked {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let answer = g.send(method.clone(), &path, token, body.clone()).await;
        assert!([403, 404].contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.body);
        // The answer has the same text as for an unknown thread and an unknown transition.
        let other = path.replace(id, "no-such-thread").replace(digest, &nowhere);
        let other = other.replace(interrupt, "no-such-interrupt");
        let none = g.send(method.clone(), &other, token, body).await;
        assert_eq!(said(answer), said(none), "{method} {path}");
    }
    let events = g.get("/v1/events", &host).await.expect(200);
    assert!(!events.to_string().contains(id), "events of another flow");
    assert_eq!(g.decision(&held).await.expect(202)["status"], "held");
}

/// Returns a response without its request ID.
fn said(answer: ApiResponse) -> (u16, Value) {
    let mut body = answer.body;
    for name in ["instance", "request_id"] {
        body.as_object_mut().unwrap().remove(name);
    }
    (answer.status, body)
}

/// A token of the flow `refunds`.
pub async fn other_flows(g: &TestGateway, name: &str, role: MachineRole, nodes: &[&str]) -> String {
    let new = NewToken {
        name: name.to_owned(),
        role,
        owner: countersign_service::identity::owner_names::NewOwner::Group("platform".to_owned()),
        flow: Some("refunds".try_into().unwrap()),
        nodes: nodes.iter().map(|it| (*it).try_into().unwrap()).collect(),
    };
    g.service.identity.add_token(&new).await.unwrap().1
}

/// A token of the right flow and another node.
#[tokio::test]
async fn a_node_that_is_not_the_tokens_own_is_forbidden() {
    let g = spawn_gateway().await;
    let thread = g.thread().await;
    let id = thread["thread"].as_str().unwrap();
    let (path, parent) = (format!("/v1/threads/{id}"), &thread["transition"]);
    let asked = [
        ("GET", format!("{path}/state?node=planner"), None),
        ("GET", format!("{path}/state?node=database_writer"), None),
        ("GET", format!("{path}/state?node=no_such_node"), None),
        ("POST", format!("{path}/transitions"), Some(json!({"node": "planner", "parent": parent, "patch": {}}))),
        (
            "POST",
            format!("{path}/transitions"),
            Some(json!({"node": "planner", "parent": parent, "patch": {}, "reaffirm": true})),
        ),
        ("POST", format!("{path}/rollbacks"), Some(json!({"node": "planner", "parent": parent, "to_version": 0}))),
    ];
    for (method, path, body) in asked {
        let answer = g.send(Method::from_bytes(method.as_bytes()).unwrap(), &path, &g.parser, body).await;
        assert_eq!((answer.status, answer.code()), (403, "forbidden"), "{method} {path}");
    }
    // An agent cannot cancel another agent's pending proposal.
    let held = g.held(&thread).await;
    let path = format!("/v1/transitions/{}/cancellation", held["transition"].as_str().unwrap());
    let answer = g.post(&path, &g.parser, json!({"reason": "not mine"})).await;
    assert_eq!((answer.status, answer.code()), (403, "forbidden"));
}

/// Every kind of caller: unauthenticated clients, people with a session cookie, and machines with a token.
const PEOPLE: [(&str, PersonRole); 3] =
    [("reviewer", PersonRole::Reviewer), ("auditor", PersonRole::Auditor), ("admin", PersonRole::Admin)];

/// The error for a person whose role may not do this. A form from another site gets another error.
const REFUSED: &str = "may not do that: it takes";

/// One line of the table in the docs.
struct RoleTableLine {
    method: String,
    route: String,
    /// `anyone`, or the roles of people.
    people: BTreeSet<String>,
    machines: BTreeSet<String>,
}

fn source_of(path: &str) -> String {
    std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The table of `docs/security/permissions.md`, line by line.
fn documented() -> Vec<RoleTableLine> {
    let text = source_of("docs/security/permissions.md");
    let table = text.split("| call | people | machines |").nth(1).expect("docs/security/permissions.md has the table");
    let lines = table.lines().skip(2).take_while(|it| it.starts_with('|'));
    let read = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [call, people, machines] = cells[..] else { panic!("{line}") };
        let (method, route) = call.trim_matches('`').split_once(' ').unwrap();
        let roles = |cell: &str| cell.split(", ").filter(|it| !it.is_empty()).map(str::to_owned).collect();
        RoleTableLine {
            method: method.to_owned(),
            route: route.to_owned(),
            people: roles(people),
            machines: roles(machines),
        }
    };
    lines.map(read).collect()
}

/// Returns every registered method and route, as the source code has them.
fn registered() -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    let api = source_of("crates/web/src/api/mod.rs") + &source_of("crates/web/src/api/endpoints/mod.rs");
    let (pages, site) = (source_of("crates/web/src/pages/mod.rs"), source_of("crates/web/src/server.rs"));
    // A long route is on its own line.
    let api = api.split(".route(").map(str::trim_start).collect::<Vec<_>>().join(".route(");
    let pieces = api.split(".route(\"").skip(1);
    let pieces = pieces.chain([&pages, &site].into_iter().flat_map(|it| it.split("web::resource(\"").skip(1)));
    for piece in pieces {
        let (route, rest) = piece.split_once('"').unwrap();
        for (call, method) in
            [("get()", "GET"), ("post()", "POST"), ("put()", "PUT"), ("patch()", "PATCH"), ("delete()", "DELETE")]
        {
            if rest.contains(call) {
                all.insert((method.to_owned(), route.to_owned()));
            }
        }
    }
    all
}

fn row(method: &str, route: &str, people: &str, machines: &str) -> String {
    format!("| `{method} {route}` | {people} | {machines} |")
}

#[test]
fn documented_role_table_has_every_route() {
    let name = |role: &PersonRole| PEOPLE.iter().find(|it| it.1 == *role).unwrap().0;
    let asked: BTreeSet<(String, String)> =
        TABLE.iter().map(|it| (it.method.to_owned(), it.route.to_owned())).collect();
    let mut ours: BTreeSet<String> = TABLE
        .iter()
        .map(|rule| {
            let people: BTreeSet<&str> = rule.people.iter().map(name).collect();
            let machines: BTreeSet<&str> = rule.machines.iter().map(|it| it.as_str()).collect();
            let join = |it: BTreeSet<&str>| it.into_iter().collect::<Vec<_>>().join(", ");
            row(rule.method, rule.route, &join(people), &join(machines))
        })
        .collect();
    let registered = registered();
    assert!(registered.len() >= 60, "{registered:?}");
    let unknown: Vec<_> = asked.difference(&registered).collect();
    assert!(unknown.is_empty(), "in the gateway's table, and no route: {unknown:?}");
    ours.extend(registered.difference(&asked).map(|(method, route)| row(method, route, "anyone", "")));
    let join = |it: &BTreeSet<String>| it.iter().cloned().collect::<Vec<_>>().join(", ");
    let theirs: BTreeSet<String> =
        documented().iter().map(|it| row(&it.method, &it.route, &join(&it.people), &join(&it.machines))).collect();
    let missing: Vec<_> = ours.difference(&theirs).collect();
    let stale: Vec<_> = theirs.difference(&ours).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "docs/security/permissions.md: add {missing:#?}, take out {stale:#?}"
    );
}

/// The name of the caller, whether it is a person or a machine, and the header that authenticates it.
type RoleCaller = (&'static str, Option<&'static str>, Option<(&'static str, String)>);

#[derive(PartialEq, Eq, Debug)]
enum AccessResult {
    Open,
    Unknown,
    Refused,
}

/// Returns whether the response shows that the caller passed the role check.
fn door(status: u16, to: &str, text: &str) -> AccessResult {
    let code = serde_json::from_str::<Value>(text).map(|it| code_of(&it).to_owned()).unwrap_or_default();
    match status {
        401 if code == "unauthenticated" => AccessResult::Unknown,
        303 if to.starts_with("/sign-in") => AccessResult::Unknown,
        403 if code == "forbidden" || text.contains(REFUSED) => AccessResult::Refused,
        _ => AccessResult::Open,
    }
}

#[tokio::test]
async fn every_route_admits_only_the_documented_callers() {
    let g = spawn_gateway().await;
    let mut callers: Vec<RoleCaller> = vec![("anyone", None, None)];
    for (name, role) in PEOPLE {
        let new = NewAccount { name: format!("a-{name}"), role, groups: BTreeSet::new() };
        let account =
            g.service.identity.add_account_hashed(&new, &hashed("correct horse battery").await).await.unwrap();
        let link = g.service.identity.sign_in_link(&account.id).await.unwrap();
        let (_, secret) = g.service.identity.use_sign_in_link(&link).await.unwrap();
        callers.push((name, Some("person"), Some(("cookie", format!("countersign={secret}")))));
    }
    for role in ROLES {
        callers.push((role, Some("machine"), Some(("authorization", format!("Bearer {}", token_of(&g, role))))));
    }
    let still = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    for line in documented() {
        let anyone = line.people.contains("anyone");
        let for_machines = !line.machines.is_empty();
        for (name, kind, header) in &callers {
            // A person who signs out could not make the later calls.
            if line.route == "/sign-out" && *kind == Some("person") {
                continue;
            }
            let method = Method::from_bytes(line.method.as_bytes()).unwrap();
            let request = still.request(method.clone(), format!("{}{}", g.url, path_of(&line.route)));
            let request = match header {
                Some((name, value)) => request.header(*name, value),
                None => request,
            };
            let request = match (method == Method::GET, for_machines) {
                (true, _) => request,
                (false, true) => request.json(&json!({})),
                (false, false) => request.header("content-type", "application/x-www-form-urlencoded").body("csrf=none"),
            };
            let answer = request.header("accept", "text/html").send().await.unwrap();
            let stored = answer.headers().get("cache-control").map(|it| it.to_str().unwrap().to_owned());
            let public = ["/.well-known/jwks.json", "/assets/{name:.*}"].contains(&line.route.as_str());
            let is_kept_out = public || stored.as_deref() == Some("no-store");
            assert!(is_kept_out, "{} {} as {name}: {stored:?}", line.method, line.route);
            let to = answer.headers().get("location").map(|it| it.to_str().unwrap().to_owned()).unwrap_or_default();
            let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
            let seen = door(status, &to, &text);
            let expected = match *kind {
                _ if anyone => AccessResult::Open,
                Some("person") if line.people.contains(*name) => AccessResult::Open,
                Some("machine") if line.machines.contains(*name) => AccessResult::Open,
                Some("person") if !for_machines => AccessResult::Refused,
                Some("machine") if for_machines => AccessResult::Refused,
                _ => AccessResult::Unknown,
            };
            assert_eq!(seen, expected, "{} {} as {name} ({kind:?}): {status} {text}", line.method, line.route);
            // The role may send this form, but the test sends it without the values of a page.
            if seen == AccessResult::Open && method == Method::POST && line.machines.is_empty() {
                assert!(status == 403 && text.contains("open the page again"), "{}: {status} {text}", line.route);
            }
        }
    }
}
