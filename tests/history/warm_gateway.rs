//! A running gateway caches the rows that it checked. Another gateway, or an attacker with the database, can change
//! these rows. `verify` allows a writer only on current rows, or on cached rows that are still in force.

mod pair;

use std::collections::BTreeSet;
use std::sync::Mutex;

use countersign_domain::keys::{KeyUse, Keys};
use countersign_domain::operations::halt::Halt;
use countersign_domain::primitives::id::NodeId;

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::error::{Error, TokenRefusal};
use countersign_service::operations::halt::HaltScope;
use countersign_service::writes::revoke_receipt::Revoker;
use countersign_service::writes::verify::peek_receipt;
use countersign_store::row::Table;
use serde_json::json;

use crate::lived::{admin, ask, example, flow, propose, thread, writer};
use pair::{DatabaseKind, GatewayPair, refused, told};

/// Each claim, once on each database.
macro_rules! claims {
    ($($claim:ident,)*) => {
        mod on_sqlite {
            $(
                #[tokio::test]
                async fn $claim() {
                    super::$claim(super::DatabaseKind::Sqlite).await;
                }
            )*
        }

        mod on_postgres {
            $(
                #[tokio::test]
                async fn $claim() {
                    super::$claim(super::DatabaseKind::Postgres).await;
                }
            )*
        }
    };
}

claims! {
    without_a_change_the_writer_is_let_through_once,
    a_head_that_another_gateway_gave_away_is_not_given_again,
    of_two_gateways_that_race_for_a_head_one_gives_it_away,
    a_halt_by_another_gateway_holds_at_once,
    a_refusal_that_another_gateway_ended_is_not_repeated,
    a_token_that_another_gateway_revoked_is_worth_nothing_at_once,
    a_token_that_is_remembered_still_needs_its_secret,
    a_token_of_another_flow_or_node_is_let_through_by_no_memory,
    a_receipt_that_another_gateway_took_back_is_worth_nothing_at_once,
    a_receipt_that_ran_out_by_the_databases_clock_is_expired,
    what_is_no_receipt_is_told_so_though_the_true_one_is_remembered,
    a_thread_that_another_gateway_closed_or_moved_on_is_seen_at_once,
    a_policy_that_another_gateway_activated_counts_at_once,
    a_key_that_was_revoked_counts_at_once,
    a_key_that_signed_the_parent_counts_as_much_as_the_heads_own,
    rows_that_a_decision_relies_on_are_looked_at_again_when_it_commits,
    a_text_that_was_edited_below_its_seal_is_not_what_the_gateway_goes_by,
    a_thread_row_put_back_to_before_its_write_gives_nothing_away,
    a_thread_row_put_back_to_before_another_gateways_write_gives_nothing_away,
}

async fn without_a_change_the_writer_is_let_through_once(kind: DatabaseKind) {
    let pair = GatewayPair::open(kind).await;
    assert_eq!(pair.verified().await, Ok(()));
    assert_eq!(pair.verified().await, Ok(()), "the same call again is the same answer");
    assert_eq!(pair.verified_as("w-again").await, refused("write_in_progress"));
}

async fn a_head_that_another_gateway_gave_away_is_not_given_again(kind: DatabaseKind) {
    let pair = GatewayPair::open(kind).await;
    assert_eq!(pair.verified_by_the_other().await, Ok(()));
    assert_eq!(pair.verified().await, refused("write_in_progress"));
}

async fn of_two_gateways_that_race_for_a_head_one_gives_it_away(kind: DatabaseKind) {
    for _ in 0..5 {
        let pair = GatewayPair::open(kind).await;
        let (mine, other) = tokio::join!(pair.verified(), pair.verified_by_the_other());
        assert!(mine.is_ok() != other.is_ok(), "{mine:?} {other:?}");
    }
}

fn halt(verifying: bool) -> Halt {
    Halt { proposing: false, verifying, reason: "drill".to_owned() }
}

async fn a_halt_by_another_gateway_holds_at_once(kind: DatabaseKind) {
    for scope in [HaltScope::All, HaltScope::Flow(flow("payments"))] {
        let pair = GatewayPair::open(kind).await;
        pair.other.operations.set_halt(&admin(), &scope, &halt(true)).await.unwrap();
        assert_eq!(pair.verified().await, refused("halted"));
    }
}

/// The cached rows lead to a refusal, so the gateway must read them again.
async fn a_refusal_that_another_gateway_ended_is_not_repeated(kind: DatabaseKind) {
    let pair = GatewayPair::open(kind).await;
    for scope in [HaltScope::All, HaltScope::Flow(flow("payments"))] {
        pair.other.operations.set_halt(&admin(), &scope, &halt(true)).await.unwrap();
        assert_eq!(pair.verified().await, refused("halted"));
        pair.other.operations.set_halt(&admin(), &scope, &halt(false)).await.unwrap();
        assert_eq!(pair.asked(&pair.warm, "not a receipt", "w-none").await, refused("receipt_malformed"));
    }
    pair.other.threads.close_thread(&admin(), &thread("ready"), "enough").await.unwrap();
    assert_eq!(pair.verified().await, refused("closed"));
    pair.other.threads.reopen_thread(&admin(), &thread("ready"), "once more").await.unwrap();
    assert_eq!(pair.verified().await, Ok(()));
}

async fn a_token_that_another_gateway_revoked_is_worth_nothing_at_once(kind: DatabaseKind) {
    let pair = GatewayPair::open(kind).await;
    pair.other.identity.revoke_token(&pair.cast.writer.record.id).await.unwrap();
    for _ in 0..2 {
        assert_eq!(pair.verified().await, refused(&Error::Unauthenticated.to_string()));
    }
}

async fn a_token_that_is_remembered_still_needs_its_secret(kind: DatabaseKind) {
    let pair = GatewayPair::open(kind).await;
    let (token, text) = pair.warm.identity.add_token(&writer()).await.unwrap();
    assert_eq!(pair.warm.identity.presumed_token_of(&text).await.unwrap().record, token);
    let (id, secret) = text.rsplit_once('_').unwrap();
    for wrong in [format!("{id}_"), format!("{id}_{}", &secret[1..]), format!("{id}_{secret}A"), secret.to_owned()] {
        let presumed = pair.warm.identity.presumed_token_of(&wrong).await;
        assert!(matches!(presumed, Err(Error::Token(TokenRefusal::Unknown | TokenRefusal::Malformed))), "{presumed:?}");
    }
    pair.warm.identity.revoke_token(&token.id).await.unwrap();
    let presumed = pair.warm.identity.presumed_token_of(&text).await;
    assert!(matches!(presumed, Err(Error::Token(TokenRefusal::Ended))), "{presumed:?}");
}

async fn a_token_of_another_flow_or_node_is_let_through_by_no_memory(kind: DatabaseKind) {
    let pair = GatewayPair::open(kind).await;
    let mut elsewhere = writer();
    elsewhere.flow = Some(flow("payouts"));
    let mut no_writer = writer();
    no_writer.nodes = BTreeSet::from([NodeId::try_from("planner").unwrap()]);
    for new in [elsewhere, no_writer] {
        let (_, text) = pair.warm.identity.add_token(&new).await.unwrap();
        let token = pair.warm.identity.presumed_token_of(&text).await.unwrap();
        let ask = ask("ready", pair.ready.transition, Some(pair.ready.receipt.clone()), "w-warm");
        let outcome = pair.warm.writes.verify(&token, &ask).await;
        assert_eq!(told(outcome.map(drop)), refused("forbidden"), "{new:?}");
    }
}

async fn a_receipt_that_another_gateway_took_back_is_worth_nothing_at_once(kind: DatabaseKind) {
    let pair = GatewayPair::open(kind).await;
    pair.other.writes.revoke_receipt(&Revoker::Admin(admin()), &pair.receipt, "misread").await.unwrap();
    assert_eq!(pair.verified().await, refused("revoked"));
}

/// The gateway's clock is behind the database's, by less than is refused.
async fn a_receipt_that_ran_out_by_the_databases_clock_is_expired(kind: DatabaseKind) {
    const BEHIND_MILLIS: i64 = 1_000;
    loop {
        let pair = GatewayPair::open(kind).await;
        let exp = peek_receipt(&pair.ready.receipt).unwrap().exp * 1_000;
        let ahead = exp - BEHIND_MILLIS / 2 - SystemClock.now().millis();
        pair.clock.0.set_millis(ahead);
        pair.databases_clock.set_millis(ahead + BEHIND_MILLIS);
        let verified = pair.verified().await;
        // Otherwise the machine was too slow, and the receipt has expired by the gateway's own clock too.
        if pair.clock.now().millis() < exp {
            assert_eq!(verified, refused("expired"), "the gateway's clock alone would have let it through");
            return;
        }
    }
}

async fn what_is_no_receipt_is_told_so_though_the_true_one_is_remembered(kind: DatabaseKind) {
    let pair = GatewayPair::open(kind).await;
    let (signed, signature) = pair.ready.receipt.rsplit_once('.').unwrap();
    let other = if signature.starts_with('A') { "B" } else { "A" };
    for (receipt, code) in [
        (String::new(), "receipt_malformed"),
        (signed.to_owned(), "receipt_malformed"),
        (format!("{} ", pair.ready.receipt), "receipt_malformed"),
        (format!("{signed}.{other}{}", &signature[1..]), "signature_invalid"),
    ] {
        assert_eq!(pair.asked(&pair.warm, &receipt, "w-warm").await, refused(code), "{receipt}");
    }
    assert_eq!(pair.verified().await, Ok(()));
}

async fn a_thread_that_another_gateway_closed_or_moved_on_is_seen_at_once(kind: DatabaseKind) {
    let pair = GatewayPair::open(kind).await;
    pair.other.threads.close_thread(&admin(), &thread(pair.ready.thread), "enough").await.unwrap();
    assert_eq!(pair.verified().await, refused("closed"));
    let pair = GatewayPair::open(kind).await;
    let patch = json!({"requested_action": "payout"});
    propose(&pair.other, &pair.cast.agent, pair.ready.thread, "planner", patch).await;
    assert_eq!(pair.verified().await, refused("not_head"));
}

async fn a_policy_that_another_gateway_activated_counts_at_once(kind: DatabaseKind) {
    let pair = GatewayPair::open(kind).await;
    let mut source = example("payments");
    source.text = source.text.replace("need = 1", "need = 2");
    pair.other.policy_changes.activate_policy(&admin(), None, source, BTreeSet::new()).await.unwrap();
    assert_eq!(pair.verified().await, refused("policy_mismatch"));
}

fn signing(keyring: &Keyring) -> String {
    keyring.current().unwrap().signing(KeyUse::Chain).kid().to_owned()
}

fn revoke(keyring: &Keyring, kid: &str) {
    keyring.update(|it| it.revoke(kid, SystemClock.now(), &mut countersign_adapters::random::fill)).unwrap();
}

async fn a_key_that_was_revoked_counts_at_once(kind: DatabaseKind) {
    let pair = GatewayPair::open(kind).await;
    let keyring = Keyring::open(&pair.folder.path().join("keyring.json"), None).unwrap();
    revoke(&keyring, &signing(&keyring));
    assert_eq!(pair.verified().await, refused("chain_broken"));
}

async fn a_key_that_signed_the_parent_counts_as_much_as_the_heads_own(kind: DatabaseKind) {
    for parents in [true, false] {
        let first = Mutex::new(String::new());
        let pair = GatewayPair::open_after(kind, |keyring| {
            *first.lock().unwrap() = signing(keyring);
            let rotate =
                |it: Keys| it.rotate(KeyUse::Chain, SystemClock.now(), &mut countersign_adapters::random::fill);
            keyring.update(rotate).unwrap();
        })
        .await;
        let keyring = Keyring::open(&pair.folder.path().join("keyring.json"), None).unwrap();
        let (parents_key, own) = (first.into_inner().unwrap(), signing(&keyring));
        assert_ne!(parents_key, own);
        revoke(&keyring, if parents { &parents_key } else { &own });
        assert_eq!(pair.verified().await, refused("chain_broken"));
    }
}

/// Every table of a decision, and whether the commit reads it again (`true`) or relies on the earlier check.
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

async fn rows_that_a_decision_relies_on_are_looked_at_again_when_it_commits(kind: DatabaseKind) {
    for (table, relied_on) in AT_COMMIT {
        let name = table.name();
        for edited in [false, true] {
            let pair = GatewayPair::open(kind).await;
            let edit = match edited {
                false => format!("DELETE FROM {name}"),
                true => format!("UPDATE {name} SET mac = {}", pair.no_seal()),
            };
            pair.edit(&edit).await;
            let verified = pair.verified().await;
            assert_eq!(verified.is_err(), *relied_on, "{edit}: {verified:?}");
        }
    }
}

async fn a_text_that_was_edited_below_its_seal_is_not_what_the_gateway_goes_by(kind: DatabaseKind) {
    for table in [Table::Gateway, Table::Flows, Table::Threads, Table::Receipts, Table::Tokens] {
        let edit = format!("UPDATE {} SET body = replace(body, '{{', '{{ ')", table.name());
        let pair = GatewayPair::open(kind).await;
        pair.edit(&edit).await;
        assert_eq!(pair.verified().await, Ok(()), "{edit}: decided on what was checked, whose seal still stands");
        let pair = GatewayPair::open(kind).await;
        pair.edit(&edit).await;
        let cold = pair.verified_by_the_other().await;
        assert!(cold.is_err(), "{edit}: who reads it refuses it");
    }
}

async fn a_thread_row_put_back_to_before_its_write_gives_nothing_away(kind: DatabaseKind) {
    let pair = GatewayPair::open(kind).await;
    pair.put_back_after(pair.verified()).await;
    // The second time the gateway has seen the row that was put back.
    for _ in 0..2 {
        assert_eq!(pair.verified_as("w-again").await, refused("chain_broken"));
    }
}

/// The row that is put back is the row that this gateway has in its cache.
async fn a_thread_row_put_back_to_before_another_gateways_write_gives_nothing_away(kind: DatabaseKind) {
    let pair = GatewayPair::open(kind).await;
    pair.put_back_after(pair.verified_by_the_other()).await;
    for _ in 0..2 {
        assert_eq!(pair.verified().await, refused("chain_broken"));
    }
}
