//! Tests the creation of branches, and their use.

use super::*;

on_both! {
    closed_halted_held_or_reserved_thread_is_not_forked_or_joined(super::research("write")),
}

on_both_in_full! {
    branch_has_its_own_chain_and_names_its_parent(super::research("write")),
    repeated_fork_is_the_same_fork_and_names_are_unique(super::research("write")),
    nothing_of_a_branch_is_written_or_decided(super::research("write")),
    only_nodes_with_fork_permission_fork(super::research("write")),
    branch_that_cannot_be_joined_accepts_no_proposal(super::research("write")),
    attempts_on_branches_count_with_those_on_the_thread(super::impatient()),
    branches_use_the_budget_of_their_thread(super::budgeted()),
    branches_of_a_head_are_limited(super::research("write")),
    malformed_request_is_refused_with_its_path(super::research("write")),
}

async fn branch_has_its_own_chain_and_names_its_parent(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["law"]).await;
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

async fn repeated_fork_is_the_same_fork_and_names_are_unique(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
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

async fn nothing_of_a_branch_is_written_or_decided(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a"]).await;
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
    assert!(signed["would_hold"].is_array(), "no approval is possible on a branch");
    let back = RollbackInput {
        thread: thread.as_str().unwrap().try_into().unwrap(),
        node: "planner".try_into().unwrap(),
        parent: signed["transition"].as_str().unwrap().try_into().unwrap(),
        to_version: 0,
        attempt: 1,
        reason: None,
    };
    let refused = g.service.proposals.ask_for_rollback(&g.alice.id, &back).await;
    assert!(matches!(refused, Err(Error::WrongState(_))), "{refused:?}");
    assert_eq!(now(g, thread).await["status"], "open");
    scene.passes_an_audit().await;
}

async fn only_nodes_with_fork_permission_fork(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a"]).await;
    let ask = json!({"node": "input_parser", "branches": ["z"]});
    let refused = g.post(&it.path("forks"), &g.parser, ask).await;
    assert_eq!((refused.status, refused.code()), (403, "forbidden"));
    assert!(refused.body["detail"].as_str().unwrap().contains("fork = true"), "{}", refused.body);
    // A node that loses `fork` still sees its earlier branches and makes no new ones.
    crate::under_new_policy::activate(g, &research("write").replacen("fork = true\n", "", 1), &[]).await;
    assert_eq!(fork(g, &it.id, &["a"]).await.expect(201)["branches"].as_array().unwrap(), &it.branches);
    assert_eq!(fork(g, &it.id, &["b"]).await.code(), "forbidden");
    scene.passes_an_audit().await;
}

async fn branch_that_cannot_be_joined_accepts_no_proposal(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a"]).await;
    let (thread, first) = (&it.branches[0]["thread"], &it.branches[0]["transition"]);
    let on_the_branch = || g.propose(thread, first, (&g.planner, "planner"), json!({"notes": {"a": 1}}));
    let closing = async |what: &str| g.post(&it.path(what), &g.admin, json!({"reason": "r"})).await.expect(200);
    closing("closing").await;
    assert_eq!(on_the_branch().await.code(), "closed");
    closing("reopening").await;
    let one = on_the_branch().await.expect(201);
    g.propose(&it.id, &it.head, (&g.planner, "planner"), json!({"question": "when"})).await.expect(201);
    let late = g.propose(thread, &one["transition"], (&g.planner, "planner"), json!({"notes": {"a": 2}})).await;
    assert_eq!((late.status, late.code()), (409, "wrong_state"));
    assert!(late.body["detail"].as_str().unwrap().contains("the parent thread has a newer head"), "{}", late.body);
    assert_eq!(on_the_branch().await.expect(201), one, "what was answered before is answered so again");
    scene.passes_an_audit().await;
}

async fn attempts_on_branches_count_with_those_on_the_thread(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    let wrong = async |thread: &Value, head: &Value, patch: Value| {
        g.propose(thread, head, (&g.planner, "planner"), patch).await
    };
    let first = wrong(&it.id, &it.head, json!({"result_ref": 1})).await;
    assert_eq!(codes(&first), ["write_not_allowed"]);
    for (index, branch) in it.branches.iter().enumerate() {
        let (thread, head) = (&branch["thread"], &branch["transition"]);
        let second = wrong(thread, head, json!({"result_ref": index})).await;
        assert_eq!(codes(&second), ["write_not_allowed", "attempts_exhausted"], "{}", second.body);
        assert_eq!(codes(&wrong(thread, head, json!({"notes": {}})).await), ["attempts_exhausted"]);
    }
    scene.passes_an_audit().await;
}

async fn closed_halted_held_or_reserved_thread_is_not_forked_or_joined(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
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

async fn branches_use_the_budget_of_their_thread(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
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

async fn branches_of_a_head_are_limited(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["first"]).await;
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

async fn malformed_request_is_refused_with_its_path(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a"]).await;
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
