//! What administrators say of an endpoint's kind.

use crate::domain::endpoint::{EndpointKind, KindName, PayloadVersion};

/// The kind that an administrator asks for, with what it takes.
#[derive(Clone, Debug, Default)]
pub enum NewKind {
    /// Events, signed by Standard Webhooks.
    #[default]
    Webhook,
}

impl NewKind {
    /// As it is kept.
    pub(super) const fn kept(&self) -> EndpointKind {
        match self {
            Self::Webhook => EndpointKind::Webhook { payload: PayloadVersion::V1 },
        }
    }
}

impl From<KindName> for NewKind {
    fn from(name: KindName) -> Self {
        match name {
            KindName::Webhook => Self::Webhook,
        }
    }
}
