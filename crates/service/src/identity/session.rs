//! The signed-in person, and the secrets of sessions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_adapters::random;
use countersign_domain::identity::account::{Account, Session};
use countersign_domain::primitives::id::SessionId;
use countersign_store::record::Stored;
use sha2::{Digest as _, Sha256};

/// A signed-in person.
#[derive(Clone, Debug)]
pub struct SignedIn {
    pub account: Stored<Account>,
    pub session: Stored<Session>,
}

pub(crate) fn fingerprint(secret: &str) -> SessionId {
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(secret.as_bytes()));
    SessionId::try_from(hash).expect("base64url is token text")
}

pub(crate) fn new_secret() -> String {
    URL_SAFE_NO_PAD.encode(random::bytes::<32>())
}
