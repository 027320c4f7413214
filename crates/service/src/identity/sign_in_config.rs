//! The enabled sign-in methods.

use std::sync::Arc;

use countersign_adapters::oidc_provider::Provider;

#[derive(Clone)]
pub struct SignInMethods {
    pub local: LocalAccounts,
    pub provider: Option<Arc<Provider>>,
}

impl Default for SignInMethods {
    fn default() -> Self {
        Self { local: LocalAccounts::On, provider: None }
    }
}

/// Whether local accounts can sign in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocalAccounts {
    On,
    /// Neither passwords, nor links, nor earlier sessions of local accounts work.
    Off,
}
