//! Accounts, sessions, tokens, passkeys, delegations and sign-in.

pub mod accounts;
pub mod administration;
pub(crate) mod bootstrap;
mod change_event;
pub mod delegations;
pub mod last_seen;
pub mod oidc_sign_in;
pub mod owner_names;
pub mod passkeys;
pub mod password_hash;
pub mod password_sign_in;
pub mod revocation;
pub mod self_service;
pub mod session;
pub(crate) mod sign_in_method;
