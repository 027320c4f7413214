//! Random bytes for tests: they differ on each call, and need no source of the system.

use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

static CALLS: AtomicU64 = AtomicU64::new(0);

/// Fills the buffer.
pub fn fill(bytes: &mut [u8]) {
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    for (index, chunk) in bytes.chunks_mut(32).enumerate() {
        let block = Sha256::digest([call.to_be_bytes(), (index as u64).to_be_bytes()].concat());
        chunk.copy_from_slice(&block[..chunk.len()]);
    }
}
