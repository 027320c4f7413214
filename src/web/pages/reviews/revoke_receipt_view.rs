//! Taking a receipt back.

/// Posts `csrf` and `reason` to `/reviews/{id}/revocation`.
#[derive(Clone, Debug)]
pub struct RevocationForm {
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
}
