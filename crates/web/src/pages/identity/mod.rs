//! Pages about accounts, sign-in, passkeys, tokens and delegations.

pub mod account;
pub mod account_view;
pub mod choose_password;
pub mod delegations;
pub mod delegations_view;
pub mod oidc;
pub mod passkeys;
pub mod passkeys_view;
pub mod people;
pub mod people_view;
pub mod person;
pub mod set_up;
pub mod sign_in;
pub mod sign_in_view;
pub mod tokens;
