//! Accounts, tokens, sessions, passkeys, delegations and parties.

pub mod account;
pub mod delegation;
pub mod login_throttle;
pub mod oidc_identity;
pub mod party;
pub mod passkey;
