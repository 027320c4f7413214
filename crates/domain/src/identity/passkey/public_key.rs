//! Public keys of passkeys as JSON Web Keys (RFC 7517), which auditors can pin and every library can read.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use webauthn_rs_core::proto::{COSEAlgorithm, COSEEC2Key, COSEKey, COSEKeyType, COSERSAKey, ECDSACurve};

/// The supported algorithms: ES256, which every authenticator has, and RS256 for older TPMs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kty", deny_unknown_fields)]
pub enum PasskeyPublicKey {
    /// ECDSA over P-256 with SHA-256.
    #[serde(rename = "EC")]
    P256 {
        crv: Curve,
        /// In base64url.
        x: String,
        /// In base64url.
        y: String,
    },
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    #[serde(rename = "RSA")]
    Rsa {
        /// The modulus, in base64url.
        n: String,
        /// The exponent, in base64url.
        e: String,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Curve {
    /// NIST P-256.
    #[serde(rename = "P-256")]
    P256,
}

/// The algorithms that a registration offers.
pub(super) const ALGORITHMS: [COSEAlgorithm; 2] = [COSEAlgorithm::ES256, COSEAlgorithm::RS256];

impl PasskeyPublicKey {
    /// Returns the authenticator's key, if its algorithm is supported.
    pub(super) fn of(cose: &COSEKey) -> Option<Self> {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match (cose.type_, &cose.key) {
            (COSEAlgorithm::ES256, COSEKeyType::EC_EC2(key)) if key.curve == ECDSACurve::SECP256R1 => {
                Some(Self::P256 { crv: Curve::P256, x: text(&key.x), y: text(&key.y) })
            }
            (COSEAlgorithm::RS256, COSEKeyType::RSA(key)) => Some(Self::Rsa { n: text(&key.n), e: text(&key.e) }),
            // The library supports more algorithms, but auditors must be able to check the stored keys.
            _ => None,
        }
    }

    pub(super) fn cose(&self) -> Option<COSEKey> {
        let bytes = |text: &String| URL_SAFE_NO_PAD.decode(text).ok();
        Some(match self {
            Self::P256 { crv: Curve::P256, x, y } => COSEKey {
                type_: COSEAlgorithm::ES256,
                key: COSEKeyType::EC_EC2(COSEEC2Key { curve: ECDSACurve::SECP256R1, x: bytes(x)?, y: bytes(y)? }),
            },
            Self::Rsa { n, e } => COSEKey {
                type_: COSEAlgorithm::RS256,
                key: COSEKeyType::RSA(COSERSAKey { n: bytes(n)?, e: bytes(e)?.try_into().ok()? }),
            },
        })
    }
}
