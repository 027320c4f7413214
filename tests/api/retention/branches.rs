//! Tests branches of a thread whose history is archived.

use super::*;

on_both! {
    a_branch_stays_while_it_may_be_joined(super::forking("versions = 1")),
    archived_branch_is_listed_with_its_outcome(super::forking("versions = 10\nerase_after_days = 5")),
}

async fn a_branch_stays_while_it_may_be_joined(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let id = made["thread"].as_str().unwrap();
    let fork = json!({"node": "input_parser", "branches": ["one"]});
    let forked = g.post(&format!("/v1/threads/{id}/forks"), &g.parser, fork).await.expect(201);
    let branch = &forked["branches"][0];
    let mut head = branch["transition"].clone();
    for version in 1..=VERSIONS {
        let patch = json!({"raw_text": format!("text {version}, and a little more of it")});
        let done = g.propose(&branch["thread"], &head, (&g.parser, "input_parser"), patch).await.expect(201);
        head = done["transition"].clone();
    }
    assert_eq!(works(g).await, 0, "a join compares it with what it began with");
    let join = json!({"node": "input_parser", "parent": made["transition"], "branches": ["one"], "strategy": "union"});
    g.post(&format!("/v1/threads/{id}/joins"), &g.parser, join).await.expect(201);
    assert!(works(g).await > 0, "the head has moved, so nothing of it is joined again");
    scene.passes_an_audit().await;
}

async fn archived_branch_is_listed_with_its_outcome(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let id = made["thread"].as_str().unwrap();
    let fork = json!({"node": "input_parser", "branches": ["one", "two"]});
    let forked = g.post(&format!("/v1/threads/{id}/forks"), &g.parser, fork).await.expect(201);
    let branch = &forked["branches"][0];
    let patch = json!({"raw_text": "what the branch says"});
    g.propose(&branch["thread"], &branch["transition"], (&g.parser, "input_parser"), patch).await.expect(201);
    let join = json!({"node": "input_parser", "parent": made["transition"], "branches": ["one"], "strategy": "union"});
    let joined = g.post(&format!("/v1/threads/{id}/joins"), &g.parser, join).await.expect(201);
    let mut head = joined["transition"].clone();
    for version in 1..=VERSIONS {
        let patch = json!({"raw_text": format!("text {version}, and a little more of it")});
        let done = g.propose(&made["thread"], &head, (&g.parser, "input_parser"), patch).await.expect(201);
        head = done["transition"].clone();
    }
    let became = async || {
        let row = g.service.threads.overview(&id.try_into().unwrap()).await.unwrap().thread;
        let seen = g.service.branches.list_branches(&row, None, 10).await.unwrap().branches;
        seen.into_iter().map(|it| (it.name.to_string(), it.became)).collect::<Vec<_>>()
    };
    let all = [("one".to_owned(), BranchStatus::Joined { version: 1 }), ("two".to_owned(), BranchStatus::LeftBehind)];
    assert_eq!(became().await, all);
    assert!(works(g).await > 0);
    assert_eq!(became().await, all, "what was archived says it");
    g.pass(DAY * 6);
    assert!(works(g).await > 0);
    assert_eq!(became().await, all, "and so does what is erased");
    scene.passes_an_audit().await;
}
