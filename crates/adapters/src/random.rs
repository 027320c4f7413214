//! The one source of randomness: the operating system's.

use countersign_domain::primitives::time::Timestamp;
use uuid::Uuid;

/// Fills the buffer. There is no way on without randomness: a gateway that would sign with guessable
/// keys or nonces must rather stop.
#[expect(clippy::disallowed_methods, reason = "the one source of randomness")]
pub fn fill(buffer: &mut [u8]) {
    getrandom::fill(buffer).expect("an operating system that runs this gives randomness");
}

/// That many random bytes.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}

/// A random id, for what must not be guessed or ordered.
pub fn uuid_v4() -> Uuid {
    uuid::Builder::from_random_bytes(bytes()).into_uuid()
}

/// A random id that sorts by time, for what is stored.
pub fn uuid_v7(now: Timestamp) -> Uuid {
    uuid::Builder::from_unix_timestamp_millis(now.millis().unsigned_abs(), &bytes()).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_stored_sort_by_time_and_never_repeat() {
        let ids: Vec<Uuid> = (0..1000).map(|at| uuid_v7(Timestamp::from_millis(1_795_000_000_000 + at))).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert_eq!(ids[0].get_version_num(), 7);
        assert_eq!(uuid_v4().get_version_num(), 4);
        assert_ne!(uuid_v4(), uuid_v4());
    }
}
