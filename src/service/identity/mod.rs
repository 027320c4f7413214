//! Accounts, sessions, tokens, passkeys, delegations and sign-in.

pub mod accounts;
pub mod actor;
pub mod administration;
pub(crate) mod bootstrap;
mod change_event;
pub mod delegations;
pub mod failure_event_limiter;
pub mod last_seen;
pub mod last_seen_times;
pub mod oidc_sign_in;
pub mod owner_names;
pub mod passkeys;
pub mod password_hash;
pub mod password_sign_in;
pub mod requester_names;
pub mod revocation;
pub mod self_service;
pub mod session;
pub mod sign_in_config;
pub(crate) mod sign_in_method;
