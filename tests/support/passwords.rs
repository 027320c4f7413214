//! Passwords of the people that tests add.

use std::collections::BTreeMap;

use countersign_service::identity::password_hash::HashedPassword;
use tokio::sync::Mutex;

/// Returns the hash of a password. Each one is computed once in a process, because one hash takes half of the time in
/// which a gateway starts. A sign-in always computes it again.
pub async fn hashed(password: &str) -> HashedPassword {
    static HASHES: Mutex<BTreeMap<String, HashedPassword>> = Mutex::const_new(BTreeMap::new());
    let mut hashes = HASHES.lock().await;
    if !hashes.contains_key(password) {
        let hash = HashedPassword::of(password.to_owned()).await.unwrap();
        hashes.insert(password.to_owned(), hash);
    }
    hashes[password].clone()
}
