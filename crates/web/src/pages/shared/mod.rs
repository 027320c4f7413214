//! Parts that several pages share: views for the templates, forms, errors and safe text.
//!
//! Text of an agent, a host application or another person is always a type of [`safe_text`], which can only be printed
//! escaped. A `String` or a number comes from the gateway.

pub mod anonymous_session;
pub mod call_outcome;
pub mod decision_form;
pub mod diff_rows;
pub mod error_page;
pub mod error_view;
pub mod findings;
pub mod flash;
pub mod form;
pub mod form_nonce;
pub mod format;
pub mod headline;
pub mod layout;
pub mod nav;
pub mod passkey_signing;
pub mod proof_rows;
pub mod responder;
pub mod return_path;
pub mod safe_text;
pub mod stages;
pub mod tool_call;
pub mod value_excerpt;
pub mod visitor;
pub mod vote_as;
pub mod vote_form;
pub mod widgets;
