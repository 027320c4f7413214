//! TLS to others: rustls with ring, chosen once for the whole process.

/// Before the first HTTP client is built: it does not choose by itself.
pub fn ready() {
    // Whoever was first has chosen; here everybody chooses the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
