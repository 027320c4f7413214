//! Tests older, validly sealed rows that an operator restores.

use std::collections::BTreeSet;

use countersign_domain::operations::halt::Halt;

use countersign::worker::sequence;
use countersign_service::audit::audit;
use countersign_service::error::Error;
use countersign_service::operations::halt::HaltScope;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use rusqlite::Connection;
use serde_json::json;

use crate::gateway::{POLICY, TestGateway, source, spawn_gateway};

async fn findings(gateway: &TestGateway) -> Vec<String> {
    let store = SqliteStore::open(gateway.folder.path().join("countersign.db"), SqliteOptions::default()).unwrap();
    let report = audit(&store, &gateway.service.core.keys().unwrap(), gateway.service.core.now()).await.unwrap();
    report.findings.iter().map(|it| format!("{}: {}", it.table, it.finding)).collect()
}

async fn halts(gateway: &TestGateway, scope: &HaltScope, verifying: bool) {
    let halt = Halt { proposing: false, verifying, reason: "drill".to_owned() };
    gateway.service.operations.set_halt(&"tests".try_into().unwrap(), scope, &halt).await.unwrap();
}

/// Otherwise one honest change on top would hide that a halt was removed.
#[tokio::test]
async fn restored_old_row_is_found_even_after_an_honest_change() {
    for (table, scope) in [("flows", HaltScope::Flow("payments".try_into().unwrap())), ("gateway", HaltScope::All)] {
        let gateway = spawn_gateway().await;
        let database = Connection::open(gateway.folder.path().join("countersign.db")).unwrap();
        database.execute_batch(&format!("CREATE TEMP TABLE kept AS SELECT * FROM {table}")).unwrap();
        halts(&gateway, &scope, true).await;
        assert_eq!(findings(&gateway).await, [""; 0]);
        database.execute_batch(&format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept")).unwrap();
        halts(&gateway, &scope, false).await;
        let expected = format!("{table}: the revision of the row differs from the changes that its events record");
        assert!(findings(&gateway).await.contains(&expected), "{:?}", findings(&gateway).await);
    }
}

/// Otherwise the next policy would be the flow's first one, which requires no approval and is not halted.
#[tokio::test]
async fn flow_with_a_deleted_row_accepts_no_first_policy() {
    let gateway = spawn_gateway().await;
    let database = Connection::open(gateway.folder.path().join("countersign.db")).unwrap();
    database.execute_batch("DELETE FROM flows").unwrap();
    let by = "tests".try_into().unwrap();
    let begun = gateway.service.policy_changes.activate_policy(&by, None, source(POLICY), BTreeSet::new()).await;
    assert!(matches!(begun, Err(Error::Broken(_))), "{begun:?}");
}

#[tokio::test]
async fn a_revoked_receipt_stays_revoked_when_its_old_row_is_put_back() {
    let gateway = spawn_gateway().await;
    let thread = gateway.thread().await;
    let held = gateway.held(&thread).await;
    let decision = gateway.approved(&held).await;
    let database = Connection::open(gateway.folder.path().join("countersign.db")).unwrap();
    database.execute_batch("CREATE TEMP TABLE kept AS SELECT * FROM receipts").unwrap();

    let jti = decision["nonce"].as_str().unwrap();
    gateway
        .post(&format!("/v1/receipts/{jti}/revocation"), &gateway.admin, json!({"reason": "a mistake"}))
        .await
        .expect(200);
    database.execute_batch("DELETE FROM receipts; INSERT INTO receipts SELECT * FROM kept").unwrap();

    let answer = gateway.verify(&thread["thread"], &held["transition"], &decision["receipt"], "w1").await;
    assert_eq!((answer.status, answer.code()), (403, "revoked"));
}

#[tokio::test]
async fn a_revoked_receipt_stays_revoked_when_its_threads_row_is_put_back() {
    let gateway = spawn_gateway().await;
    let thread = gateway.thread().await;
    let held = gateway.held(&thread).await;
    let decision = gateway.approved(&held).await;
    let database = Connection::open(gateway.folder.path().join("countersign.db")).unwrap();
    let keep = "CREATE TEMP TABLE kept AS SELECT * FROM threads; CREATE TEMP TABLE known AS SELECT id FROM events";
    database.execute_batch(keep).unwrap();

    let jti = decision["nonce"].as_str().unwrap();
    gateway
        .post(&format!("/v1/receipts/{jti}/revocation"), &gateway.admin, json!({"reason": "a mistake"}))
        .await
        .expect(200);
    // With the event about it deleted, the thread agrees with the remaining rows.
    let put_back = "DELETE FROM threads; INSERT INTO threads SELECT * FROM kept; \
                    DELETE FROM events WHERE id NOT IN (SELECT id FROM known)";
    database.execute_batch(put_back).unwrap();

    let answer = gateway.verify(&thread["thread"], &held["transition"], &decision["receipt"], "w1").await;
    assert_eq!((answer.status, answer.code()), (403, "revoked"));
}

/// No check inside the gateway can refuse a whole former state of a thread. The log has the later events.
#[tokio::test]
async fn audit_finds_a_wholly_restored_thread() {
    let gateway = spawn_gateway().await;
    let thread = gateway.thread().await;
    let held = gateway.held(&thread).await;
    let decision = gateway.approved(&held).await;
    while sequence::run_once(&gateway.service).await.unwrap() > 0 {}
    let database = Connection::open(gateway.folder.path().join("countersign.db")).unwrap();
    let kept = ["threads", "transitions", "entries", "states", "holds", "receipts", "writes", "events"];
    for table in kept {
        database.execute_batch(&format!("CREATE TEMP TABLE kept_{table} AS SELECT * FROM {table}")).unwrap();
    }
    let verify =
        async |write_id| gateway.verify(&thread["thread"], &held["transition"], &decision["receipt"], write_id).await;
    verify("w1").await.expect(200);
    gateway.confirm("w1").await.expect(200);
    assert_eq!(verify("w2").await.code(), "not_head");
    while sequence::run_once(&gateway.service).await.unwrap() > 0 {}
    assert_eq!(findings(&gateway).await, [""; 0]);

    for table in kept {
        let put_back = format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_{table}");
        database.execute_batch(&put_back).unwrap();
    }
    let found = findings(&gateway).await;
    assert!(
        found.contains(&"events: the event is missing, but it has a position in the audit log".to_owned()),
        "{found:?}"
    );
    let again = verify("w2").await.expect(200);
    assert_eq!(again["fence"], 1, "by which a guarded database knows that it has seen this write before");
}
