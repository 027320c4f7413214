//! TLS for outgoing connections: rustls with ring, selected once for the whole process.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

/// The reason that TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The configured CA is invalid.
    #[error("the CA certificate is not in PEM format")]
    Authority,
    /// The system has no trusted CA, or the library returned an error.
    #[error("TLS cannot be set up: {0}")]
    SetUp(#[from] rustls::Error),
}

/// Selects the crypto provider. Required before the first HTTP client is built.
pub fn ready() {
    // An error means that the provider is already set. Every caller sets the same one.
    let _ = ring::default_provider().install_default();
}

/// Returns a configuration that trusts the system's CAs and, if given, one more.
pub fn client(authority: Option<&[u8]>) -> Result<ClientConfig, TlsError> {
    let more: Vec<CertificateDer<'static>> = match authority {
        None => Vec::new(),
        Some(pem) => CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| TlsError::Authority)?,
    };
    if authority.is_some() && more.is_empty() {
        return Err(TlsError::Authority);
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(more, Arc::clone(&provider))?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// Returns a configuration that trusts no CA, for connections without TLS.
pub fn nobody() -> Result<ClientConfig, TlsError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}
