//! Tests expensive judgements. Each schema check has a limit, and large requests are judged off the threads that answer
//! requests. The tests measure no time: refusals and counters show which work ran where.

use countersign_domain::identity::party::Party;
use countersign_domain::reviews::{Ballot, VoteVerdict};

use countersign_service::inbox::InboxFilter;
use countersign_service::inbox::list::InboxPageSelection;
use serde_json::{Map, Value, json};

use crate::gateway::{TestGateway, ballot, spawn_gateway, spawn_with_policy};

/// A policy that judges the whole state by the schema `s`.
const BY_SCHEMA: &str = "flow = \"payments\"\nschema = \"s\"\n[nodes.planner]\nreads = [\"*\"]\nwrites = [\"*\"]\n";

/// A policy under which an agent copies a redacted value.
const COPIED: &str = r#"
flow = "payments"

[nodes.planner]
reads = ["*"]
writes = ["*"]

[redaction]
hide = ["secret"]
"#;

/// A policy under which a reviewer decides about changes of a state with redacted values.
const HELD: &str = r#"
flow = "payments"
protected = ["paid"]

[nodes.planner]
reads = ["*"]
writes = ["paid"]

[approval]
attempts = 9

[[approval.stages]]
groups = ["reviewers"]

[redaction]
hide = ["secret"]
"#;

/// Returns this many schemas, each of which checks every member.
fn schemas(keyword: &str, many: usize, each: &str) -> Value {
    json!({"s": json!({keyword: vec![json!({"additionalProperties": {"type": each}}); many]}).to_string()})
}

fn members(many: usize) -> Value {
    (0..many).map(|it| (format!("k{it:04}"), json!(it))).collect::<Map<_, _>>().into()
}

/// How much work of a kind was done off the threads that answer requests.
async fn worked(g: &TestGateway, kind: &str) -> u64 {
    let text =
        g.http.get(format!("{}/metrics", g.url)).bearer_auth(&g.monitor).send().await.unwrap().text().await.unwrap();
    let sample = format!("countersign_queued_work_total{{kind=\"{kind}\"}} ");
    text.lines().find_map(|it| it.strip_prefix(&sample)).unwrap().parse().unwrap()
}

async fn tried(g: &TestGateway, schemas: &Value, patch: &Value) -> Value {
    let ask = json!({"state": {}, "node": "planner", "patch": patch, "policy": BY_SCHEMA, "schemas": schemas});
    g.post("/v1/flows/payments/judgements", &g.auditor, ask).await.expect(200)
}

#[tokio::test]
async fn schema_with_a_thousand_alternatives_is_one_error_and_limited() {
    let g = spawn_gateway().await;
    let forms = tried(&g, &schemas("anyOf", 1_200, "string"), &members(9_000)).await;
    let codes =
        |told: &Value| told["errors"].as_array().unwrap().iter().map(|it| it["code"].clone()).collect::<Vec<_>>();
    assert_eq!((&forms["outcome"], codes(&forms)), (&json!("reject"), vec![json!("schema")]));
    // Every one of these schemas matches, and checking all of them takes too long.
    let fits = tried(&g, &schemas("allOf", 1_200, "integer"), &members(9_000)).await;
    assert_eq!((&fits["outcome"], codes(&fits)), (&json!("reject"), vec![json!("schema_too_costly")]));
    let fewer = tried(&g, &schemas("allOf", 1_200, "integer"), &members(90)).await;
    assert_eq!(fewer["outcome"], "commit");
}

#[tokio::test]
async fn dry_runs_and_policies_are_worked_on_off_the_threads_that_answer() {
    let g = spawn_gateway().await;
    let before = (worked(&g, "dry_run").await, worked(&g, "policy").await);
    tried(&g, &schemas("anyOf", 2, "integer"), &members(3)).await;
    let after = (worked(&g, "dry_run").await, worked(&g, "policy").await);
    assert_eq!(after.0, before.0 + 1);
    assert!(after.1 > before.1, "the candidate, and the active one if it was not compiled yet");
    let activated = json!({"policy": BY_SCHEMA, "schemas": schemas("anyOf", 2, "integer")});
    g.post("/v1/flows/payments/policies", &g.admin, activated).await.expect(200);
    assert!(worked(&g, "policy").await > after.1);
}

#[tokio::test]
async fn only_large_requests_are_judged_on_worker_threads() {
    let g = spawn_gateway().await;
    let activated = json!({"policy": BY_SCHEMA, "schemas": schemas("anyOf", 200, "integer")});
    g.post("/v1/flows/payments/policies", &g.admin, activated).await.expect(200);
    let thread = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": {}})).await.expect(201);
    let sends = async |patch: &Value, parent: &Value| {
        g.propose(&thread["thread"], parent, (&g.planner, "planner"), patch.clone()).await
    };
    let small = sends(&members(3), &thread["transition"]).await.expect(201);
    assert_eq!(worked(&g, "judgement").await, 0);
    let large = sends(&members(2_000), &small["transition"]).await.expect(201);
    assert_eq!(worked(&g, "judgement").await, 1);
    let refused = sends(&json!({"k0001": "text"}), &large["transition"]).await;
    assert_eq!((refused.status, worked(&g, "judgement").await), (422, 2));
    let first = json!({"flow": "payments", "state": members(2_000)});
    g.post("/v1/threads", &g.host, first).await.expect(201);
    assert_eq!(worked(&g, "judgement").await, 3);
}

#[tokio::test]
async fn large_states_of_earlier_versions_are_checked_off_the_threads_that_answer() {
    let g = spawn_gateway().await;
    let open = json!({"policy": BY_SCHEMA, "schemas": {"s": "{}"}});
    g.post("/v1/flows/payments/policies", &g.admin, open).await.expect(200);
    let counted = async |state: Value| {
        let made = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
        let (thread, parent) = (&made["thread"], &made["transition"]);
        g.propose(thread, parent, (&g.planner, "planner"), json!({"k0000": 10})).await.expect(201);
        let before = worked(&g, "state").await;
        let path = format!("/v1/threads/{}/state?node=planner&version=0", thread.as_str().unwrap());
        g.get(&path, &g.auditor).await.expect(200);
        worked(&g, "state").await - before
    };
    assert_eq!((counted(members(3)).await, counted(members(2_000)).await), (0, 1));
}

#[tokio::test]
async fn expensive_replay_ends_its_page_early() {
    const PROPOSALS: usize = 12;
    let g = spawn_gateway().await;
    let open = json!({"policy": BY_SCHEMA, "schemas": {"s": "{}"}});
    g.post("/v1/flows/payments/policies", &g.admin, open).await.expect(200);
    let new = json!({"flow": "payments", "state": members(5_000)});
    let thread = g.post("/v1/threads", &g.host, new).await.expect(201);
    let mut head = thread["transition"].clone();
    for it in 0..PROPOSALS {
        let patch = json!({"k0000": it + 10});
        let made = g.propose(&thread["thread"], &head, (&g.planner, "planner"), patch).await.expect(201);
        head = made["transition"].clone();
    }
    // The first form admits everything. How much work the others would be is estimated before.
    let forms: Vec<_> = std::iter::once(json!(true)).chain(vec![json!({"type": "string"}); 1_200]).collect();
    let mut ask = json!({"policy": BY_SCHEMA, "schemas": {"s": json!({"anyOf": forms}).to_string()}, "limit": 200});
    let mut pages = Vec::new();
    loop {
        let page = g.post("/v1/flows/payments/replays", &g.auditor, ask.clone()).await.expect(200);
        pages.push(page["proposals"].as_array().unwrap().len());
        if page["next"].is_null() {
            break;
        }
        ask["after"] = page["next"].clone();
    }
    assert_eq!(pages.iter().sum::<usize>(), PROPOSALS);
    assert!(pages[0] < PROPOSALS && pages[0] > 0, "{pages:?}");
    assert_eq!(worked(&g, "judgement").await as usize, PROPOSALS);
}

/// Each reader of a large state gets its redaction from another thread. A small state is redacted at once.
#[tokio::test]
async fn large_states_are_redacted_off_the_threads_that_answer() {
    let g = spawn_with_policy(HELD).await;
    let reader = Party::from(&g.alice);
    for (values, times) in [(3, 0), (2_000, 1)] {
        let secret: Map<_, _> = (0..values).map(|it| (format!("k{it:04}"), json!(format!("value {it:06}")))).collect();
        let state = json!({"flow": "payments", "state": {"secret": secret}});
        let made = g.post("/v1/threads", &g.host, state).await.expect(201);
        let (id, patch) = (made["thread"].as_str().unwrap().try_into().unwrap(), json!({"paid": 1}));
        let held = g.propose(&made["thread"], &made["transition"], (&g.planner, "planner"), patch).await.expect(202);
        let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
        let denial = Ballot { comment: Some("no".to_owned()), ..ballot(&held, VoteVerdict::Deny) };
        g.service.reviews.vote(&g.bob.id, &review, &denial, None).await.unwrap();
        let again = json!({"node": "planner", "parent": made["transition"], "patch": {"paid": 1}, "attempt": 2});
        let path = format!("/v1/threads/{}/transitions", made["thread"].as_str().unwrap());
        let held = g.post(&path, &g.planner, again).await.expect(202);
        let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
        let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
        let refused = json!({"other": 1});
        let mut before = worked(&g, "redaction").await;
        let mut redacted = async |what: &str| {
            let after = worked(&g, "redaction").await;
            assert_eq!(after - before, times, "{what} on {values} values");
            before = after;
        };
        g.get(&path, &g.host).await.expect(200);
        redacted("a transition").await;
        // The comments of earlier denials are redacted with the review, which has its place in the queue already.
        g.service.reviews.review(&review, &g.alice).await.unwrap();
        redacted("a review").await;
        g.service.inbox.find(&g.alice, &InboxFilter::open(), &InboxPageSelection::First, 1).await.unwrap();
        redacted("the inbox").await;
        g.service.threads.version_facts(&id, 0, &reader).await.unwrap();
        redacted("a version").await;
        g.service.threads.compare(&id, 0, 0, &reader).await.unwrap();
        redacted("a comparison").await;
        g.service.threads.history(&id, None, 25, &reader).await.unwrap();
        redacted("a history").await;
        g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
        g.propose(&made["thread"], &made["transition"], (&g.planner, "planner"), refused).await.expect(422);
        redacted("a rejection").await;
    }
}

/// Copies of a redacted value that many versions moved. Each version that is looked at follows one trail of moves, and not
/// one trail for each copy. A move needs two indexes: of what its node could read, and of what left its place.
#[tokio::test]
async fn the_copies_of_a_value_are_traced_together_and_off_the_threads_that_answer() {
    const COPIES: usize = 300;
    const MOVES: usize = 12;
    let g = spawn_with_policy(COPIED).await;
    let made = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": {}})).await.expect(201);
    let hidden = "a hidden text";
    let mut head = made["transition"].clone();
    let mut propose = async |patch: Value| {
        head =
            g.propose(&made["thread"], &head, (&g.planner, "planner"), patch).await.expect(201)["transition"].clone();
        head.clone()
    };
    propose(json!({"secret": hidden})).await;
    for it in 0..MOVES {
        let (here, there) = if it % 2 == 0 { (COPIES, 0) } else { (0, COPIES) };
        propose(json!({"one": vec![hidden; here], "other": vec![hidden; there]})).await;
    }
    let before = worked(&g, "trace").await;
    let last = propose(json!({"one": vec![hidden; COPIES], "other": []})).await;
    g.get(&format!("/v1/transitions/{}", last.as_str().unwrap()), &g.host).await.expect(200);
    let steps = worked(&g, "trace").await - before;
    assert!((1..=2 * (MOVES as u64 + 2)).contains(&steps), "{steps} steps for {COPIES} copies");
}
