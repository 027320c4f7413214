//! Tests that exactly one of many concurrent writes is allowed.

use std::sync::Arc;

use countersign_adapters::clock::SystemClock;
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_service::writes::verify::VerifyInput;
use countersign_store::sqlite::SqliteStore;
use futures_util::future::join_all;
use serde_json::json;

use super::{AttackScenario, approve};
use crate::gateway::{MovedClock, POLICY, settings};
use crate::sqlite::unsynced;

const MANY: usize = 20;

/// Each on both databases.
macro_rules! on_both {
    ($($name:ident,)*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::AttackScenario::new(super::POLICY).await).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::AttackScenario::on_postgres(super::POLICY).await).await;
            })*
        }
    };
}

on_both! {
    exactly_one_of_twenty_proposals_on_one_head_commits,
    exactly_one_of_twenty_writes_of_one_head_is_allowed,
    write_id_used_for_two_threads_at_once_allows_one_write,
    only_one_of_a_write_and_a_concurrent_change_succeeds,
    no_write_is_allowed_after_a_concurrent_halt,
    concurrent_last_votes_make_one_receipt,
    written_head_is_not_written_again,
}

async fn written_head_is_not_written_again(scene: AttackScenario) {
    let first = scene.write(&scene.case.ask("w1")).await.expect(200);
    let again = scene.write(&scene.case.ask("w1")).await.expect(200);
    assert_eq!((&first["fence"], &again["replayed"]), (&again["fence"], &json!(true)));
    assert_eq!(scene.write(&scene.case.ask("w2")).await.code(), "write_in_progress");
    scene.g.confirm("w1").await.expect(200);
    for write_id in ["w1", "w2"] {
        let replay = scene.write(&scene.case.ask(write_id)).await;
        assert!(replay.status == 403 && ["already_used", "not_head"].contains(&replay.code()), "{}", replay.body);
    }
    scene.pass_seconds(3600);
    scene.write(&scene.case.ask("w3")).await.expect(403);
    assert_eq!(scene.rows_all(), 1);
}

async fn exactly_one_of_twenty_proposals_on_one_head_commits(scene: AttackScenario) {
    let thread = scene.g.thread().await;
    let node = (scene.g.parser.as_str(), "input_parser");
    let ask = |turn: usize| {
        scene.g.propose(&thread["thread"], &thread["transition"], node, json!({"raw_text": format!("{turn}")}))
    };
    let answers = join_all((0..MANY).map(ask)).await;
    let committed: Vec<_> = answers.iter().filter(|it| it.status == 201).collect();
    assert_eq!(committed.len(), 1);
    for other in answers.iter().filter(|it| it.status != 201) {
        assert_eq!((other.status, other.code()), (409, "head_moved"), "{}", other.body);
        assert_eq!(other.body["head"]["transition"], committed[0].body["transition"]);
    }
    let ask = json!({"thread": thread["thread"], "transition": committed[0].body["transition"], "write_id": "w1"});
    scene.write(&ask).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

async fn exactly_one_of_twenty_writes_of_one_head_is_allowed(scene: AttackScenario) {
    let asks: Vec<_> = (0..MANY).map(|turn| scene.case.ask(&format!("w{turn}"))).collect();
    let answers = join_all(asks.iter().map(|ask| scene.write(ask))).await;
    assert_eq!(answers.iter().filter(|it| it.status == 200).count(), 1);
    for other in answers.iter().filter(|it| it.status != 200) {
        assert_eq!((other.status, other.code()), (403, "write_in_progress"), "{}", other.body);
    }
    assert_eq!(scene.rows_all(), 1);
}

async fn write_id_used_for_two_threads_at_once_allows_one_write(scene: AttackScenario) {
    for turn in 0..5 {
        let (one, two) = (approve(&scene.g).await, approve(&scene.g).await);
        let name = format!("w{turn}");
        let (left, right) = (one.ask(&name), two.ask(&name));
        let (a, b) = tokio::join!(scene.write(&left), scene.write(&right));
        let mut statuses = [(a.status, a.code()), (b.status, b.code())];
        statuses.sort_unstable();
        assert_eq!(statuses, [(200, ""), (403, "already_used")]);
        assert_eq!(scene.rows(one.id()) + scene.rows(two.id()), 1);
    }
}

async fn only_one_of_a_write_and_a_concurrent_change_succeeds(scene: AttackScenario) {
    for turn in 0..5 {
        let case = approve(&scene.g).await;
        let ask = case.ask(&format!("w{turn}"));
        let node = (scene.g.parser.as_str(), "input_parser");
        let change = scene.g.propose(case.id(), &case.held["transition"], node, json!({"raw_text": "on top"}));
        let (write, change) = tokio::join!(scene.write(&ask), change);
        match (write.status, change.status) {
            (200, 409) => assert_eq!((change.code(), scene.rows(case.id())), ("write_in_progress", 1)),
            (403, 201) => assert_eq!((write.code(), scene.rows(case.id())), ("not_head", 0)),
            other => panic!("{other:?}: {} {}", write.body, change.body),
        }
    }
}

async fn no_write_is_allowed_after_a_concurrent_halt(scene: AttackScenario) {
    let asks: Vec<_> = (0..MANY).map(|turn| scene.case.ask(&format!("w{turn}"))).collect();
    let (_, answers) =
        tokio::join!(scene.halt("payments", true, true), join_all(asks.iter().map(|ask| scene.write(ask))));
    let allowed = answers.iter().filter(|it| it.status == 200).count();
    assert!(allowed <= 1);
    assert_eq!(scene.write(&scene.case.ask("after")).await.code(), "halted");
    assert_eq!(scene.rows_all(), i64::try_from(allowed).unwrap());
}

async fn concurrent_last_votes_make_one_receipt(scene: AttackScenario) {
    use countersign_domain::reviews::VoteVerdict;
    let thread = scene.g.thread().await;
    let held = scene.g.held(&thread).await;
    let (a, b) = tokio::join!(
        scene.g.vote(&scene.g.alice, &held, VoteVerdict::Approve),
        scene.g.vote(&scene.g.bob, &held, VoteVerdict::Approve)
    );
    assert_eq!([a.is_ok(), b.is_ok()].iter().filter(|it| **it).count(), 1);
    let receipt = scene.g.decision(&held).await.expect(200)["receipt"].clone();
    let ask = |name: &str| json!({"thread": thread["thread"], "transition": held["transition"], "receipt": receipt, "write_id": name});
    scene.write(&ask("w1")).await.expect(200);
    assert_eq!(scene.write(&ask("w2")).await.status, 403);
    assert_eq!(scene.rows_all(), 1);
}

/// Another gateway process on the same database and keyring: its own connections, its own caches.
async fn second_gateway(scene: &AttackScenario) -> Service {
    let folder = scene.g.folder.path();
    let options = unsynced(&scene.g.clock);
    let store = Arc::new(SqliteStore::open(folder.join("countersign.db"), options).unwrap());
    let keyring = Keyring::open_or_create(&folder.join("keyring.json"), None, &SystemClock).unwrap();
    let clock = Arc::new(MovedClock(scene.g.clock.clone()));
    Service::open(store, keyring, clock, settings(&scene.g.url)).await.unwrap()
}

#[tokio::test]
async fn exactly_one_of_two_gateways_on_one_database_allows_the_write() {
    let scene = AttackScenario::new(POLICY).await;
    let second = second_gateway(&scene).await;
    let token = scene.g.service.identity.token_of(&scene.g.writer).await.unwrap();
    for turn in 0..5 {
        let case = approve(&scene.g).await;
        let ask = |name: String| VerifyInput {
            thread: case.id().as_str().unwrap().try_into().unwrap(),
            transition: case.held["transition"].as_str().unwrap().try_into().unwrap(),
            receipt: Some(case.receipt().to_owned()),
            write_id: name.as_str().try_into().unwrap(),
            expect: Vec::new(),
        };
        let asks: Vec<_> = (0..MANY).map(|at| ask(format!("w{turn}-{at}"))).collect();
        let service = |at: usize| if at.is_multiple_of(2) { &*scene.g.service } else { &second };
        let answers = join_all(asks.iter().enumerate().map(|(at, ask)| service(at).writes.verify(&token, ask))).await;
        assert_eq!(answers.iter().filter(|it| it.is_ok()).count(), 1);
    }
}

#[tokio::test]
async fn commit_at_one_gateway_invalidates_the_cached_head_of_another() {
    let scene = AttackScenario::new(POLICY).await;
    let second = second_gateway(&scene).await;
    let token = scene.g.service.identity.token_of(&scene.g.writer).await.unwrap();
    // The second gateway has read and cached the approved head. Then the first gateway commits on top of it.
    second
        .threads
        .state_view(&scene.case.id().as_str().unwrap().try_into().unwrap(), &"planner".try_into().unwrap(), None)
        .await
        .unwrap();
    scene.harmless(&scene.case.held["transition"], "on top").await;
    let ask = VerifyInput {
        thread: scene.case.id().as_str().unwrap().try_into().unwrap(),
        transition: scene.case.held["transition"].as_str().unwrap().try_into().unwrap(),
        receipt: Some(scene.case.receipt().to_owned()),
        write_id: "w1".try_into().unwrap(),
        expect: Vec::new(),
    };
    assert!(second.writes.verify(&token, &ask).await.is_err());
    let twin = approve(&scene.g).await;
    scene.write(&twin.ask("w2")).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}
