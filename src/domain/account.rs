//! People, tokens and sessions.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::id::{AccountId, FlowId, GroupName, NodeId, PrincipalId, SessionId, TokenId};
use super::time::Timestamp;

/// What a person may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PersonRole {
    /// Decides on holds.
    Reviewer,
    /// Runs the gateway; never votes.
    Admin,
    /// Reads everything, changes nothing.
    Auditor,
}

/// A person's account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Immutable, so that a renamed account is still the same voter.
    pub id: AccountId,
    /// What it signs in with and is shown as.
    pub name: String,
    /// What it may do.
    pub role: PersonRole,
    /// Which groups it stands for.
    pub groups: BTreeSet<GroupName>,
    /// An argon2id hash in PHC form.
    pub password: String,
    /// Set when the account may not be used any more.
    pub disabled: bool,
    /// Since when it exists.
    pub created_at: Timestamp,
}

/// What a machine may do. A token has exactly one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachineRole {
    /// Creates threads and reads decisions of its flow.
    Host,
    /// Proposes as its nodes.
    Agent,
    /// Verifies, confirms and aborts as its node.
    Writer,
    /// Reads everything, changes nothing.
    Auditor,
    /// Runs the gateway; never proposes, verifies or votes.
    Admin,
}

impl MachineRole {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Agent => "agent",
            Self::Writer => "writer",
            Self::Auditor => "auditor",
            Self::Admin => "admin",
        }
    }
}

/// A machine's token. Its secret is stored as a hash only.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The public part.
    pub id: TokenId,
    /// What people call it.
    pub name: String,
    /// What it may do.
    pub role: MachineRole,
    /// The person or group that answers for it; who owns an agent cannot approve what it proposed.
    pub owner: String,
    /// The one flow it is bound to; none for auditors and admins, who are bound to no flow.
    pub flow: Option<FlowId>,
    /// The nodes it may act as.
    pub nodes: BTreeSet<NodeId>,
    /// SHA-256 of the secret part, in hex. The secret is 256 random bits, so a plain hash is enough.
    pub secret_hash: String,
    /// Set when it may not be used any more.
    pub revoked: bool,
    /// Since when it exists.
    pub created_at: Timestamp,
}

impl Token {
    /// Who a statement names.
    pub fn principal(&self) -> PrincipalId {
        PrincipalId::from(&self.id)
    }

    /// Whether it may act as this node of this flow.
    pub fn acts_as(&self, flow: &FlowId, node: &NodeId) -> bool {
        self.of_flow(flow) && self.nodes.contains(node)
    }

    /// Whether it is bound to this flow.
    pub fn of_flow(&self, flow: &FlowId) -> bool {
        self.flow.as_ref() == Some(flow)
    }
}

/// A browser session. Its id is the hash of the cookie, so that a database reader cannot take it over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// SHA-256 of the cookie's secret.
    pub id: SessionId,
    /// Whose.
    pub account: AccountId,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when.
    pub expires_at: Timestamp,
    /// Set when it was signed out.
    pub ended: bool,
}

/// A one-time link: to set the gateway up, or (in the demonstration) to sign in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneTimeLink {
    /// SHA-256 of the secret in the link.
    pub id: SessionId,
    /// What it is good for.
    pub purpose: LinkPurpose,
    /// Until when.
    pub expires_at: Timestamp,
    /// Set when it was used.
    pub used: bool,
}

/// What a one-time link is good for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "purpose", rename_all = "snake_case", deny_unknown_fields)]
pub enum LinkPurpose {
    /// Makes the first account.
    SetUp {},
    /// Signs one account in.
    SignIn {
        /// Whose.
        account: AccountId,
    },
}
