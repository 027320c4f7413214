//! The review page and everything a reviewer does on it.

pub mod arguments;
pub mod comment;
pub mod confirm_view;
pub mod decide;
pub mod discussion_view;
pub mod edit;
pub mod edit_view;
pub mod extend;
pub mod reveal;
pub mod reveal_view;
pub mod review;
pub mod review_view;
pub mod revoke_receipt;
pub mod revoke_receipt_view;
pub mod withdraw;
