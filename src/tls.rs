//! TLS to others: rustls with ring, chosen once for the whole process.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

/// Why nobody could be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// What should vouch for the other side is none.
    #[error("the authority is not a certificate in PEM")]
    Authority,
    /// Nobody vouches for anybody here, or the library refuses.
    #[error("TLS cannot be set up: {0}")]
    SetUp(#[from] rustls::Error),
}

/// Before the first HTTP client is built: it does not choose by itself.
pub fn ready() {
    // Whoever was first has chosen; here everybody chooses the same.
    let _ = ring::default_provider().install_default();
}

/// For speaking to whom this machine's authorities vouch for, or one more.
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

/// For where nobody is spoken to by TLS: nobody is vouched for.
pub fn nobody() -> Result<ClientConfig, TlsError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}
