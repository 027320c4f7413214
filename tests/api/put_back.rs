//! An operator puts an older, well-sealed row back.

use rusqlite::Connection;
use serde_json::json;

use crate::gateway::spawn_gateway;

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
    // With the event that tells of it gone, the thread agrees with what is left.
    let put_back = "DELETE FROM threads; INSERT INTO threads SELECT * FROM kept; \
                    DELETE FROM events WHERE id NOT IN (SELECT id FROM known)";
    database.execute_batch(put_back).unwrap();

    let answer = gateway.verify(&thread["thread"], &held["transition"], &decision["receipt"], "w1").await;
    assert_eq!((answer.status, answer.code()), (403, "revoked"));
}
