//! People, tokens and sessions.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize};

use crate::domain::interrupts::signed_post::SigningSecretRef;
use crate::domain::primitives::confusable::alike;
use crate::domain::primitives::id::{AccountId, FlowId, GroupName, NodeId, PasskeyId, PrincipalId, SessionId, TokenId};
use crate::domain::primitives::time::Timestamp;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PersonRole {
    Reviewer,
    /// Runs the gateway; never votes.
    Admin,
    /// Reads everything, changes nothing.
    Auditor,
}

impl PersonRole {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reviewer => "reviewer",
            Self::Admin => "admin",
            Self::Auditor => "auditor",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Immutable, so that a renamed account is still the same voter.
    pub id: AccountId,
    /// What it signs in with and is shown as.
    pub name: String,
    pub role: PersonRole,
    /// Which groups it stands for.
    pub groups: BTreeSet<GroupName>,
    /// How its person shows who they are. Rows from before there was a choice hold the password's hash here.
    #[serde(alias = "password", deserialize_with = "sign_in_of_any_age")]
    pub sign_in: AccountCredential,
    /// Set when the account may not be used any more.
    pub disabled: bool,
    pub created_at: Timestamp,
    /// Who last had a hand in what it may do, or in how it signs in. Nobody where the command line made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<AccessChange>,
}

/// A hand in somebody else's account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessChange {
    pub by: PrincipalId,
    pub name: String,
    pub at: Timestamp,
}

impl Account {
    /// Since when it is as it is: nobody but its person has had a hand in it since.
    pub fn settled_at(&self) -> Timestamp {
        self.changed.as_ref().map_or(self.created_at, |it| it.at.max(self.created_at))
    }

    /// Whether its person is, or belongs to, the owner of a token. Names that look alike count as one, so that a slip
    /// in an owner's name excludes a person too many rather than none.
    pub fn answers_for(&self, owner: &str) -> bool {
        owner == self.id.as_str()
            || alike(owner, &self.name)
            || self.groups.iter().any(|group| alike(owner, group.as_str()))
    }

    /// Whether it runs the gateway.
    pub fn administers(&self) -> bool {
        self.role == PersonRole::Admin && !self.disabled
    }

    /// The hash of its password, if it has one.
    pub fn password_hash(&self) -> Option<&str> {
        match &self.sign_in {
            AccountCredential::Password { hash } => Some(hash),
            AccountCredential::Oidc { .. } => None,
        }
    }
}

/// How a person shows who they are. An account has one way from the moment it is made: a name that is taken by one
/// way is never reached by the other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum AccountCredential {
    /// By a password of this gateway's.
    Password {
        /// An argon2id hash in PHC form.
        hash: String,
    },
    /// By what an OpenID provider says. Who that is never changes, whatever they are called there.
    Oidc {
        issuer: String,
        /// The person, as the provider names them.
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
        StoredCredential::Hash(hash) => AccountCredential::Password { hash },
        StoredCredential::SignIn(sign_in) => sign_in,
    })
}

/// What a machine may do. A token has exactly one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachineRole {
    /// Creates threads and reads decisions of its flow.
    Host,
    Agent,
    /// Verifies, confirms and aborts as its node.
    Writer,
    /// Reads everything, changes nothing.
    Auditor,
    /// Runs the gateway; never proposes, verifies or votes.
    Admin,
    /// Reads what the gateway counts of itself, and nothing else.
    Monitor,
}

impl MachineRole {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Agent => "agent",
            Self::Writer => "writer",
            Self::Auditor => "auditor",
            Self::Admin => "admin",
            Self::Monitor => "monitor",
        }
    }
}

/// A machine's token. Its secret is stored as a hash only.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    pub id: TokenId,
    pub name: String,
    pub role: MachineRole,
    /// The person or group that answers for it; who owns an agent cannot approve what it proposed.
    pub owner: String,
    /// The one flow it is bound to; none for auditors and admins, who are bound to no flow.
    pub flow: Option<FlowId>,
    pub nodes: BTreeSet<NodeId>,
    /// SHA-256 of the secret part, in hex. The secret is 256 random bits, so a plain hash is enough.
    pub secret_hash: String,
    /// Set when it may not be used any more.
    pub revoked: bool,
    pub created_at: Timestamp,
    /// Which secret its holder signs posts with, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing: Option<SigningSecretRef>,
}

impl Token {
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
    pub account: AccountId,
    pub created_at: Timestamp,
    /// Until when: where it was ended before, since then.
    pub expires_at: Timestamp,
    pub ended: bool,
    /// Where it began, roughly: for its person to tell one from another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<SessionOrigin>,
    /// What an OpenID provider signed, so that it knows whom to sign out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_hint: Option<String>,
    /// The passkey that it was opened with, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passkey: Option<PasskeyUsed>,
}

impl Session {
    /// Whether it lets its person in.
    pub fn is_open(&self, now: Timestamp) -> bool {
        !self.ended && now < self.expires_at
    }

    /// The same one when it is over, before its time.
    pub fn over(&self, now: Timestamp) -> Self {
        Self { ended: true, expires_at: self.expires_at.min(now), ..self.clone() }
    }
}

/// A passkey that opened a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PasskeyUsed {
    pub id: PasskeyId,
    /// What it signed. No two sessions have the same, so that a signature opens one.
    pub challenge: String,
}

/// Where a session began, no closer than a person needs to know it again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionOrigin {
    pub browser: String,
    /// The network, as in 192.0.2.0/24.
    pub network: String,
}

/// A one-time link: to set the gateway up, to be invited, to choose another password, or (in the demonstration) to
/// sign in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneTimeLink {
    /// SHA-256 of the secret in the link.
    pub id: SessionId,
    pub purpose: LinkPurpose,
    pub expires_at: Timestamp,
    /// Set when it was used, or withdrawn.
    pub used: bool,
}

/// What a one-time link is good for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "purpose", rename_all = "snake_case", deny_unknown_fields)]
pub enum LinkPurpose {
    SetUp {},
    SignIn {
        account: AccountId,
    },
    /// Makes one account, for whoever it is given to.
    Invite {
        name: String,
        role: PersonRole,
        /// Which groups they stand for.
        groups: BTreeSet<GroupName>,
        by: AccessChange,
    },
    /// Lets the person of one account choose another password.
    Reset {
        account: AccountId,
        by: AccessChange,
    },
    /// Is no link that anybody opens: what a browser must bring back from an OpenID provider.
    Oidc {
        /// The hash of what that browser shows.
        browser: SessionId,
        /// Where its person goes on to.
        next: String,
    },
}

impl LinkPurpose {
    /// The administrator who made it for somebody, if one did.
    pub const fn made_by(&self) -> Option<&AccessChange> {
        match self {
            Self::Invite { by, .. } | Self::Reset { by, .. } => Some(by),
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
    fn a_row_from_before_there_was_a_choice_still_opens_as_a_password() {
        let old = account(r#""password":"$argon2id$x""#).unwrap();
        assert_eq!(old.sign_in, AccountCredential::Password { hash: "$argon2id$x".to_owned() });
        assert_eq!(old.password_hash(), Some("$argon2id$x"));
        let again: Account = serde_json::from_str(&serde_json::to_string(&old).unwrap()).unwrap();
        assert_eq!(again, old);
    }

    #[test]
    fn who_signs_in_elsewhere_has_no_password() {
        let new = account(r#""sign_in":{"by":"oidc","issuer":"https://id.example","subject":"7"}"#).unwrap();
        assert_eq!(new.password_hash(), None);
        for bad in [r#""x":1"#, r#""sign_in":{"by":"none"}"#, r#""sign_in":{"by":"oidc","issuer":"a"}"#] {
            assert!(account(bad).is_err(), "{bad}");
        }
    }
}
