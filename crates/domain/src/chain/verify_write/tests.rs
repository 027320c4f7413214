use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::chain::hash::Tag;
use crate::chain::link::{ChainLink, check_link};
use crate::chain::receipt::{ApprovalClaim, ApprovalMethod};
use crate::keys::Keys;
use crate::threads::thread::WriteKey;
use crate::writes::write::ReservationInput;

const NOW: Timestamp = Timestamp::from_millis(1_795_000_000_000);

/// Fills bytes with numbers that count from `first`.
fn counting(first: u8) -> impl FnMut(&mut [u8]) {
    let mut drawn = first;
    move |buffer| {
        for (byte, index) in buffer.iter_mut().zip(0_u8..) {
            *byte = drawn.wrapping_mul(31).wrapping_add(index);
        }
        drawn = drawn.wrapping_add(1);
    }
}

fn keys(first: u8) -> Keys {
    Keys::generate("urn:countersign:test", NOW, &mut counting(first)).unwrap()
}

fn claims() -> Receipt {
    let digest = Digest::of(Tag::Patch, &[b"{}"]);
    let approval = ApprovalClaim {
        reviewer: "ada".try_into().unwrap(),
        stage: 0,
        at: NOW,
        method: ApprovalMethod::Password,
        evidence: None,
        absent: None,
    };
    Receipt {
        iss: "urn:countersign:test".to_owned(),
        sub: "t".try_into().unwrap(),
        aud: vec!["writer".try_into().unwrap()],
        jti: "AAAAAAAAAAAAAAAAAAAAAA".try_into().unwrap(),
        iat: NOW.seconds(),
        nbf: NOW.seconds(),
        exp: NOW.seconds() + 600,
        flow: "payments".try_into().unwrap(),
        policy: digest,
        transition: digest,
        parent: Some(digest),
        version: 1,
        to: digest,
        approvals: vec![approval],
    }
}

#[test]
fn own_receipt_is_valid_only_while_its_key_is_valid() {
    let signing = keys(0);
    let issued = IssuedReceipt::sign(signing.signing(KeyUse::Chain), claims());
    let kid = issued.kid().to_owned();
    assert_eq!(recognise(&issued, signing.trusted()), Ok(claims()));
    let retired = signing.rotate(KeyUse::Chain, NOW, &mut counting(100)).unwrap();
    assert_eq!(recognise(&issued, retired.trusted()), Ok(claims()));
    let revoked = retired.revoke(&kid, NOW, &mut counting(150)).unwrap();
    assert_eq!(recognise(&issued, revoked.trusted()), Err(DenialCode::UnknownKey));
    assert_eq!(recognise(&issued, keys(200).trusted()), Err(DenialCode::UnknownKey), "nobody's key");
}

const ISSUER: &str = "urn:countersign:test";

fn other() -> Value {
    json!(Digest::of(Tag::Patch, &[b"other"]))
}

/// Builds a stored statement with a change.
fn stated(change: &dyn Fn(&mut Value)) -> Statement {
    let digest = Digest::of(Tag::Patch, &[b"{}"]);
    let mut statement = json!({
        "type": "propose", "flow": "payments", "policy": digest, "thread": "t", "version": 1, "parent": digest,
        "node": "planner", "principal": "p", "proposal": "q", "attempt": 1, "from": digest, "to": digest, "tool": null,
        "usage": null, "rationale": null, "supersedes": null, "restores": null, "write_id": null, "proposed_at": NOW,
    });
    change(&mut statement);
    serde_json::from_value(statement).unwrap()
}

/// Builds the entry of a statement, changed and signed by the gateway's own key.
fn entered(statement: &Statement, keys: &Keys, change: &dyn Fn(&mut Value)) -> String {
    let mut entry = json!({
        "committed_at": NOW, "gate": {"kind": "auto"}, "iss": ISSUER, "owes": false, "parent": statement.parent,
        "policy": statement.policy, "thread": statement.thread, "transition": statement.digest(),
        "version": statement.version,
    });
    change(&mut entry);
    jws::sign(keys.signing(KeyUse::Chain), TokenType::Entry, &entry)
}

fn as_it_is(_: &mut Value) {}

#[test]
fn link_is_valid_only_if_entry_statement_and_state_agree() {
    let keys = keys(0);
    let holds = |(statement, token): (&Statement, &str), root: Digest| {
        check_link(&ChainLink { entry: token, statement, root }, keys.trusted(), ISSUER).map(drop)
    };
    let sound = stated(&as_it_is);
    assert_eq!(holds((&sound, &entered(&sound, &keys, &as_it_is)), sound.to), Ok(()));
    let broken = Err(DenialCode::ChainBroken);
    assert_eq!(holds((&sound, &entered(&sound, &keys, &as_it_is)), Digest::of(Tag::Patch, &[b"other"])), broken);
    for (member, value) in [
        ("iss", json!("urn:countersign:another")),
        ("transition", other()),
        ("thread", json!("t2")),
        ("version", json!(2)),
        ("parent", other()),
        ("policy", other()),
        ("gate", json!({"kind": "written", "write_id": "w"})),
    ] {
        let token = entered(&sound, &keys, &|it| it[member] = value.clone());
        assert_eq!(holds((&sound, &token), sound.to), broken, "entry: {member}");
    }
    // The entry agrees with the statement, so the statement itself causes the refusal.
    for (member, value) in [
        ("attempt", json!(null)),
        ("attempt", json!(0)),
        ("node", json!(null)),
        ("write_id", json!("w")),
        ("restores", other()),
        ("supersedes", other()),
    ] {
        let odd = stated(&|it| it[member] = value.clone());
        assert_eq!(holds((&odd, &entered(&odd, &keys, &as_it_is)), odd.to), broken, "statement: {member}");
    }
}

#[test]
fn link_is_valid_only_while_its_key_is_valid() {
    let signing = keys(0);
    let statement = stated(&as_it_is);
    let token = entered(&statement, &signing, &as_it_is);
    let kid = jws::read::<Entry>(&token, TokenType::Entry).unwrap().kid().to_owned();
    let holds = |keys: &Keys, token: &str| {
        check_link(&ChainLink { entry: token, statement: &statement, root: statement.to }, keys.trusted(), ISSUER)
            .map(drop)
    };
    let broken = Err(DenialCode::ChainBroken);
    let retired = signing.rotate(KeyUse::Chain, NOW, &mut counting(100)).unwrap();
    assert_eq!((holds(&keys(0), &token), holds(&retired, &token)), (Ok(()), Ok(())));
    let by_the_next = entered(&statement, &retired, &as_it_is);
    assert_eq!(holds(&keys(0), &by_the_next), broken, "it signs nothing yet");
    assert_eq!(holds(&keys(200), &token), broken, "nobody's key");
    let revoked = retired.revoke(&kid, NOW, &mut counting(150)).unwrap();
    assert_eq!(holds(&revoked, &token), broken);
}

/// Builds a thread whose head is reserved, and the reservation, both as stored.
fn reserved() -> (Thread, Write) {
    let digest = Digest::of(Tag::Patch, &[b"{}"]);
    let head = json!({
        "version": 1, "transition": digest, "policy": digest, "needs_receipt": false, "owes": false,
        "usage": {"state": "unused"},
    });
    let thread = json!({
        "id": "t", "flow": "payments", "context": {}, "created_at": NOW, "head": head, "fence": 0, "hold": null,
        "closed": null, "unresolved": [], "authors": [], "written_version": 0, "holds_opened": {}, "last_event": null,
    });
    let ask = ReservationInput {
        key: WriteKey { principal: "w".try_into().unwrap(), write_id: "w1".try_into().unwrap() },
        node: "writer".try_into().unwrap(),
        receipt: None,
        mode: Mode::Enforce,
        lease: Duration::from_secs(30),
    };
    serde_json::from_value::<Thread>(thread).unwrap().reserved(ask, NOW)
}

#[test]
fn write_is_replayed_only_for_the_same_request_while_the_lease_is_live() {
    let (thread, write) = reserved();
    let (principal, node, write_id) = (write.key.principal.clone(), write.node.clone(), write.key.write_id.clone());
    let ask = WriteCheckRequest {
        principal: &principal,
        node: &node,
        transition: write.transition,
        receipt: None,
        write_id: &write_id,
    };
    let end = NOW.plus(Duration::from_secs(30));
    assert_eq!(replay(&write, &thread, &ask, Timestamp::from_millis(end.millis() - 1)), Ok(WriteAllowed::Replay));
    let used = Err(DenialCode::AlreadyUsed);
    assert_eq!(replay(&write, &thread, &ask, end), used, "the lease is over");
    let elsewhere = Write { thread: "t2".try_into().unwrap(), ..write.clone() };
    assert_eq!(replay(&elsewhere, &thread, &ask, NOW), used, "of another thread");
    let anothers = Write { node: "other".try_into().unwrap(), ..write.clone() };
    assert_eq!(replay(&anothers, &thread, &ask, NOW), used, "by another node");
    let of_another = WriteCheckRequest { transition: Digest::of(Tag::Patch, &[b"other"]), ..ask.clone() };
    assert_eq!(replay(&write, &thread, &of_another, NOW), used, "for another transition");
    let mut moved = thread.clone();
    moved.head.usage = HeadUse::Used {};
    assert_eq!(replay(&write, &moved, &ask, NOW), used, "the head is not its own any more");
    let mut told = thread.clone();
    told.unresolved.insert(write.key.clone());
    assert_eq!(replay(&write, &told, &ask, NOW), used, "it was told as lapsed, and the clock went back");
}
