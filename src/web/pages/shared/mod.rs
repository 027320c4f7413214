//! What each screen shows, already in words: plain structs that the templates are filled from.
//!
//! Nothing here knows a service or a store. Whatever an agent, a host or another person wrote
//! arrives as a [`text`] type, which can only be printed inert; a `String` or a number is the
//! gateway's own word.

pub mod anonymous_session;
pub mod confirm;
pub mod decision_form;
pub mod diff_rows;
pub mod error_page;
pub mod error_view;
pub mod flash;
pub mod form;
pub mod form_nonce;
pub mod format;
pub mod headline;
pub mod layout;
pub mod nav;
pub mod proof_rows;
pub mod responder;
pub mod return_path;
pub mod safe_text;
pub mod stages;
pub mod visitor;
pub mod vote_as;
pub mod vote_form;
pub mod widgets;
