//! Password hashing with argon2id, outside the async workers and with limited concurrency.

use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use tokio::sync::Semaphore;

use crate::error::{Error, Result};

/// Each hash takes about 20 MB and 20 ms. Two at a time leave resources for other work.
static TURNSTILE: Semaphore = Semaphore::const_new(2);

/// Shorter passwords can be guessed.
pub const PASSWORD_CHARS_MIN: usize = 12;
/// Longer passwords only cost time.
pub const PASSWORD_CHARS_MAX: usize = 256;

/// Hash for unknown names, so that they take as long as known ones.
static NOBODY: LazyLock<Option<String>> = LazyLock::new(|| make("nobody's password, checked against for time").ok());

/// An argon2id hash, in PHC form, of a password of an allowed length.
#[derive(Clone)]
pub struct HashedPassword(String);

impl HashedPassword {
    pub async fn of(password: String) -> Result<Self> {
        check_strength(&password)?;
        Ok(Self(hash(password).await?))
    }

    pub(crate) fn into_phc(self) -> String {
        self.0
    }
}

/// Checks that a password has an allowed length.
pub fn check_strength(password: &str) -> Result<()> {
    let length = password.chars().count();
    if (PASSWORD_CHARS_MIN..=PASSWORD_CHARS_MAX).contains(&length) {
        return Ok(());
    }
    Err(Error::invalid("/password", format!("use {PASSWORD_CHARS_MIN} to {PASSWORD_CHARS_MAX} characters")))
}

fn make(password: &str) -> Result<String> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    Ok(hash.map_err(|_| Error::Broken("hashing a password"))?.to_string())
}

fn matches(password: &str, hash: Option<&str>) -> bool {
    // Hashing for unknown names as well prevents user enumeration by timing.
    let against = hash.or(NOBODY.as_deref());
    let right = against
        .and_then(|it| PasswordHash::new(it).ok())
        .is_some_and(|it| Argon2::default().verify_password(password.as_bytes(), &it).is_ok());
    right && hash.is_some()
}

async fn in_turn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let turn = TURNSTILE.acquire().await.map_err(|_| Error::Busy)?;
    let working = move || {
        let done = work();
        // The permit is released only after the work. A browser that disconnects must not free it early.
        drop(turn);
        done
    };
    tokio::task::spawn_blocking(working).await.map_err(|_| Error::Busy)
}

pub(crate) async fn hash(password: String) -> Result<String> {
    in_turn(move || make(&password)).await?
}

/// Returns true if the password matches the hash. Without a hash the result is false after the same time.
pub(crate) async fn verify(password: String, hash: Option<String>) -> Result<bool> {
    if password.chars().count() > PASSWORD_CHARS_MAX {
        // A very long password would only occupy one of the two permits.
        return Ok(false);
    }
    in_turn(move || matches(&password, hash.as_deref())).await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Starts work that signals its start and runs until it is stopped.
    fn at_work() -> (tokio::task::JoinHandle<Result<()>>, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let ((begins, begun), (end, ends)) = (mpsc::channel(), mpsc::channel());
        let work = move || {
            begins.send(()).unwrap();
            ends.recv().unwrap();
        };
        (tokio::spawn(in_turn(work)), begun, end)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn disconnected_browser_does_not_free_its_permit_early() {
        let (first, second) = (at_work(), at_work());
        for (asked, begun, _) in [&first, &second] {
            tokio::task::block_in_place(|| begun.recv().unwrap());
            asked.abort();
        }
        let (third, begun, end) = at_work();
        let early = tokio::task::block_in_place(|| begun.recv_timeout(Duration::from_millis(100)));
        assert!(early.is_err(), "a third one while two are at work");
        first.2.send(()).unwrap();
        second.2.send(()).unwrap();
        end.send(()).unwrap();
        third.await.unwrap().unwrap();
        begun.recv().unwrap();
    }
}
