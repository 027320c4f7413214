//! The form that revokes a receipt.

/// Posts `csrf` and `reason` to `/reviews/{id}/revocation`.
#[derive(Clone, Debug)]
pub struct RevocationForm {
    pub action: String,
    pub csrf: String,
}
