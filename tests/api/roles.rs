//! Who may call what: every route of the gateway's table with every role, against the table of the specification,
//! which stands here once more in its own words.

use std::collections::BTreeSet;

use countersign::domain::account::MachineRole;
use countersign::service::access::NewToken;
use countersign::web::roles::TABLE;
use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Answer, Gateway, POLICY, source, spawn_gateway};

const HOST: &str = "host";
const AGENT: &str = "agent";
const WRITER: &str = "writer";
const AUDITOR: &str = "auditor";
const ADMIN: &str = "admin";
const ROLES: [&str; 5] = [HOST, AGENT, WRITER, AUDITOR, ADMIN];

/// "Who may call what", line by line.
const MAY: &[(&str, &str, &[&str])] = &[
    ("POST", "/v1/threads", &[HOST]),
    ("GET", "/v1/threads/{thread}", &[HOST, WRITER, AUDITOR]),
    ("GET", "/v1/threads/{thread}/state", &[AGENT, AUDITOR]),
    ("GET", "/v1/threads/{thread}/chain", &[HOST, AUDITOR]),
    ("POST", "/v1/threads/{thread}/transitions", &[AGENT]),
    ("POST", "/v1/threads/{thread}/rollbacks", &[AGENT]),
    ("POST", "/v1/threads/{thread}/closing", &[ADMIN]),
    ("POST", "/v1/threads/{thread}/reopening", &[ADMIN]),
    ("POST", "/v1/threads/{thread}/lapses/{write_id}/resolution", &[ADMIN]),
    ("GET", "/v1/transitions/{digest}", &[HOST, AGENT, AUDITOR]),
    ("GET", "/v1/transitions/{digest}/decision", &[HOST, AGENT, AUDITOR]),
    ("POST", "/v1/transitions/{digest}/cancellation", &[AGENT]),
    ("POST", "/v1/verify", &[WRITER]),
    ("POST", "/v1/writes/{write_id}/confirm", &[WRITER]),
    ("POST", "/v1/writes/{write_id}/abort", &[WRITER]),
    ("POST", "/v1/receipts/{jti}/revocation", &[ADMIN]),
    ("PUT", "/v1/halts/{scope}", &[ADMIN]),
    ("GET", "/v1/rejections", &[AUDITOR]),
    ("GET", "/v1/events", &[HOST, AUDITOR]),
    ("POST", "/v1/flows/{flow}/policies", &[ADMIN]),
    ("GET", "/v1/flows/{flow}/amendments", &[ADMIN, AUDITOR]),
    ("GET", "/v1/amendments/{amendment}", &[ADMIN, AUDITOR]),
    ("POST", "/v1/amendments/{amendment}/cancellation", &[ADMIN]),
    ("POST", "/v1/flows/{flow}/judgements", &[ADMIN, AUDITOR]),
    ("POST", "/v1/flows/{flow}/replays", &[ADMIN, AUDITOR]),
];

fn token_of<'a>(g: &'a Gateway, role: &str) -> &'a str {
    match role {
        HOST => &g.host,
        AGENT => &g.planner,
        WRITER => &g.writer,
        AUDITOR => &g.auditor,
        _ => &g.admin,
    }
}

/// The route with names of things in it that there are not.
fn path_of(route: &str) -> String {
    let digest = format!("sha256:{}", "0".repeat(64));
    route
        .replace("{digest}", &digest)
        .replace("{thread}", "no-such-thread")
        .replace("{write_id}", "no-such-write")
        .replace("{jti}", "AAAAAAAAAAAAAAAAAAAAAA")
        .replace("{scope}", "no-such-flow")
        .replace("{flow}", "no-such-flow")
        .replace("{amendment}", "no-such-amendment")
        .replace("{review}", "no-such-review")
}

async fn call(g: &Gateway, method: &str, path: &str, token: Option<&str>) -> Answer {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let request = g.http.request(method.clone(), format!("{}{path}", g.url));
    let request = if method == Method::GET { request } else { request.json(&json!({})) };
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    Answer::of(request.send().await.unwrap()).await
}

#[test]
fn the_gateways_table_is_the_specifications() {
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
async fn every_route_lets_in_its_roles_and_nobody_else() {
    let g = spawn_gateway().await;
    for (method, route, roles) in MAY {
        let path = path_of(route);
        for role in ROLES {
            let answer = call(&g, method, &path, Some(token_of(&g, role))).await;
            let refused = (answer.status, answer.code()) == (403, "forbidden");
            assert_eq!(refused, !roles.contains(&role), "{method} {route} as {role}: {}", answer.body);
            assert_ne!(answer.status, 401, "{method} {route} as {role}");
            assert!(
                answer.status >= 400 || ["/v1/events", "/v1/rejections"].contains(route),
                "{method} {route} as {role} did something"
            );
        }
        for nobody in [None, Some(""), Some("cs_unknown_token"), Some("x")] {
            let answer = call(&g, method, &path, nobody).await;
            assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{method} {route} as {nobody:?}");
        }
    }
}

#[tokio::test]
async fn a_machine_is_no_person_and_a_person_no_machine() {
    let g = spawn_gateway().await;
    let link = g.service.sign_in_link(&g.alice.id).await.unwrap();
    let (_, secret) = g.service.use_sign_in_link(&link).await.unwrap();
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

/// One request with one header; where it is led to is not looked at.
async fn call_once(g: &Gateway, method: &str, path: &str, header: (&str, &str)) -> Answer {
    let still = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let request = still.request(method.clone(), format!("{}{path}", g.url)).header(header.0, header.1);
    let request = if method == Method::GET { request } else { request.body("{}") };
    Answer::of(request.send().await.unwrap()).await
}

/// Everything that names a thread, a transition or a flow, asked by tokens of another flow.
#[tokio::test]
async fn a_token_of_another_flow_is_told_nothing_and_changes_nothing() {
    let g = spawn_gateway().await;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let (id, digest) = (thread["thread"].as_str().unwrap(), held["transition"].as_str().unwrap());
    let refunds = POLICY.replace("flow = \"payments\"", "flow = \"refunds\"");
    g.service.activate_policy(&"tests".try_into().unwrap(), None, source(&refunds), BTreeSet::new()).await.unwrap();
    let host = other_flows(&g, "other-host", MachineRole::Host, &[]).await;
    let agent = other_flows(&g, "other-agent", MachineRole::Agent, &["planner"]).await;
    let proposal = json!({"node": "planner", "parent": thread["transition"], "patch": {"target_user_id": 99}});
    let asked: Vec<(&str, String, &str, Option<Value>)> = vec![
        ("GET", format!("/v1/threads/{id}"), &host, None),
        ("GET", format!("/v1/threads/{id}/chain"), &host, None),
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
        // In every word what is said where there is no such thread and no such transition.
        let other = path.replace(id, "no-such-thread").replace(digest, &nowhere);
        let none = g.send(method.clone(), &other, token, body).await;
        assert_eq!(said(answer), said(none), "{method} {path}");
    }
    let events = g.get("/v1/events", &host).await.expect(200);
    assert!(!events.to_string().contains(id), "events of another flow");
    assert_eq!(g.decision(&held).await.expect(202)["status"], "held");
}

/// An answer without what names the one request.
fn said(answer: Answer) -> (u16, Value) {
    let mut body = answer.body;
    for name in ["instance", "request_id"] {
        body.as_object_mut().unwrap().remove(name);
    }
    (answer.status, body)
}

async fn other_flows(g: &Gateway, name: &str, role: MachineRole, nodes: &[&str]) -> String {
    let new = NewToken {
        name: name.to_owned(),
        role,
        owner: "platform".to_owned(),
        flow: Some("refunds".try_into().unwrap()),
        nodes: nodes.iter().map(|it| (*it).try_into().unwrap()).collect(),
    };
    g.service.add_token(&new).await.unwrap().1
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
    // And another agent's held proposal is not this one's to take back.
    let held = g.held(&thread).await;
    let path = format!("/v1/transitions/{}/cancellation", held["transition"].as_str().unwrap());
    let answer = g.post(&path, &g.parser, json!({"reason": "not mine"})).await;
    assert_eq!((answer.status, answer.code()), (403, "forbidden"));
}
