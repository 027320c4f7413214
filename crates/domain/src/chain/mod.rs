//! Signed documents, and the checks of them.

pub mod commitment;
pub mod denial;
pub mod entry;
pub mod hash;
pub mod jws;
pub mod link;
pub mod opening;
pub mod receipt;
pub mod signed_vote;
pub mod statement;
pub mod verify_export;
pub mod verify_receipt_offline;
pub mod verify_write;
