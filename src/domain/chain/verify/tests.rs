use super::*;
use crate::domain::chain::hash::Tag;
use crate::domain::chain::receipt::{Approval, Method};
use crate::domain::keys::Keys;

const NOW: Timestamp = Timestamp::from_millis(1_795_000_000_000);

/// Numbers every byte it gives, after `first`.
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
    let approval = Approval {
        reviewer: "ada".try_into().unwrap(),
        stage: 0,
        at: NOW,
        method: Method::Password,
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
fn a_receipt_that_this_process_signed_is_worth_what_its_key_is_worth_by_now() {
    let signing = keys(0);
    let issued = Issued::sign(signing.signing(KeyUse::Chain), claims());
    let kid = issued.kid().to_owned();
    assert_eq!(recognise(&issued, signing.trusted()), Ok(claims()));
    let retired = signing.rotate(KeyUse::Chain, NOW, &mut counting(100)).unwrap();
    assert_eq!(recognise(&issued, retired.trusted()), Ok(claims()));
    let revoked = retired.revoke(&kid, NOW, &mut counting(150)).unwrap();
    assert_eq!(recognise(&issued, revoked.trusted()), Err(DenialCode::UnknownKey));
    assert_eq!(recognise(&issued, keys(200).trusted()), Err(DenialCode::UnknownKey), "nobody's key");
}
