//! Tests that tokens given to nodes on branches are counted with their thread once the branches are joined.

use super::*;

on_both_in_full! {
    token_count_passes_to_branches_and_back_at_a_join(super::given_at_most(700)),
    join_is_rejected_if_its_branches_exceed_the_token_limit_together(super::given_at_most(300)),
    change_above_the_token_limit_is_rejected_on_its_branch(super::given_at_most(200)),
    token_limit_of_a_node_counts_all_branches_of_a_join(super::parser_is_given_at_most(100)),
}

fn given_at_most(tokens: u64) -> String {
    let budget = format!("[budgets.thread]\ncontext_tokens = {tokens}\n\n[approval]\n");
    research("write").replacen("[approval]\n", &budget, 1)
}

fn parser_is_given_at_most(tokens: u64) -> String {
    let budget = format!("[nodes.input_parser.budget]\ncontext_tokens = {tokens}\n\n[approval]\n");
    research("write").replacen("[approval]\n", &budget, 1)
}

async fn total(g: &TestGateway, thread: &Value) -> Value {
    now(g, thread).await["spent"]["context_tokens"].clone()
}

async fn token_count_passes_to_branches_and_back_at_a_join(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    it.change(g, 0, json!({"notes": {"a": 1}})).await;
    it.change(g, 1, json!({"question": "what"})).await;
    assert_eq!(total(g, &it.branches[0]["thread"]).await, 100);
    assert_eq!(total(g, &it.id).await, Value::Null, "it is the branch's until it is joined");
    it.join(g, &["a", "b"], "union").await.expect(201);
    assert_eq!(total(g, &it.id).await, 300, "100 on each, and what was given to whoever joined them");
    let again = fork(g, &it.id, &["c"]).await.expect(201);
    let branch = &again["branches"][0];
    assert_eq!(total(g, &branch["thread"]).await, 300, "nothing is new because it was forked");
    let patch = json!({"notes": {"c": 1}});
    g.propose(&branch["thread"], &branch["transition"], (&g.planner, "planner"), patch).await.expect(201);
    assert_eq!(total(g, &branch["thread"]).await, 400);
    let ask = json!({"node": "planner", "parent": again["transition"], "branches": ["c"], "strategy": "union"});
    g.post(&it.path("joins"), &g.planner, ask).await.expect(201);
    assert_eq!(total(g, &it.id).await, 500, "a branch brings what it was given itself, and not what it began with");
    scene.passes_an_audit().await;
}

async fn join_is_rejected_if_its_branches_exceed_the_token_limit_together(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b", "c"]).await;
    it.change(g, 0, json!({"notes": {"a": 1}})).await;
    it.change(g, 1, json!({"question": "what"})).await;
    it.change(g, 2, json!({"sure": 0.25})).await;
    let over = it.join(g, &["a", "b", "c"], "union").await;
    assert_eq!((over.status, codes(&over)), (422, vec!["budget"]));
    it.join(g, &["a", "b"], "union").await.expect(201);
    assert_eq!(total(g, &it.id).await, 300);
    scene.passes_an_audit().await;
}

async fn change_above_the_token_limit_is_rejected_on_its_branch(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a"]).await;
    let mut head = it.change(g, 0, json!({"notes": {"a": 1}})).await["transition"].clone();
    let thread = &it.branches[0]["thread"];
    let by_parser = async |head: &Value, text: &str| {
        g.propose(thread, head, (&g.parser, "input_parser"), json!({"notes": {"p": text}})).await
    };
    head = by_parser(&head, "one").await.expect(201)["transition"].clone();
    assert_eq!(codes(&by_parser(&head, "two").await), ["budget"]);
    scene.passes_an_audit().await;
}

async fn token_limit_of_a_node_counts_all_branches_of_a_join(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    for (index, notes) in [json!({"a": 1}), json!({"b": 1})].into_iter().enumerate() {
        let branch = &it.branches[index];
        let patch = json!({"notes": notes});
        let as_parser = (g.parser.as_str(), "input_parser");
        g.propose(&branch["thread"], &branch["transition"], as_parser, patch).await.expect(201);
    }
    let over = it.join(g, &["a", "b"], "union").await;
    assert_eq!((over.status, codes(&over)), (422, vec!["budget"]), "100 on each, by itself no more than it may");
    it.join(g, &["a"], "union").await.expect(201);
    scene.passes_an_audit().await;
}
