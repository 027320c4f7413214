//! Accounts, tokens, sessions and one-time links.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize};

use crate::interrupts::signed_post::SigningSecretRef;
use crate::primitives::confusable::alike;
use crate::primitives::id::{AccountId, FlowId, GroupName, NodeId, PasskeyId, PrincipalId, SessionId, TokenId};
use crate::primitives::named_enum::named_json_enum;
use crate::primitives::time::Timestamp;

named_json_enum! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum PersonRole {
        Reviewer = "reviewer",
        /// Runs the gateway. It never votes.
        Admin = "admin",
        /// Reads everything and changes nothing.
        Auditor = "auditor",
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Immutable, so a renamed account is still the same voter.
    pub id: AccountId,
    /// The name for sign-in and display.
    pub name: String,
    pub role: PersonRole,
    /// The groups of the account.
    pub groups: BTreeSet<GroupName>,
    /// The sign-in method. Older rows have only the password's hash here.
    #[serde(alias = "password", deserialize_with = "sign_in_of_any_age")]
    pub sign_in: AccountCredential,
    pub disabled: bool,
    pub created_at: Timestamp,
    /// The last change of its permissions or sign-in method by another account. `None` if it was only changed by the
    /// command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<AccessChange>,
}

/// A change of an account by another account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessChange {
    pub by: PrincipalId,
    pub name: String,
    pub at: Timestamp,
}

impl Account {
    /// Returns the time of the last change by another account.
    pub fn settled_at(&self) -> Timestamp {
        // The later time counts, in case a clock was set back.
        self.changed.as_ref().map_or(self.created_at, |it| it.at.max(self.created_at))
    }

    /// Checks that the account is, or belongs to, the owner of a token. Names that look alike count as equal. So a
    /// typing error in an owner's name excludes too many people rather than too few.
    pub fn answers_for(&self, owner: &str) -> bool {
        owner == self.id.as_str()
            || alike(owner, &self.name)
            || self.groups.iter().any(|group| alike(owner, group.as_str()))
    }

    /// Checks that it is an enabled administrator.
    pub fn administers(&self) -> bool {
        self.role == PersonRole::Admin && !self.disabled
    }

    /// Returns the hash of its password, if it has one.
    pub fn password_hash(&self) -> Option<&str> {
        match &self.sign_in {
            AccountCredential::Password { hash } => Some(hash),
            AccountCredential::Oidc { .. } => None,
        }
    }
}

/// The sign-in method of an account. It never changes, so an identity provider cannot take over an account with a
/// password.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum AccountCredential {
    /// A password of this gateway.
    Password {
        /// An argon2id hash in PHC form.
        hash: String,
    },
    /// An identity of an OpenID provider. The subject never changes, even if the name at the provider does.
    Oidc {
        issuer: String,
        /// The provider's id of the person.
        subject: String,
    },
}

fn sign_in_of_any_age<'de, D: Deserializer<'de>>(from: D) -> Result<AccountCredential, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum StoredCredential {
        Hash(String),
        SignIn(AccountCredential),
    }
    Ok(match StoredCredential::deserialize(from)? {
        // Older rows contain only the hash of a password.
        StoredCredential::Hash(hash) => AccountCredential::Password { hash },
        StoredCredential::SignIn(sign_in) => sign_in,
    })
}

named_json_enum! {
    /// The role of a token. A token has exactly one.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
    pub enum MachineRole {
        /// Creates threads and reads the decisions of its flow.
        Host = "host",
        Agent = "agent",
        /// Asks for the approval of tool calls as its node, and runs the approved ones.
        Instance = "instance",
        /// Creates instances of its node, and does nothing else.
        Provisioner = "provisioner",
        /// Verifies, confirms and aborts as its node.
        Writer = "writer",
        /// Reads everything and changes nothing.
        Auditor = "auditor",
        /// Runs the gateway. It never proposes, verifies or votes.
        Admin = "admin",
        /// Reads only the gateway's metrics.
        Monitor = "monitor",
    }
}

/// A machine's token. Only a hash of its secret is stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    pub id: TokenId,
    pub name: String,
    pub role: MachineRole,
    /// The responsible person or group. The owner of an agent cannot approve its proposals (separation of duties).
    pub owner: String,
    /// The flow of the token. `None` for auditors and administrators.
    pub flow: Option<FlowId>,
    pub nodes: BTreeSet<NodeId>,
    /// SHA-256 of the secret part, in hex. The secret is 256 random bits, so a plain hash is enough.
    pub secret_hash: String,
    pub revoked: bool,
    pub created_at: Timestamp,
    /// The secret for signed posts, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing: Option<SigningSecretRef>,
    /// The expiry, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl Token {
    pub fn principal(&self) -> PrincipalId {
        PrincipalId::from(&self.id)
    }

    /// Checks that the token may act as a node of a flow.
    pub fn acts_as(&self, flow: &FlowId, node: &NodeId) -> bool {
        self.of_flow(flow) && self.nodes.contains(node)
    }

    /// Checks that the token is neither revoked nor expired.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        !self.revoked && self.expires_at.is_none_or(|it| now < it)
    }

    /// Checks that the token belongs to a flow.
    pub fn of_flow(&self, flow: &FlowId) -> bool {
        self.flow.as_ref() == Some(flow)
    }
}

/// A browser session. Its id is the hash of the cookie, so an attacker who reads the database cannot use it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// SHA-256 of the cookie's secret.
    pub id: SessionId,
    pub account: AccountId,
    pub created_at: Timestamp,
    /// The expiry, or the time at which it was ended earlier.
    pub expires_at: Timestamp,
    pub ended: bool,
    /// The approximate origin, by which the person can recognize the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<SessionOrigin>,
    /// The provider's ID token, as a hint for signing out there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_hint: Option<String>,
    /// The passkey of the sign-in, if one was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passkey: Option<PasskeyUsed>,
}

impl Session {
    /// Checks that the session is valid.
    pub fn is_open(&self, now: Timestamp) -> bool {
        !self.ended && now < self.expires_at
    }

    /// Returns the session ended early.
    pub fn over(&self, now: Timestamp) -> Self {
        // A session that has expired already keeps its earlier time.
        Self { ended: true, expires_at: self.expires_at.min(now), ..self.clone() }
    }
}

/// A passkey that opened a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PasskeyUsed {
    pub id: PasskeyId,
    /// The signed challenge. It is unique among sessions, so a signature cannot be replayed.
    pub challenge: String,
}

/// The origin of a session, only as precise as a person needs to recognize it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionOrigin {
    pub browser: String,
    /// The network, such as 192.0.2.0/24.
    pub network: String,
}

/// A one-time link for setup, an invitation, a password reset or, in the demo, a sign-in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneTimeLink {
    /// SHA-256 of the secret in the link.
    pub id: SessionId,
    pub purpose: LinkPurpose,
    pub expires_at: Timestamp,
    /// Set if the link is used or revoked.
    pub used: bool,
}

/// The purpose of a one-time link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "purpose", rename_all = "snake_case", deny_unknown_fields)]
pub enum LinkPurpose {
    SetUp {},
    SignIn {
        account: AccountId,
    },
    /// Creates one account.
    Invite {
        name: String,
        role: PersonRole,
        /// The groups of the new account.
        groups: BTreeSet<GroupName>,
        by: AccessChange,
    },
    /// Sets a new password of one account.
    Reset {
        account: AccountId,
        /// The administrator who created it. `None` for the command line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AccessChange>,
    },
    /// Not a link that a person opens: the state that a browser must return from an OpenID provider.
    Oidc {
        /// The hash of the browser's cookie. It binds the sign-in to this browser.
        browser: SessionId,
        /// The page after the sign-in.
        next: String,
    },
}

impl LinkPurpose {
    /// Returns the administrator who created it, if one did.
    pub const fn made_by(&self) -> Option<&AccessChange> {
        match self {
            Self::Invite { by, .. } => Some(by),
            Self::Reset { by, .. } => by.as_ref(),
            Self::SetUp {} | Self::SignIn { .. } | Self::Oidc { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(sign_in: &str) -> Result<Account, serde_json::Error> {
        let text = format!(
            r#"{{"id":"a-1","name":"ada","role":"reviewer","groups":[],{sign_in},"disabled":false,"created_at":"2026-11-21T01:36:40.123Z"}}"#
        );
        serde_json::from_str(&text)
    }

    #[test]
    fn older_row_opens_as_a_password_account() {
        let old = account(r#""password":"$argon2id$x""#).unwrap();
        assert_eq!(old.sign_in, AccountCredential::Password { hash: "$argon2id$x".to_owned() });
        assert_eq!(old.password_hash(), Some("$argon2id$x"));
        let again: Account = serde_json::from_str(&serde_json::to_string(&old).unwrap()).unwrap();
        assert_eq!(again, old);
    }

    #[test]
    fn oidc_account_has_no_password() {
        let new = account(r#""sign_in":{"by":"oidc","issuer":"https://id.example","subject":"7"}"#).unwrap();
        assert_eq!(new.password_hash(), None);
        for bad in [r#""x":1"#, r#""sign_in":{"by":"none"}"#, r#""sign_in":{"by":"oidc","issuer":"a"}"#] {
            assert!(account(bad).is_err(), "{bad}");
        }
    }
}
