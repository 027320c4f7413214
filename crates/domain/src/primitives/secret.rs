//! A value that is wiped when it is dropped, and prints as `[redacted]`.

use std::fmt;

use zeroize::Zeroize;

/// A private value. Reading it needs a call that is easy to search for.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Wraps the value. The caller should keep no other copy.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A derived implementation would print the secret wherever a struct around it is logged.
        f.write_str("[redacted]")
    }
}
