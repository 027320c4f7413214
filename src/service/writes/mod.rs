//! Writes after approval: verify a receipt, then confirm, abort or resolve the write.

pub(crate) mod approval_status;
pub mod outcome;
pub mod receipt_lookup;
pub mod revoke_receipt;
pub mod verify;
