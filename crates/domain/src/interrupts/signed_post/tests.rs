use super::*;
use crate::keys::Keys;

fn keys(seed: u8) -> Keys {
    let mut byte = seed;
    let mut random = |into: &mut [u8]| {
        into.iter_mut().for_each(|it| {
            byte = byte.wrapping_add(1);
            *it = byte;
        });
    };
    Keys::generate("urn:test:gateway", Timestamp::from_millis(0), &mut random).unwrap()
}

fn token(name: &str) -> TokenId {
    name.try_into().unwrap()
}

const NOW: i64 = 1_795_225_000;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs * 1000)
}

fn signed(keys: &Keys, of: &TokenId, generation: u32, (id, timestamp, body): (&str, &str, &str)) -> String {
    let secret = HostSigningSecret::of(keys.row(), of, generation);
    let mac = Hmac::<Sha256>::new_from_slice(secret.0.as_slice()).unwrap();
    let mac = mac.chain_update(format!("{id}.{timestamp}.{body}"));
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

fn checked(
    signing: SigningSecretRef,
    (keys, of): (&Keys, &TokenId),
    (id, timestamp, body): (&str, &str, &str),
    signatures: &str,
) -> Result<(), PostRejected> {
    let post = SignedPost { id, timestamp, signatures, body: body.as_bytes() };
    signing.check(keys.row(), of, &post, at(NOW))
}

fn first() -> SigningSecretRef {
    SigningSecretRef::next(None, at(NOW - 10))
}

#[test]
fn signature_is_valid_only_for_its_token_id_time_and_body() {
    let (ours, others, of) = (keys(1), keys(2), token("t-1"));
    let now = NOW.to_string();
    let post = ("msg_1", now.as_str(), "{}");
    let signature = signed(&ours, &of, 1, post);
    assert_eq!(checked(first(), (&ours, &of), post, &signature), Ok(()));
    for (what, outcome) in [
        ("another gateway", checked(first(), (&others, &of), post, &signature)),
        ("another token", checked(first(), (&ours, &token("t-2")), post, &signature)),
        ("another id", checked(first(), (&ours, &of), ("msg_2", post.1, post.2), &signature)),
        ("another body", checked(first(), (&ours, &of), (post.0, post.1, "{ }"), &signature)),
        ("another time", checked(first(), (&ours, &of), (post.0, &(NOW + 1).to_string(), post.2), &signature)),
        ("no signature", checked(first(), (&ours, &of), post, "")),
        ("half a signature", checked(first(), (&ours, &of), post, &signature[..20])),
        ("another version", checked(first(), (&ours, &of), post, &signature.replace("v1,", "v1a,"))),
        ("a signature of nothing", checked(first(), (&ours, &of), post, "v1,")),
    ] {
        assert_eq!(outcome, Err(PostRejected::Unsigned), "{what}");
    }
    let among = format!("v1a,AAAA v1,AAAA {signature}");
    assert_eq!(checked(first(), (&ours, &of), post, &among), Ok(()), "one of several is enough");
    let crowd = format!("{}{signature}", "v1,AAAA ".repeat(SIGNATURES_MAX));
    assert_eq!(checked(first(), (&ours, &of), post, &crowd), Err(PostRejected::Unsigned));
}

#[test]
fn a_timestamp_is_five_minutes_off_at_most() {
    let (ours, of) = (keys(1), token("t-1"));
    for (off, outcome) in [
        (300, Ok(())),
        (-300, Ok(())),
        (301, Err(PostRejected::Stale)),
        (-301, Err(PostRejected::Stale)),
        (-NOW, Err(PostRejected::Stale)),
    ] {
        let then = (NOW + off).to_string();
        let post = ("msg_1", then.as_str(), "{}");
        assert_eq!(checked(first(), (&ours, &of), post, &signed(&ours, &of, 1, post)), outcome, "{off}");
    }
    let odd = ["", "-1", "+1", "1.0", "9223372036854775808", " 1795225000", "1795225000 ", "0x10"];
    for timestamp in odd {
        let post = ("msg_1", timestamp, "{}");
        let outcome = checked(first(), (&ours, &of), post, &signed(&ours, &of, 1, post));
        assert_eq!(outcome, Err(PostRejected::Unsigned), "{timestamp:?}");
    }
}

#[test]
fn signed_text_has_only_one_reading() {
    let (ours, of) = (keys(1), token("t-1"));
    let now = NOW.to_string();
    let body = format!("{now}.{{}}");
    let post = ("a", now.as_str(), body.as_str());
    let signature = signed(&ours, &of, 1, post);
    assert_eq!(checked(first(), (&ours, &of), post, &signature), Ok(()));
    // The same bytes, with the first dot as part of the id.
    let shifted = (format!("a.{now}"), now.as_str(), "{}");
    let outcome = checked(first(), (&ours, &of), (&shifted.0, shifted.1, shifted.2), &signature);
    assert_eq!(outcome, Err(PostRejected::Unsigned));
}

#[test]
fn previous_secret_is_valid_for_a_day_after_a_rotation() {
    let (ours, of) = (keys(1), token("t-1"));
    let now = NOW.to_string();
    let post = ("msg_1", now.as_str(), "{}");
    let old = signed(&ours, &of, 1, post);
    let second = SigningSecretRef::next(Some(first()), at(NOW - 24 * 3600 + 1));
    assert_eq!(second.generation, 2);
    let texts = [first(), second].map(|it| it.secret(ours.row(), &of).expose().clone());
    assert!(texts[0] != texts[1] && texts.iter().all(|it| it.starts_with("whsec_") && it.len() == 50), "{texts:?}");
    assert_eq!(checked(second, (&ours, &of), post, &old), Ok(()));
    assert_eq!(checked(second, (&ours, &of), post, &signed(&ours, &of, 2, post)), Ok(()));
    assert_eq!(checked(first(), (&ours, &of), post, &signed(&ours, &of, 2, post)), Err(PostRejected::Unsigned));
    let long_ago = SigningSecretRef { since: at(NOW - 24 * 3600), ..second };
    assert_eq!(checked(long_ago, (&ours, &of), post, &old), Err(PostRejected::Unsigned));
    let third = SigningSecretRef::next(Some(second), at(NOW));
    assert_eq!(checked(third, (&ours, &of), post, &old), Err(PostRejected::Unsigned), "only the one before");
    assert_eq!(checked(first(), (&ours, &of), post, &signed(&ours, &of, 0, post)), Err(PostRejected::Unsigned));
}
