//! A gateway that runs remembers what it checked. Whatever another gateway or somebody with the database changes
//! meanwhile: a writer is let through on what stands, or on what was checked before and is still in force.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says by its failure what could not be")]

mod history;

use std::collections::BTreeSet;

use countersign::clock::{Clock, SystemClock};
use countersign::domain::chain::verify::DenialCode;
use countersign::domain::flow::Halt;
use countersign::domain::id::Jti;
use countersign::domain::keys::KeyUse;
use countersign::keyring::Keyring;
use countersign::service::Service;
use countersign::service::error::Error;
use countersign::service::receipts::Revoker;
use countersign::service::stops::Scope;
use countersign::store::row::Table;
use history::{Gateway, Ready, admin, ask, example, flow, live_through, propose, thread};
use rusqlite::Connection;
use serde_json::json;

/// A gateway that knows everything it needs to let the head's writer through, and another on the same database.
struct Pair {
    folder: tempfile::TempDir,
    warm: Gateway,
    other: Gateway,
    cast: history::Cast,
    ready: Ready,
    receipt: Jti,
}

impl Pair {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let warm = Gateway::open(folder.path()).await;
        let (cast, ready) = live_through(&warm.service).await;
        let other = Gateway::open(folder.path()).await;
        // A refusal is always worked out from what is stored, and remembered.
        let no_receipt = warm.service.verify(&cast.writer, &ask(ready.thread, ready.transition, None, "w-none")).await;
        assert!(matches!(no_receipt, Err(Error::Denied(DenialCode::ReceiptMissing))), "{no_receipt:?}");
        let decision = warm.service.decision(ready.transition).await.unwrap().1.unwrap();
        Self { folder, warm, other, cast, ready, receipt: decision.nonce.unwrap() }
    }

    fn run(&self, sql: &str) -> usize {
        let connection = Connection::open(self.folder.path().join("countersign.db")).unwrap();
        connection.execute(sql, []).unwrap()
    }

    fn edit(&self, sql: &str) {
        assert!(self.run(sql) > 0, "{sql}");
    }

    async fn verified_by(&self, service: &Service) -> Result<(), String> {
        let Ready { thread, transition, receipt } = &self.ready;
        let ask = ask(thread, *transition, Some(receipt.clone()), "w-warm");
        service.verify(&self.cast.writer, &ask).await.map(drop).map_err(|error| match error {
            Error::Denied(code) => DenialCode::as_str(code).to_owned(),
            other => other.to_string(),
        })
    }

    async fn verified(&self) -> Result<(), String> {
        self.verified_by(&self.warm.service).await
    }
}

fn refused(code: &str) -> Result<(), String> {
    Err(code.to_owned())
}

#[tokio::test]
async fn without_a_change_the_writer_is_let_through_once() {
    let pair = Pair::open().await;
    assert_eq!(pair.verified().await, Ok(()));
    assert_eq!(pair.verified().await, Ok(()), "the same call again is the same answer");
    let Ready { thread, transition, receipt } = &pair.ready;
    let again = ask(thread, *transition, Some(receipt.clone()), "w-again");
    let again = pair.warm.service.verify(&pair.cast.writer, &again).await;
    assert!(matches!(again, Err(Error::Denied(DenialCode::WriteInProgress))), "{again:?}");
}

#[tokio::test]
async fn a_head_that_another_gateway_gave_away_is_not_given_again() {
    let pair = Pair::open().await;
    let Ready { thread, transition, receipt } = &pair.ready;
    let first = ask(thread, *transition, Some(receipt.clone()), "w-other");
    pair.other.service.verify(&pair.cast.writer, &first).await.unwrap();
    assert_eq!(pair.verified().await, refused("write_in_progress"));
}

#[tokio::test]
async fn of_two_gateways_that_race_for_a_head_one_gives_it_away() {
    for _ in 0..5 {
        let pair = Pair::open().await;
        let Ready { thread, transition, receipt } = &pair.ready;
        let other = ask(thread, *transition, Some(receipt.clone()), "w-other");
        let other = pair.other.service.verify(&pair.cast.writer, &other);
        let (mine, other) = tokio::join!(pair.verified(), other);
        assert!(mine.is_ok() != other.is_ok(), "{mine:?} {other:?}");
    }
}

#[tokio::test]
async fn a_halt_by_another_gateway_holds_at_once() {
    for scope in [Scope::All, Scope::Flow(flow("payments"))] {
        let pair = Pair::open().await;
        let halt = Halt { proposing: false, verifying: true, reason: "drill".to_owned() };
        pair.other.service.set_halt(&admin(), &scope, &halt).await.unwrap();
        assert_eq!(pair.verified().await, refused("halted"));
    }
}

#[tokio::test]
async fn a_token_that_another_gateway_revoked_is_worth_nothing_at_once() {
    let pair = Pair::open().await;
    pair.other.service.revoke_token(&pair.cast.writer.record.id).await.unwrap();
    assert_eq!(pair.verified().await, refused(&Error::Unauthenticated.to_string()));
}

#[tokio::test]
async fn a_receipt_that_another_gateway_took_back_is_worth_nothing_at_once() {
    let pair = Pair::open().await;
    pair.other.service.revoke_receipt(&Revoker::Admin(admin()), &pair.receipt, "misread").await.unwrap();
    assert_eq!(pair.verified().await, refused("revoked"));
}

#[tokio::test]
async fn a_thread_that_another_gateway_closed_or_moved_on_is_seen_at_once() {
    let pair = Pair::open().await;
    pair.other.service.close_thread(&admin(), &thread(pair.ready.thread), "enough").await.unwrap();
    assert_eq!(pair.verified().await, refused("closed"));
    let pair = Pair::open().await;
    let patch = json!({"requested_action": "payout"});
    propose(&pair.other.service, &pair.cast.agent, pair.ready.thread, "planner", patch).await;
    assert_eq!(pair.verified().await, refused("not_head"));
}

#[tokio::test]
async fn a_policy_that_another_gateway_activated_counts_at_once() {
    let pair = Pair::open().await;
    let mut source = example("payments");
    source.text = source.text.replace("need = 1", "need = 2");
    pair.other.service.activate_policy(&admin(), None, source, BTreeSet::new()).await.unwrap();
    assert_eq!(pair.verified().await, refused("policy_mismatch"));
}

#[tokio::test]
async fn a_key_that_was_revoked_counts_at_once() {
    let pair = Pair::open().await;
    let keyring = Keyring::open(&pair.folder.path().join("keyring.json"), None).unwrap();
    let kid = keyring.current().unwrap().signing(KeyUse::Chain).kid().to_owned();
    let now = Clock::now(&SystemClock);

    keyring.update(|it| it.revoke(&kid, now, &mut countersign::random::fill)).unwrap();
    assert_eq!(pair.verified().await, refused("chain_broken"));
}

/// What of a decision is looked at again when it commits, and what was checked before and is in force as it was.
const AT_COMMIT: &[(Table, bool)] = &[
    (Table::Gateway, true),
    (Table::Flows, true),
    (Table::Threads, true),
    (Table::Receipts, true),
    (Table::Tokens, true),
    (Table::Policies, false),
    (Table::Transitions, false),
    (Table::Entries, false),
    (Table::States, false),
    (Table::Events, false),
    (Table::Holds, false),
    (Table::Accounts, false),
];

#[tokio::test]
async fn rows_that_a_decision_relies_on_are_looked_at_again_when_it_commits() {
    for (table, relied_on) in AT_COMMIT {
        let name = table.name();
        for edit in [format!("DELETE FROM {name}"), format!("UPDATE {name} SET mac = zeroblob(32)")] {
            let pair = Pair::open().await;
            pair.edit(&edit);
            let verified = pair.verified().await;
            assert_eq!(verified.is_err(), *relied_on, "{edit}: {verified:?}");
        }
    }
}

#[tokio::test]
async fn a_text_that_was_edited_below_its_seal_is_not_what_the_gateway_goes_by() {
    for table in [Table::Gateway, Table::Flows, Table::Threads, Table::Receipts, Table::Tokens] {
        let edit = format!("UPDATE {} SET body = replace(body, '{{', '{{ ')", table.name());
        let pair = Pair::open().await;
        pair.edit(&edit);
        assert_eq!(pair.verified().await, Ok(()), "{edit}: decided on what was checked, whose seal still stands");
        let pair = Pair::open().await;
        pair.edit(&edit);
        let cold = pair.verified_by(&pair.other.service).await;
        assert!(cold.is_err(), "{edit}: who reads it refuses it");
    }
}

#[tokio::test]
async fn a_thread_row_put_back_to_before_its_write_gives_nothing_away() {
    let pair = Pair::open().await;
    let columns = "id, alias, owner, state, due, revision, body, key_id, mac";
    pair.run(&format!("CREATE TABLE kept AS SELECT {columns} FROM threads WHERE id = 'ready'"));
    assert_eq!(pair.verified().await, Ok(()));
    pair.edit("DELETE FROM threads WHERE id = 'ready'");
    pair.edit(&format!("INSERT INTO threads ({columns}) SELECT {columns} FROM kept"));
    let Ready { thread, transition, receipt } = &pair.ready;
    let again = ask(thread, *transition, Some(receipt.clone()), "w-again");
    let again = pair.warm.service.verify(&pair.cast.writer, &again).await;
    assert!(matches!(again, Err(Error::Denied(DenialCode::ChainBroken))), "{again:?}");
}
