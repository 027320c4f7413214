//! Tests joins: their branches, their heads and their conflicts.

use super::*;

on_both! {
    changes_of_two_branches_are_joined_and_written(super::research("write")),
    conflict_names_its_paths_and_every_strategy_settles_it(super::research("write")),
    node_with_partial_reads_learns_nothing_from_a_conflict(super::research("write")),
    conflict_over_a_redacted_value_names_only_the_redacted_key(super::research("write")),
    repeated_join_is_found_before_the_head_is_checked(super::research("write")),
    only_branches_of_the_current_head_are_joined(super::research("write")),
    only_one_of_concurrent_joins_commits(super::research("write")),
    later_change_of_a_branch_does_not_change_its_held_join(super::research("write")),
}

async fn changes_of_two_branches_are_joined_and_written(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["law", "press"]).await;
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

async fn conflict_names_its_paths_and_every_strategy_settles_it(scene: ApiScenario) {
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
        let it = ForkedThread::new(g, &names).await;
        for (index, change) in changes.iter().enumerate() {
            it.change(g, index, change.clone()).await;
        }
        let refused = it.join(g, &names, "union").await;
        assert_eq!((refused.status, refused.code()), (409, "conflict"));
        assert_eq!(places(&refused), ["/found/1/by", "/question", "/sure"]);
        assert_eq!(codes(&refused), ["conflict"; 3]);
        assert_eq!(refused.body["checkpoint"], json!({"version": 0, "transition": it.head}), "what was forked stands");
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

async fn node_with_partial_reads_learns_nothing_from_a_conflict(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    // The parser writes a path that neither it nor the planner reads.
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

async fn conflict_over_a_redacted_value_names_only_the_redacted_key(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    it.change(g, 0, json!({"contact": {"mail": {"box": "secret-one"}, "name": "Eva"}})).await;
    it.change(g, 1, json!({"contact": {"mail": {"box": "secret-two"}, "name": "Eva"}})).await;
    let refused = it.join(g, &["a", "b"], "union").await;
    assert_eq!((refused.code(), places(&refused)), ("conflict", vec!["/contact/mail"]));
    // The values that were sent to settle a conflict are in no record that others can read.
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

async fn repeated_join_is_found_before_the_head_is_checked(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
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

async fn only_branches_of_the_current_head_are_joined(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a"]).await;
    let other = ForkedThread::new(g, &["b"]).await;
    other.change(g, 0, json!({"notes": {"b": 1}})).await;
    let unknown = it.join(g, &["a", "b"], "union").await;
    assert_eq!((unknown.status, unknown.code(), places(&unknown)), (400, "malformed", vec!["/branches/1"]));
    // No host may create a thread with the name that a branch would have. Anyone who knows the head can compute that
    // name.
    let name = Branch::thread_of(
        &it.id.as_str().unwrap().try_into().unwrap(),
        it.head.as_str().unwrap().try_into().unwrap(),
        &"mine".try_into().unwrap(),
    );
    let state = json!({"question": "who", "found": [], "notes": {}, "sure": 1, "target_user_id": 666});
    let made = json!({"flow": "payments", "thread": name, "state": state});
    let planted = g.post("/v1/threads", &g.host, made).await;
    assert_eq!((planted.status, planted.code(), places(&planted)), (400, "malformed", vec!["/thread"]));
    let none = it.join(g, &["mine"], "union").await;
    assert_eq!((none.code(), places(&none)), ("malformed", vec!["/branches/0"]));
    fork(g, &it.id, &["mine"]).await.expect(201);
    // A branch of an older head is no branch of this one, and a join on the older head is late.
    it.change(g, 0, json!({"target_user_id": 666})).await;
    let moved = g.propose(&it.id, &it.head, (&g.planner, "planner"), json!({"question": "when"})).await.expect(201);
    let older = it.join_with(g, json!({"parent": moved["transition"], "branches": ["a"], "strategy": "union"})).await;
    assert_eq!((older.code(), places(&older)), ("malformed", vec!["/branches/0"]));
    assert_eq!(it.join(g, &["a"], "union").await.code(), "head_moved");
    // A token can neither join nor fork as another node.
    let stranger = token(&g.service, "stranger", MachineRole::Agent, &["input_parser"]).await;
    let body = json!({"node": "planner", "parent": moved["transition"], "branches": ["a"], "strategy": "union"});
    assert_eq!(g.post(&it.path("joins"), &stranger, body).await.code(), "forbidden");
    let body = json!({"node": "planner", "branches": ["z"]});
    assert_eq!(g.post(&it.path("forks"), &stranger, body).await.code(), "forbidden");
    scene.passes_an_audit().await;
}

async fn only_one_of_concurrent_joins_commits(scene: ApiScenario) {
    let g = &scene.gateway;
    let names = ["a", "b", "c", "d"];
    let it = ForkedThread::new(g, &names).await;
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

async fn later_change_of_a_branch_does_not_change_its_held_join(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    let first = it.change(g, 0, json!({"target_user_id": 42})).await;
    let held = it.join(g, &["a", "b"], "union").await.expect(202);
    // Later changes of the branch do not change the join that the reviewers decide about.
    let branch = &it.branches[0]["thread"];
    let more = json!({"target_user_id": 666});
    g.propose(branch, &first["transition"], (&g.planner, "planner"), more).await.expect(201);
    g.approved(&held).await;
    assert_eq!(it.state(g).await["target_user_id"], 42);
    scene.passes_an_audit().await;
}
