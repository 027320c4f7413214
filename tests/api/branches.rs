//! Branches, and what comes of joining them: what is held, what is refused, and what nobody learns. On both databases.

use std::time::Duration;

use countersign::domain::account::MachineRole;
use countersign::domain::chain::entry::Entry;
use countersign::domain::chain::jws::{self, Typ};
use countersign::domain::review::{Verdict, VoteRefused};
use countersign::service::error::Error;
use countersign::service::rollbacks::Rollback;
use countersign::service::votes::Voted;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::gateway::{Answer, Gateway, owned_token, token};
use crate::rules::{Scene, codes};

on_both! {
    what_branches_found_apart_is_joined_and_written(super::research("write")),
    a_branch_has_its_own_chain_and_says_whose_it_is(super::research("write")),
    the_same_fork_again_is_the_same_and_another_ones_name_is_taken(super::research("write")),
    what_people_would_decide_commits_on_a_branch_and_is_held_at_the_join(super::research("write")),
    what_is_protected_is_held_even_where_another_branch_has_the_word(super::research("write")),
    a_branch_that_owes_makes_the_join_owe(super::research("write")),
    under_a_policy_that_covers_commits_an_approved_join_settles_it(super::research("commit")),
    whoever_worked_on_a_branch_does_not_approve_its_join(super::research("write")),
    a_conflict_names_its_places_and_every_strategy_settles_it(super::research("write")),
    a_node_that_does_not_read_it_all_learns_nothing(super::research("write")),
    a_conflict_about_something_hidden_ends_where_that_begins(super::research("write")),
    a_join_is_looked_up_before_the_head(super::research("write")),
    only_branches_of_this_very_head_are_joined(super::research("write")),
    nothing_of_a_branch_is_written_or_decided(super::research("write")),
    what_is_closed_halted_held_or_written_is_neither_forked_nor_joined(super::research("write")),
    of_two_joins_at_once_one_is_on_the_head(super::research("write")),
    a_join_and_a_branch_that_goes_on_are_told_apart(super::research("write")),
    branches_spend_what_the_thread_has(super::budgeted()),
    a_held_join_is_judged_again_on_what_its_branches_were(super::research("write")),
    a_head_has_so_many_branches_and_no_more(super::research("write")),
    a_request_that_is_none_is_told_where(super::research("write")),
}

fn research(covers: &str) -> String {
    format!(
        r#"flow = "payments"
trust_initial = true
protected = ["target_user_id"]

[join]
confidence = "sure"

[transitions.keyed_arrays."found"]
key = "id"

[nodes.planner]
reads = ["question", "found", "notes", "sure", "target_user_id", "contact"]
writes = ["question", "found", "notes", "sure", "target_user_id", "contact"]
rollback = true

[nodes.input_parser]
reads = ["question", "notes"]
writes = ["notes", "aside"]

[nodes.database_writer]
reads = ["question", "found", "notes", "target_user_id"]
writes = ["result_ref"]
writer = true

[approval]
covers = "{covers}"
ttl = "24h"
receipt_ttl = "10m"
write_lease = "30s"

[[approval.stages]]
groups = ["reviewers"]
need = 1

[redaction]
hide = ["contact.mail"]
"#
    )
}

fn budgeted() -> String {
    let budget = "[budgets.thread]\ntokens = 100\nthen = \"hold\"\n\n[approval]\n";
    research("write").replacen("[approval]\n", budget, 1)
}

/// A thread with a question, its head, and branches of it by name.
struct Forked {
    id: Value,
    head: Value,
    branches: Vec<Value>,
}

impl Forked {
    async fn new(g: &Gateway, names: &[&str]) -> Self {
        let state = json!({
            "question": "who", "found": [{"id": "start"}], "notes": {}, "sure": 0.5, "target_user_id": 17,
            "contact": {"mail": "a@b.example", "name": "Eva"},
        });
        let made = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
        let branches = fork(g, &made["thread"], names).await.expect(201)["branches"].as_array().unwrap().clone();
        Self { id: made["thread"].clone(), head: made["transition"].clone(), branches }
    }

    /// The planner's change on a branch.
    async fn change(&self, g: &Gateway, index: usize, patch: Value) -> Value {
        let branch = &self.branches[index];
        g.propose(&branch["thread"], &branch["transition"], (&g.planner, "planner"), patch).await.expect(201)
    }

    async fn join(&self, g: &Gateway, names: &[&str], strategy: &str) -> Answer {
        self.join_with(g, json!({"branches": names, "strategy": strategy})).await
    }

    async fn join_with(&self, g: &Gateway, more: Value) -> Answer {
        let mut body = json!({"node": "planner", "parent": self.head});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        g.post(&self.path("joins"), &g.planner, body).await
    }

    fn path(&self, what: &str) -> String {
        format!("/v1/threads/{}/{what}", self.id.as_str().unwrap())
    }

    async fn state(&self, g: &Gateway) -> Value {
        state(g, &self.id).await
    }
}

async fn fork(g: &Gateway, thread: &Value, names: &[&str]) -> Answer {
    let path = format!("/v1/threads/{}/forks", thread.as_str().unwrap());
    g.post(&path, &g.planner, json!({"node": "planner", "branches": names})).await
}

async fn state(g: &Gateway, thread: &Value) -> Value {
    let path = format!("/v1/threads/{}/state?node=planner", thread.as_str().unwrap());
    g.get(&path, &g.planner).await.expect(200)["state"].clone()
}

async fn now(g: &Gateway, thread: &Value) -> Value {
    g.get(&format!("/v1/threads/{}", thread.as_str().unwrap()), &g.host).await.expect(200)
}

fn places(answer: &Answer) -> Vec<&str> {
    answer.body["errors"].as_array().unwrap().iter().map(|it| it["pointer"].as_str().unwrap()).collect()
}

async fn what_branches_found_apart_is_joined_and_written(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["law", "press"]).await;
    it.change(g, 0, json!({"found": [{"id": "start"}, {"id": "statute"}], "notes": {"law": 1}})).await;
    it.change(g, 1, json!({"found": [{"id": "start"}, {"id": "article"}], "question": "who owns it"})).await;
    let joined = it.join(g, &["press", "law"], "union").await.expect(201);
    assert_eq!((&joined["outcome"], &joined["version"]), (&json!("committed"), &json!(1)));
    let state = it.state(g).await;
    assert_eq!(
        state["found"],
        json!([{"id": "start"}, {"id": "statute"}, {"id": "article"}]),
        "by the branches' names"
    );
    assert_eq!((&state["question"], &state["notes"]), (&json!("who owns it"), &json!({"law": 1})));
    let told =
        g.get(&format!("/v1/transitions/{}", joined["transition"].as_str().unwrap()), &g.auditor).await.expect(200);
    let statement = &told["statement"];
    assert_eq!((&statement["type"], &statement["join"]["strategy"]), (&json!("join"), &json!("union")));
    let names: Vec<&Value> = statement["join"]["branches"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, [&json!("law"), &json!("press")], "in their own order, whatever was asked for");
    g.verify(&it.id, &joined["transition"], &Value::Null, "w1").await.expect(200);
    g.confirm("w1").await.expect(200);
    scene.passes_an_audit().await;
}

async fn a_branch_has_its_own_chain_and_says_whose_it_is(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["law"]).await;
    let branch = &it.branches[0];
    let origin = json!({"thread": it.id, "transition": it.head, "version": 0, "name": "law"});
    let told = now(g, &branch["thread"]).await;
    assert_eq!((&told["branch_of"], &told["version"], &told["flow"]), (&origin, &json!(0), &json!("payments")));
    assert_eq!(now(g, &it.id).await["branch_of"], Value::Null);
    let page =
        g.get(&format!("/v1/threads/{}/chain", branch["thread"].as_str().unwrap()), &g.auditor).await.expect(200);
    let first = &page["entries"][0];
    assert_eq!((&first["statement"]["type"], &first["statement"]["fork"]), (&json!("fork"), &origin));
    assert_eq!((&first["statement"]["parent"], &first["statement"]["node"]), (&Value::Null, &json!("planner")));
    let path = format!("/v1/threads/{}/chain", it.id.as_str().unwrap());
    let parent = g.get(&path, &g.auditor).await.expect(200);
    assert_ne!(first["statement"]["to"], parent["entries"][0]["statement"]["to"], "salted anew");
    assert_eq!(state(g, &branch["thread"]).await, it.state(g).await);
    let events = g.get("/v1/events", &g.auditor).await.expect(200);
    let forked = events["events"].as_array().unwrap().iter().find(|it| it["type"] == "thread.forked");
    assert!(forked.is_none_or(|forked| forked["data"]["branches"][0]["thread"] == branch["thread"]));
    scene.passes_an_audit().await;
}

async fn the_same_fork_again_is_the_same_and_another_ones_name_is_taken(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a", "b"]).await;
    let again = fork(g, &it.id, &["a", "b"]).await.expect(201);
    assert_eq!(again["branches"].as_array().unwrap(), &it.branches);
    let path = it.path("forks");
    let as_parser = g.post(&path, &g.parser, json!({"node": "input_parser", "branches": ["a"]})).await;
    assert_eq!((as_parser.status, as_parser.code()), (409, "exists"));
    assert_eq!(fork(g, &it.id, &["b", "c"]).await.code(), "exists", "neither all of them nor none");
    let moved = g.propose(&it.id, &it.head, (&g.planner, "planner"), json!({"question": "when"})).await.expect(201);
    let late = json!({"node": "planner", "branches": ["a", "b"], "parent": it.head});
    let found = g.post(&path, &g.planner, late).await.expect(201);
    assert_eq!(found["branches"].as_array().unwrap(), &it.branches, "asked again after the head has moved");
    let late = json!({"node": "planner", "branches": ["z"], "parent": it.head});
    assert_eq!(g.post(&path, &g.planner, late).await.code(), "head_moved");
    let anew = fork(g, &it.id, &["a"]).await.expect(201);
    assert_eq!(anew["transition"], moved["transition"]);
    assert_ne!(anew["branches"][0]["thread"], it.branches[0]["thread"], "a name stands once for each head");
    scene.passes_an_audit().await;
}

async fn what_people_would_decide_commits_on_a_branch_and_is_held_at_the_join(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["law", "press", "web"]).await;
    it.change(g, 0, json!({"notes": {"law": 1}})).await;
    let injected = it.change(g, 2, json!({"target_user_id": 666})).await;
    assert_eq!(injected["would_hold"][0]["pointer"], "target_user_id");
    let entry = jws::read::<Entry>(injected["entry"].as_str().unwrap(), Typ::Entry).unwrap();
    assert!(entry.claims_unverified().owes, "and it owes");
    let held = it.join(g, &["law", "press", "web"], "union").await.expect(202);
    assert_eq!((&held["outcome"], &held["reasons"][0]["pointer"]), (&json!("held"), &json!("target_user_id")));
    assert_eq!(g.vote(&g.alice, &held, Verdict::Deny).await.unwrap(), Voted::Denied);
    let rest = it.join(g, &["law", "press"], "union").await.expect(201);
    assert_eq!((&it.state(g).await["target_user_id"], &rest["version"]), (&json!(17), &json!(1)));
    g.verify(&it.id, &rest["transition"], &Value::Null, "w1").await.expect(200);
    scene.passes_an_audit().await;
}

async fn what_is_protected_is_held_even_where_another_branch_has_the_word(scene: Scene) {
    let g = &scene.gateway;
    for strategy in ["last_write", "vote", "confidence"] {
        let it = Forked::new(g, &["a", "b"]).await;
        it.change(g, 0, json!({"target_user_id": 666, "sure": 0.1})).await;
        it.change(g, 1, json!({"target_user_id": 666, "notes": {"b": 1}})).await;
        let both = it.join(g, &["a", "b"], strategy).await.expect(202);
        assert_eq!(both["reasons"][0]["pointer"], "target_user_id", "{strategy}");
        // What one changed and another took back within itself is nothing; what is outvoted is something.
        let it = Forked::new(g, &["a", "b"]).await;
        it.change(g, 0, json!({"target_user_id": {"x": 1}, "sure": 0.1})).await;
        it.change(g, 1, json!({"target_user_id": {"x": 2}, "sure": 0.9})).await;
        let held = it.join(g, &["a", "b"], strategy).await;
        assert_eq!(held.status, 202, "{strategy}: {}", held.body);
    }
    scene.passes_an_audit().await;
}

async fn a_branch_that_owes_makes_the_join_owe(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a", "b"]).await;
    let there = it.change(g, 0, json!({"target_user_id": 666})).await;
    let branch = &it.branches[0]["thread"];
    let back = json!({"target_user_id": 17, "notes": {"a": 1}});
    let back = g.propose(branch, &there["transition"], (&g.planner, "planner"), back).await.expect(201);
    assert!(now(g, branch).await["owes"].as_bool().unwrap(), "{back}");
    let held = it.join(g, &["a", "b"], "union").await.expect(202);
    assert_eq!(held["reasons"][0]["pointer"], "target_user_id", "it was set, though nothing differs");
    let decision = g.approved(&held).await;
    assert!(now(g, &it.id).await["owes"].as_bool().unwrap());
    let denied = g.verify(&it.id, &held["transition"], &Value::Null, "w1").await;
    assert_eq!((denied.status, denied.code()), (403, "receipt_missing"));
    g.verify(&it.id, &held["transition"], &decision["receipt"], "w2").await.expect(200);
    scene.passes_an_audit().await;
}

async fn under_a_policy_that_covers_commits_an_approved_join_settles_it(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a", "b"]).await;
    it.change(g, 0, json!({"target_user_id": 42})).await;
    it.change(g, 1, json!({"notes": {"b": 1}})).await;
    let held = it.join(g, &["a", "b"], "union").await.expect(202);
    let decision = g.approved(&held).await;
    assert_eq!(now(g, &it.id).await["owes"], json!(false));
    g.verify(&it.id, &held["transition"], &decision["receipt"], "w1").await.expect(200);
    scene.passes_an_audit().await;
}

async fn whoever_worked_on_a_branch_does_not_approve_its_join(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a", "b"]).await;
    let own = owned_token(&g.service, "alices", MachineRole::Agent, &["planner"], g.alice.id.as_str()).await;
    let branch = &it.branches[0];
    let patch = json!({"target_user_id": 42});
    g.propose(&branch["thread"], &branch["transition"], (&own, "planner"), patch).await.expect(201);
    let held = it.join(g, &["a", "b"], "union").await.expect(202);
    let refused = g.vote(&g.alice, &held, Verdict::Approve).await;
    assert!(matches!(refused, Err(Error::Vote(VoteRefused::Ineligible(_)))), "{refused:?}");
    assert_eq!(g.vote(&g.bob, &held, Verdict::Approve).await.unwrap(), Voted::Approved);
    let decision = g.decision(&held).await.expect(200);
    g.verify(&it.id, &held["transition"], &decision["receipt"], "w1").await.expect(200);
    scene.passes_an_audit().await;
}

async fn a_conflict_names_its_places_and_every_strategy_settles_it(scene: Scene) {
    let g = &scene.gateway;
    let changes = [
        json!({"question": "a", "sure": 0.2, "found": [{"id": "start"}, {"id": "new", "by": "a"}]}),
        json!({"question": "b", "sure": 0.9}),
        json!({"question": "a", "found": [{"id": "start"}, {"id": "new", "by": "c"}]}),
    ];
    let names = ["a", "b", "c"];
    let settle =
        json!([{"path": "/question", "value": "mine"}, {"path": "/sure", "value": 1}, {"path": "/found/1/by"}]);
    for (strategy, question) in [("last_write", "a"), ("vote", "a"), ("confidence", "b"), ("explicit", "mine")] {
        let it = Forked::new(g, &names).await;
        for (index, change) in changes.iter().enumerate() {
            it.change(g, index, change.clone()).await;
        }
        let refused = it.join(g, &names, "union").await;
        assert_eq!((refused.status, refused.code()), (409, "conflict"));
        assert_eq!(places(&refused), ["/found/1/by", "/question", "/sure"]);
        assert_eq!(codes(&refused), ["conflict"; 3]);
        let mut body = json!({"branches": names, "strategy": strategy});
        if strategy == "explicit" {
            let open = it.join_with(g, json!({"branches": names, "strategy": strategy, "resolve": []})).await;
            assert_eq!((open.code(), places(&open).len()), ("conflict", 3));
            body["resolve"] = settle.clone();
        }
        it.join_with(g, body).await.expect(201);
        assert_eq!(it.state(g).await["question"], question, "{strategy}");
    }
    scene.passes_an_audit().await;
}

async fn a_node_that_does_not_read_it_all_learns_nothing(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a", "b"]).await;
    // The parser writes a place that neither it nor the planner reads.
    for (index, value) in [(0, "one"), (1, "two")] {
        let branch = &it.branches[index];
        let node = (g.parser.as_str(), "input_parser");
        g.propose(&branch["thread"], &branch["transition"], node, json!({"aside": value})).await.expect(201);
    }
    let both = it.join(g, &["a", "b"], "union").await;
    let one = it.join(g, &["a"], "union").await;
    for refused in [&both, &one] {
        assert_eq!((refused.status, refused.code()), (422, "rejected"));
        assert_eq!((codes(refused), places(refused)), (vec!["read_not_allowed"], vec![""]), "{}", refused.body);
        assert!(!refused.body.to_string().contains("aside"), "{}", refused.body);
    }
    let body = json!({"node": "input_parser", "parent": it.head, "branches": ["a"], "strategy": "confidence"});
    let unread = g.post(&it.path("joins"), &g.parser, body).await;
    assert_eq!((codes(&unread), places(&unread)), (vec!["read_not_allowed"], vec![""]), "nor how sure a branch is");
    scene.passes_an_audit().await;
}

async fn a_conflict_about_something_hidden_ends_where_that_begins(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a", "b"]).await;
    it.change(g, 0, json!({"contact": {"mail": {"box": "secret-one"}, "name": "Eva"}})).await;
    it.change(g, 1, json!({"contact": {"mail": {"box": "secret-two"}, "name": "Eva"}})).await;
    let refused = it.join(g, &["a", "b"], "union").await;
    assert_eq!((refused.code(), places(&refused)), ("conflict", vec!["/contact/mail"]));
    // What was sent to settle it stands in no record that others read.
    let settle = json!([{"path": "/contact/mail", "value": "secret-three"}]);
    let wrong = json!({"branches": ["a", "b"], "strategy": "explicit", "resolve": settle, "usage": {"tokens": 1}});
    it.join_with(g, wrong).await.expect(201);
    let outsider = json!({"node": "input_parser", "parent": it.head, "branches": ["a"], "strategy": "explicit",
        "resolve": [{"path": "/contact/mail", "value": "secret-four"}]});
    let _ = g.post(&it.path("joins"), &g.parser, outsider).await;
    let rejections = g.get("/v1/rejections", &g.auditor).await.expect(200).to_string();
    let events = g.get("/v1/events?limit=500", &g.auditor).await.expect(200).to_string();
    for secret in ["secret-one", "secret-two", "secret-three", "secret-four"] {
        assert!(!rejections.contains(secret) && !events.contains(secret), "{secret}");
    }
    scene.passes_an_audit().await;
}

async fn a_join_is_looked_up_before_the_head(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a", "b"]).await;
    it.change(g, 0, json!({"target_user_id": 42})).await;
    let held = it.join(g, &["a", "b"], "union").await.expect(202);
    let again = it.join(g, &["a", "b"], "union").await.expect(202);
    assert_eq!(held["transition"], again["transition"]);
    let other = it.join(g, &["b", "a"], "union").await;
    assert_eq!(other.code(), "thread_held", "another order is another request");
    g.approved(&held).await;
    assert_eq!(it.join(g, &["a", "b"], "union").await.expect(202)["transition"], held["transition"]);
    let late = it.join_with(g, json!({"branches": ["a", "b"], "strategy": "union", "attempt": 2})).await;
    assert_eq!(late.code(), "head_moved", "no branch is joined twice");
    scene.passes_an_audit().await;
}

async fn only_branches_of_this_very_head_are_joined(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a"]).await;
    let other = Forked::new(g, &["b"]).await;
    other.change(g, 0, json!({"notes": {"b": 1}})).await;
    let unknown = it.join(g, &["a", "b"], "union").await;
    assert_eq!((unknown.status, unknown.code(), places(&unknown)), (400, "malformed", vec!["/branches/1"]));
    // Somebody makes a thread of the very name that a branch would have.
    let name = countersign::domain::branch::Branch::thread_of(
        &it.id.as_str().unwrap().try_into().unwrap(),
        it.head.as_str().unwrap().try_into().unwrap(),
        &"mine".try_into().unwrap(),
    );
    let state = json!({"question": "who", "found": [], "notes": {}, "sure": 1, "target_user_id": 666});
    let made = json!({"flow": "payments", "thread": name, "state": state});
    g.post("/v1/threads", &g.host, made).await.expect(201);
    let planted = it.join(g, &["mine"], "union").await;
    assert_eq!((planted.code(), places(&planted)), ("malformed", vec!["/branches/0"]));
    assert_eq!(fork(g, &it.id, &["mine"]).await.code(), "exists");
    // A branch of an older head is no branch of this one, and a join on the older head is late.
    it.change(g, 0, json!({"target_user_id": 666})).await;
    let moved = g.propose(&it.id, &it.head, (&g.planner, "planner"), json!({"question": "when"})).await.expect(201);
    let older = it.join_with(g, json!({"parent": moved["transition"], "branches": ["a"], "strategy": "union"})).await;
    assert_eq!((older.code(), places(&older)), ("malformed", vec!["/branches/0"]));
    assert_eq!(it.join(g, &["a"], "union").await.code(), "head_moved");
    // Neither from outside of the flow, nor as another node than one's own.
    let stranger = token(&g.service, "stranger", MachineRole::Agent, &["input_parser"]).await;
    let body = json!({"node": "planner", "parent": moved["transition"], "branches": ["a"], "strategy": "union"});
    assert_eq!(g.post(&it.path("joins"), &stranger, body).await.code(), "forbidden");
    let body = json!({"node": "planner", "branches": ["z"]});
    assert_eq!(g.post(&it.path("forks"), &stranger, body).await.code(), "forbidden");
    scene.passes_an_audit().await;
}

async fn nothing_of_a_branch_is_written_or_decided(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a"]).await;
    let (thread, first) = (&it.branches[0]["thread"], &it.branches[0]["transition"]);
    let denied = g.verify(thread, first, &Value::Null, "w1").await;
    assert_eq!((denied.status, denied.code()), (403, "branch"));
    let changed = it.change(g, 0, json!({"notes": {"a": 1}})).await;
    assert_eq!(g.verify(thread, &changed["transition"], &Value::Null, "w2").await.code(), "branch");
    assert_eq!(fork(g, thread, &["b"]).await.code(), "wrong_state");
    let path = format!("/v1/threads/{}/joins", thread.as_str().unwrap());
    let body = json!({"node": "planner", "parent": changed["transition"], "branches": ["a"], "strategy": "union"});
    assert_eq!(g.post(&path, &g.planner, body).await.code(), "wrong_state");
    let reaffirm = json!({"node": "planner", "parent": changed["transition"], "patch": {}, "reaffirm": true});
    let path = format!("/v1/threads/{}/transitions", thread.as_str().unwrap());
    let signed = g.post(&path, &g.planner, reaffirm).await.expect(201);
    assert!(signed["would_hold"].is_array(), "nobody is asked");
    let back = Rollback {
        thread: thread.as_str().unwrap().try_into().unwrap(),
        node: "planner".try_into().unwrap(),
        parent: signed["transition"].as_str().unwrap().try_into().unwrap(),
        to_version: 0,
        attempt: 1,
        reason: None,
    };
    let refused = g.service.ask_for_rollback(&g.alice.id, &back).await;
    assert!(matches!(refused, Err(Error::WrongState(_))), "{refused:?}");
    assert_eq!(now(g, thread).await["status"], "open");
    scene.passes_an_audit().await;
}

async fn what_is_closed_halted_held_or_written_is_neither_forked_nor_joined(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a", "b"]).await;
    it.change(g, 0, json!({"notes": {"a": 1}})).await;
    let both = async |code: &str| {
        assert_eq!(fork(g, &it.id, &["z"]).await.code(), code);
        assert_eq!(it.join(g, &["a"], "union").await.code(), code);
    };
    let halt = |on: bool| {
        g.send(
            reqwest::Method::PUT,
            "/v1/halts/payments",
            &g.admin,
            Some(json!({"proposing": on, "verifying": false, "reason": "r"})),
        )
    };
    halt(true).await.expect(200);
    both("halted").await;
    halt(false).await.expect(200);
    let closing = async |thread: &Value, what: &str| {
        let path = format!("/v1/threads/{}/{what}", thread.as_str().unwrap());
        g.post(&path, &g.admin, json!({"reason": "r"})).await
    };
    closing(&it.id, "closing").await.expect(200);
    both("closed").await;
    closing(&it.id, "reopening").await.expect(200);
    closing(&it.branches[1]["thread"], "closing").await.expect(200);
    assert_eq!(it.join(g, &["a", "b"], "union").await.code(), "closed", "a branch that somebody closed");
    g.verify(&it.id, &it.head, &Value::Null, "w1").await.expect(200);
    both("write_in_progress").await;
    g.pass(Duration::from_secs(31));
    g.propose(&it.id, &it.head, (&g.planner, "planner"), json!({"target_user_id": 42})).await.expect(202);
    both("thread_held").await;
    scene.passes_an_audit().await;
}

async fn of_two_joins_at_once_one_is_on_the_head(scene: Scene) {
    let g = &scene.gateway;
    let names = ["a", "b", "c", "d"];
    let it = Forked::new(g, &names).await;
    for (index, name) in names.iter().enumerate() {
        it.change(g, index, json!({"notes": {*name: 1}})).await;
    }
    let answers = join_all(names.iter().map(|name| it.join(g, std::slice::from_ref(name), "union"))).await;
    let committed: Vec<_> = answers.iter().filter(|it| it.status == 201).collect();
    assert_eq!(committed.len(), 1, "{:?}", answers.iter().map(|it| &it.body).collect::<Vec<_>>());
    for other in answers.iter().filter(|it| it.status != 201) {
        assert!(["head_moved", "busy"].contains(&other.code()), "{}", other.body);
    }
    assert_eq!(it.state(g).await["notes"].as_object().unwrap().len(), 1);
    scene.passes_an_audit().await;
}

async fn a_join_and_a_branch_that_goes_on_are_told_apart(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a", "b"]).await;
    let first = it.change(g, 0, json!({"target_user_id": 42})).await;
    let held = it.join(g, &["a", "b"], "union").await.expect(202);
    // What becomes of the branch afterwards changes nothing of what people decide on.
    let branch = &it.branches[0]["thread"];
    let more = json!({"target_user_id": 666});
    g.propose(branch, &first["transition"], (&g.planner, "planner"), more).await.expect(201);
    g.approved(&held).await;
    assert_eq!(it.state(g).await["target_user_id"], 42);
    scene.passes_an_audit().await;
}

async fn branches_spend_what_the_thread_has(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a", "b"]).await;
    let spend = async |index: usize, parent: &Value, tokens: u32, note: u32| {
        let thread = it.branches[index]["thread"].as_str().unwrap();
        let patch = json!({"notes": {format!("n{index}"): note}});
        let body = json!({"node": "planner", "parent": parent, "patch": patch, "usage": {"tokens": tokens}});
        g.post(&format!("/v1/threads/{thread}/transitions"), &g.planner, body).await
    };
    let one = spend(0, &it.branches[0]["transition"], 60, 1).await.expect(201);
    let over = spend(0, &one["transition"], 60, 2).await;
    assert_eq!(codes(&over), ["budget"], "nobody is asked on a branch");
    let two = spend(1, &it.branches[1]["transition"], 60, 1).await.expect(201);
    assert_eq!(two["would_hold"], Value::Null, "each branch sees its own sum");
    let untold = it.join(g, &["b"], "union").await;
    assert_eq!(codes(&untold), ["budget"], "what is bounded is told");
    let alone = json!({"branches": ["b"], "strategy": "union", "usage": {"tokens": 0}, "attempt": 2});
    let mut together = alone.clone();
    together["branches"] = json!(["a", "b"]);
    together["strategy"] = json!("last_write");
    let held = it.join_with(g, together).await.expect(202);
    assert!(held["reasons"].as_array().unwrap().iter().any(|it| it["code"] == "budget"), "{held}");
    g.approved(&held).await;
    assert_eq!(now(g, &it.id).await["spent"]["tokens"], 120, "all of it is the thread's by then");
    scene.passes_an_audit().await;
}

async fn a_held_join_is_judged_again_on_what_its_branches_were(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a", "b"]).await;
    let first = it.change(g, 0, json!({"target_user_id": 42})).await;
    let held = it.join(g, &["a", "b"], "union").await.expect(202);
    let branch = &it.branches[0]["thread"];
    let more = json!({"target_user_id": 666});
    g.propose(branch, &first["transition"], (&g.planner, "planner"), more).await.expect(201);
    let policy = research("write").replace("ttl = \"24h\"", "ttl = \"12h\"");
    let body = json!({"policy": policy, "schemas": {}, "accepts": [it_policy(g, &held).await]});
    g.post("/v1/flows/payments/policies", &g.admin, body).await.expect(200);
    for review in g.service.holds_to_judge_again().await.unwrap() {
        g.service.judge_hold_again(&review).await.unwrap();
    }
    let decision = g.decision(&held).await.expect(200);
    let next = decision["superseded_by"].as_str().unwrap().to_owned();
    let told = g.get(&format!("/v1/transitions/{next}"), &g.auditor).await.expect(200);
    assert_eq!(told["statement"]["join"]["branches"][0]["transition"], first["transition"], "the head that it had");
    let anew = json!({"transition": next, "review": {"id": told["review"]["id"]}});
    g.approved(&anew).await;
    assert_eq!(it.state(g).await["target_user_id"], 42);
    scene.passes_an_audit().await;
}

async fn it_policy(g: &Gateway, held: &Value) -> Value {
    let told =
        g.get(&format!("/v1/transitions/{}", held["transition"].as_str().unwrap()), &g.auditor).await.expect(200);
    told["statement"]["policy"].clone()
}

async fn a_head_has_so_many_branches_and_no_more(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["first"]).await;
    for turn in 0..4 {
        let names: Vec<String> = (0..8).map(|at| format!("b{turn}-{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let some = if turn == 3 { &names[..7] } else { &names[..] };
        fork(g, &it.id, some).await.expect(201);
    }
    assert_eq!(fork(g, &it.id, &["one-more"]).await.code(), "wrong_state");
    g.propose(&it.id, &it.head, (&g.planner, "planner"), json!({"question": "when"})).await.expect(201);
    fork(g, &it.id, &["one-more"]).await.expect(201);
    scene.passes_an_audit().await;
}

async fn a_request_that_is_none_is_told_where(scene: Scene) {
    let g = &scene.gateway;
    let it = Forked::new(g, &["a"]).await;
    for (body, place) in [
        (json!({"branches": [], "strategy": "union"}), "/branches"),
        (json!({"branches": ["a", "a"], "strategy": "union"}), "/branches"),
        (json!({"branches": ["a"], "strategy": "explicit"}), "/resolve"),
        (json!({"branches": ["a"], "strategy": "union", "resolve": []}), "/resolve"),
        (json!({"branches": ["a"], "strategy": "explicit", "resolve": [{"path": "x"}]}), "/resolve/0/path"),
        (json!({"branches": ["a"], "strategy": "explicit", "resolve": [{"path": "/sure"}]}), "/resolve"),
    ] {
        let refused = it.join_with(g, body.clone()).await;
        assert_eq!((refused.status, places(&refused)), (400, vec![place]), "{body}");
    }
    assert_eq!(it.join(g, &["a"], "guess").await.status, 400);
    let names: Vec<String> = (0..9).map(|at| format!("b{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for wrong in [&[][..], &["a", "a"], &["no/name"], &names] {
        assert_eq!(fork(g, &it.id, wrong).await.status, 400, "{wrong:?}");
    }
    it.change(g, 0, json!({"sure": 7})).await;
    let unsure = it.join(g, &["a"], "confidence").await;
    assert_eq!((unsure.status, places(&unsure)), (400, vec!["/branches/0"]));
    scene.passes_an_audit().await;
}
