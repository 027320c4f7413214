//! `user …` and `token …`: who may come in.

use std::collections::BTreeSet;

use clap::Subcommand;

use super::values::{label, machine_role, person_role};
use crate::domain::identity::account::{MachineRole, PersonRole};
use crate::domain::primitives::id::{FlowId, GroupName, NodeId, TokenId};

/// `user …`
#[derive(Subcommand, Debug)]
pub enum User {
    /// Add a person. A name that an account has already is refused, and nothing of that account is changed.
    Add(UserAdd),
    /// Let a person in no more: they cannot sign in or vote, and their sessions end.
    Disable(UserName),
    /// Let a disabled person sign in again.
    Enable(UserName),
    /// Take all passkeys of a person away who has lost them: they begin again with their password.
    RemovePasskeys(UserName),
}

/// `user add …`
#[derive(clap::Args, Debug)]
pub struct UserAdd {
    /// What the person signs in with.
    #[arg(value_parser = label)]
    pub name: String,
    /// What the person may do: reviewer, admin or auditor.
    #[arg(long, value_parser = person_role)]
    pub role: PersonRole,
    /// A group that the person stands for; may be said several times. Naming a group makes it.
    #[arg(long = "group", value_name = "GROUP", value_delimiter = ',')]
    pub groups: Vec<GroupName>,
    /// Read the password from standard input; there is no other way to give it.
    #[arg(long, required = true)]
    pub password_stdin: bool,
}

/// `user disable|enable …`
#[derive(clap::Args, Debug)]
pub struct UserName {
    /// What the person signs in with.
    #[arg(value_parser = label)]
    pub name: String,
}

/// `token …`
#[derive(Subcommand, Debug)]
pub enum Token {
    /// Make a token and print it, this once.
    Add(TokenAdd),
    /// Say which tokens there are. Their secrets are kept nowhere, so none is shown.
    List,
    /// Accept nothing from a token any more. There is no way back: make another.
    Revoke(TokenRevoke),
    /// Make the secret that a host signs its posts with, and print it, this once. The one before counts for a day more.
    WebhookSecret(TokenRevoke),
}

/// `token add …`
#[derive(clap::Args, Debug)]
pub struct TokenAdd {
    /// What people call it.
    #[arg(value_parser = label)]
    pub name: String,
    /// What it may do: host, agent, writer, auditor, admin or monitor.
    #[arg(long, value_parser = machine_role)]
    pub role: MachineRole,
    /// The account or group that answers for it. Its people cannot approve what an agent of theirs proposes.
    #[arg(long, value_parser = label)]
    pub owner: String,
    /// The owner is a group, which may have no members yet.
    #[arg(long)]
    pub new_group: bool,
    /// The flow it is bound to.
    #[arg(long)]
    pub flow: Option<FlowId>,
    /// A node it may act as; an agent may have several, a writer has one.
    #[arg(long = "node", value_name = "NODE", value_delimiter = ',')]
    pub nodes: Vec<NodeId>,
}

impl TokenAdd {
    /// Roles of a flow name it; agents and writers name their nodes too.
    pub(super) fn misfit(&self) -> Option<&'static str> {
        let nodes = self.nodes.iter().collect::<BTreeSet<_>>().len();
        match (self.role, &self.flow, nodes) {
            (MachineRole::Host | MachineRole::Agent | MachineRole::Writer, None, _) => {
                Some("a token of this role is bound to a flow: add --flow FLOW")
            }
            (MachineRole::Agent, _, 0) => Some("an agent acts as nodes: add --node NODE"),
            (MachineRole::Writer, _, nodes) if nodes != 1 => Some("a writer acts as one node: say --node NODE once"),
            (MachineRole::Host | MachineRole::Auditor | MachineRole::Admin | MachineRole::Monitor, _, 1..) => {
                Some("a token of this role acts as no node: leave --node out")
            }
            _ => None,
        }
    }
}

/// `token revoke …`
#[derive(clap::Args, Debug)]
pub struct TokenRevoke {
    /// The token's id, as `token list` says it: what stands in the token between `cs_` and the next `_`.
    pub id: TokenId,
}
