//! Tests the owners of tokens: existing accounts and groups, their spelling, and the people whom they exclude from a
//! vote.

use std::collections::BTreeSet;
use std::process::Output;

use countersign_domain::identity::account::{MachineRole, PersonRole};
use countersign_domain::reviews::{Ineligible, VoteVerdict};

use countersign::service::error::{Error, Result};
use countersign::service::identity::accounts::{NewAccount, NewToken};
use countersign::service::identity::owner_names::NewOwner;
use serde_json::json;

use crate::gateway::{TestGateway, owned_token, person, spawn_gateway};
use crate::people::admin;
use crate::taking_back::line;

const PASSWORD: &str = "correct horse battery";

fn agent(owner: NewOwner) -> NewToken {
    NewToken {
        name: "of-somebody".to_owned(),
        role: MachineRole::Agent,
        owner,
        flow: Some("payments".try_into().unwrap()),
        nodes: BTreeSet::from(["planner".try_into().unwrap()]),
    }
}

fn existing(name: &str) -> NewToken {
    agent(NewOwner::Existing(name.to_owned()))
}

fn group(name: &str) -> NewToken {
    agent(NewOwner::Group(name.to_owned()))
}

fn is_refused<T>(refused: Result<T>, pointer: &str) -> bool {
    matches!(refused, Err(Error::Invalid { pointer: at, .. }) if at == pointer)
}

#[tokio::test]
async fn an_owner_is_an_account_or_group_that_exists_however_it_is_written() {
    let g = spawn_gateway().await;
    for (written, stored) in [
        ("alice", "alice"),
        ("Alice", "alice"),
        ("\u{430}lice", "alice"),
        ("a1ice", "alice"),
        ("reviewers", "reviewers"),
        ("Reviewers", "reviewers"),
    ] {
        assert_eq!(g.service.identity.add_token(&existing(written)).await.unwrap().0.owner, stored, "{written}");
    }
    for nobody in ["alicia", "platform", "", "reviewer"] {
        assert!(is_refused(g.service.identity.add_token(&existing(nobody)).await, "/owner"), "{nobody}");
    }
    assert_eq!(g.service.identity.excluded_by("alice").await.unwrap(), ["alice"]);
    assert_eq!(g.service.identity.excluded_by("reviewers").await.unwrap(), ["alice", "bob"]);
}

#[tokio::test]
async fn group_name_of_an_account_is_refused() {
    let g = spawn_gateway().await;
    for taken in ["alice", "Alice", "a1ice", "Reviewers", "not a group"] {
        assert!(is_refused(g.service.identity.add_token(&group(taken)).await, "/owner"), "{taken}");
    }
    for free in ["platform", "reviewers"] {
        assert_eq!(g.service.identity.add_token(&group(free)).await.unwrap().0.owner, free);
    }
    assert_eq!(g.service.identity.excluded_by("platform").await.unwrap(), [""; 0]);
}

/// A group can be named later than a token that has an owner with a similar name.
#[tokio::test]
async fn look_alike_of_the_owner_does_not_approve_the_agents_proposal() {
    let g = spawn_gateway().await;
    let token = g.service.identity.add_token(&group("Teams")).await.unwrap().1;
    let excluded = person(&g.service, "dora", &["reviewers", "teams"]).await;
    let thread = g.thread().await;
    let patch = json!({"target_user_id": 42});
    let held = g.propose(&thread["thread"], &thread["transition"], (&token, "planner"), patch).await.expect(202);
    let vote = g.vote(&excluded, &held, VoteVerdict::Approve).await;
    let vote = format!("{:?}", vote.unwrap_err());
    assert!(vote.contains(&format!("{:?}", Ineligible::Author)), "{vote}");
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
}

fn named(name: &str, groups: &[&str]) -> NewAccount {
    let groups = groups.iter().map(|it| (*it).try_into().unwrap()).collect();
    NewAccount { name: name.to_owned(), role: PersonRole::Reviewer, groups }
}

#[tokio::test]
async fn no_two_accounts_or_groups_have_names_that_look_alike() {
    let g = spawn_gateway().await;
    let gus = admin(&g, "gus").await;
    for name in ["alice", "Alice", "\u{430}lice", "a1ice", "ａｌｉｃｅ"] {
        let added = g.service.identity.add_account(&named(name, &[]), PASSWORD.to_owned()).await;
        assert!(matches!(added, Err(Error::Exists(_))), "{name}: {added:?}");
        assert!(matches!(g.service.identity.invite(&gus, &named(name, &[])).await, Err(Error::Exists(_))), "{name}");
    }
    g.service.identity.invite(&gus, &named("erna", &[])).await.unwrap();
    assert!(matches!(g.service.identity.invite(&gus, &named("Ema", &[])).await, Err(Error::Exists(_))));
    let added = g.service.identity.add_account(&named("dan", &["Reviewers"]), PASSWORD.to_owned()).await;
    assert!(is_refused(added, "/groups"));
    g.service.identity.add_account(&named("dan", &["reviewers", "finance"]), PASSWORD.to_owned()).await.unwrap();
    let groups = BTreeSet::from(["REVIEWERS".try_into().unwrap()]);
    let changed = g.service.identity.change_access(&gus, &g.alice.id, PersonRole::Reviewer, &groups).await;
    assert!(is_refused(changed, "/groups"));
}

/// Such an account would own the tokens, and see copies of redacted values that they wrote.
#[tokio::test]
async fn no_account_gets_the_name_of_a_group_or_of_the_owner_of_a_token() {
    let g = spawn_gateway().await;
    let gus = admin(&g, "gus").await;
    let revoked = g.service.identity.add_token(&group("vaulters")).await.unwrap().0;
    g.service.identity.revoke_token(&revoked.id).await.unwrap();
    let taken = ["platform", "Platform", "p1atform", "\u{440}latform", "reviewers", "Reviewers", "vaulters"];
    for (name, groups) in taken.map(|it| (it, [].as_slice())).into_iter().chain([("finance", ["finance"].as_slice())]) {
        let added = g.service.identity.add_account(&named(name, groups), PASSWORD.to_owned()).await;
        assert!(matches!(added, Err(Error::Exists(why)) if why.contains("group")), "{name}: {added:?}");
        assert!(matches!(g.service.identity.invite(&gus, &named(name, groups)).await, Err(Error::Exists(_))), "{name}");
    }
    let added = line(&g, "user add platform --role reviewer --password-stdin", PASSWORD);
    assert!(!added.status.success() && told(&added).contains("choose another name"), "{}", told(&added));
    g.service.identity.add_account(&named("plat", &["platform"]), PASSWORD.to_owned()).await.unwrap();
}

/// The members of such a group would own the tokens of the account.
#[tokio::test]
async fn no_new_group_has_the_name_of_an_account() {
    let g = spawn_gateway().await;
    let gus = admin(&g, "gus").await;
    for name in ["alice", "Alice", "a1ice"] {
        let added = g.service.identity.add_account(&named("dan", &[name]), PASSWORD.to_owned()).await;
        assert!(is_refused(added, "/groups"), "{name}");
        let groups = BTreeSet::from([name.try_into().unwrap()]);
        let changed = g.service.identity.change_access(&gus, &g.bob.id, PersonRole::Reviewer, &groups).await;
        assert!(is_refused(changed, "/groups"), "{name}");
    }
}

#[tokio::test]
async fn the_page_says_whom_an_owner_excludes() {
    let g = spawn_gateway().await;
    admin(&g, "gus").await;
    owned_token(&g.service, "of-alice", MachineRole::Agent, &["planner"], "alice").await;
    let page = page_of_tokens(&g).await;
    assert!(page.contains("excludes alice") && page.contains("no such account or member"), "{page}");
}

async fn page_of_tokens(g: &TestGateway) -> String {
    let (_, secret) = g.service.identity.sign_in("gus", PASSWORD.to_owned()).await.unwrap();
    let page = g.http.get(format!("{}/tokens", g.url)).header("cookie", format!("countersign={secret}"));
    page.send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn the_command_line_refuses_an_unknown_owner_and_says_whom_one_excludes() {
    let g = spawn_gateway().await;
    let add = |owner: &str| line(&g, &format!("token add x --role auditor --owner {owner}"), "");
    let refused = add("plattform");
    assert_eq!((refused.status.code(), refused.stdout.as_slice()), (Some(1), b"".as_slice()));
    assert!(told(&refused).contains("--new-group"), "{}", told(&refused));
    assert!(told(&add("Alice")).contains("its owner alice excludes alice from approving"));
    assert!(told(&add("platform --new-group")).contains("excludes no reviewer"));
    let list = line(&g, "token list", "");
    assert!(told(&list).contains("token x: its owner platform excludes no reviewer"), "{}", told(&list));
    assert!(!told(&list).contains("alice"), "{}", told(&list));
}

/// Returns the standard error of a command.
fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
