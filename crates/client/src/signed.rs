//! Signed answers for the tests of this crate.

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::chain::receipt::Verification;
use countersign_domain::keys::{KeyUse, Keys};
use countersign_domain::primitives::time::Timestamp;

use crate::client::now;

/// Returns the keys of a gateway.
pub fn keys(seed: u8) -> Keys {
    let mut next = seed;
    let mut random = |bytes: &mut [u8]| {
        for byte in bytes {
            next = next.wrapping_mul(5).wrapping_add(seed | 1);
            *byte = next;
        }
    };
    Keys::generate("https://gate.example", now(), &mut random).expect("keys of a gateway")
}

/// Returns the claims of a permission for a write until `end`.
pub fn claims(thread: &str, write_id: &str, end: Timestamp) -> Verification {
    let digest = |text: &str| Digest::of_file(text.as_bytes());
    Verification {
        aud: "token:writer".to_owned().try_into().expect("a name"),
        enforced: true,
        exp: end.seconds(),
        fence: 7,
        flow: "payments".to_owned().try_into().expect("a name"),
        iat: now().seconds(),
        iss: "https://gate.example".to_owned(),
        policy: digest("policy"),
        receipt: None,
        sub: thread.try_into().expect("a name"),
        to: digest("to"),
        transition: digest("transition"),
        version: 2,
        write_id: write_id.to_owned().try_into().expect("a name"),
    }
}

/// Returns the signed permission.
pub fn reservation(keys: &Keys, thread: &str, write_id: &str, end: Timestamp) -> String {
    jws::sign(keys.signing(KeyUse::Chain), TokenType::Verification, &claims(thread, write_id, end))
}
