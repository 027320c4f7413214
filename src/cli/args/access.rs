//! Arguments of `user …` and `token …`.

use std::collections::BTreeSet;

use clap::Subcommand;
use countersign_domain::identity::account::{MachineRole, PersonRole};
use countersign_domain::primitives::id::{FlowId, GroupName, NodeId, TokenId};

use super::values::{label, machine_role, person_role};

/// `user …`
#[derive(Subcommand, Debug)]
pub enum UserCommand {
    /// Add an account. A name that already exists is refused, and that account does not change.
    ///
    /// The command also refuses a name that looks like an existing one, and a new group whose name looks like an existing
    /// group. A password has 12 to 256 characters.
    Add(UserAdd),
    /// List the accounts with their roles and groups.
    List,
    /// Set the groups of an account. They replace its groups.
    ///
    /// Votes of the person on pending reviews no longer count where their new groups may not vote.
    SetGroups(UserSetGroups),
    /// Set the role of an account: reviewer, admin or auditor. The last administrator keeps the role.
    SetRole(UserSetRole),
    /// Print a link with which the owner of an account chooses a new password. It works once, for 24 hours.
    ///
    /// All sessions of the account end now. The old password works until a new one is set. The link is in the audit log,
    /// without its secret.
    PasswordLink(UserName),
    /// Disable an account. The person cannot sign in or vote, and their sessions end.
    ///
    /// Their approvals of pending reviews no longer count. Tokens that the account owns stay valid. The last
    /// administrator who can sign in cannot be disabled.
    Disable(UserName),
    /// Enable a disabled account.
    Enable(UserName),
    /// Remove all passkeys of an account, for a person who lost them.
    ///
    /// Ends the sessions that those passkeys opened. The person signs in with their password again. The removal is in the
    /// audit log.
    RemovePasskeys(UserName),
}

/// `user add …`
#[derive(clap::Args, Debug)]
pub struct UserAdd {
    /// The user name.
    #[arg(value_parser = label)]
    pub name: String,
    /// The role of the account: reviewer, admin or auditor.
    #[arg(long, value_parser = person_role)]
    pub role: PersonRole,
    /// A group of the account. Repeatable. A group that does not exist yet is created.
    #[arg(long = "group", value_name = "GROUP", value_delimiter = ',')]
    pub groups: Vec<GroupName>,
    /// Read the password from the first line of standard input. There is no other way to pass it.
    #[arg(long, required = true)]
    pub password_stdin: bool,
}

/// `user set-groups …`
#[derive(clap::Args, Debug)]
pub struct UserSetGroups {
    /// The user name.
    #[arg(value_parser = label)]
    pub name: String,
    /// The groups, separated by commas. '' means none. A group that does not exist yet is created.
    pub groups: String,
}

/// `user set-role …`
#[derive(clap::Args, Debug)]
pub struct UserSetRole {
    /// The user name.
    #[arg(value_parser = label)]
    pub name: String,
    /// The role: reviewer, admin or auditor.
    #[arg(value_parser = person_role)]
    pub role: PersonRole,
}

/// `user disable|enable …`
#[derive(clap::Args, Debug)]
pub struct UserName {
    /// The user name.
    #[arg(value_parser = label)]
    pub name: String,
}

/// `token …`
#[derive(Subcommand, Debug)]
pub enum TokenCommand {
    /// Create a token and print it once.
    ///
    /// Standard output has only the token. Standard error lists the reviewers that the owner excludes, and what the flow
    /// still lacks: reviewers in the groups of a stage, or tokens for nodes. With `--json` they are in `excludes` and
    /// `findings`.
    Add(TokenAdd),
    /// List all tokens. Secrets are not stored and cannot be shown.
    List,
    /// Revoke a token. This cannot be undone: create a new token instead.
    Revoke(TokenRevoke),
    /// Create the secret with which a host signs its posts, and print it once.
    ///
    /// The previous secret stays valid for one more day. Secrets are derived from the keyring and stored in no row.
    WebhookSecret(TokenRevoke),
}

/// `token add …`
#[derive(clap::Args, Debug)]
pub struct TokenAdd {
    /// A name for the token.
    #[arg(value_parser = label)]
    pub name: String,
    /// The role of the token: host, agent, instance, provisioner, writer, auditor, admin or monitor.
    #[arg(long, value_parser = machine_role)]
    pub role: MachineRole,
    /// The account or group that is responsible for the token.
    ///
    /// For separation of duties, these reviewers cannot approve the proposals of their own agent.
    #[arg(long, value_parser = label)]
    pub owner: String,
    /// Accept an owner group that has no members yet.
    #[arg(long)]
    pub new_group: bool,
    /// The flow that the token is bound to.
    #[arg(long)]
    pub flow: Option<FlowId>,
    /// A node that the token acts as. Repeatable for an agent. A writer, an instance or a provisioner has exactly one.
    #[arg(long = "node", value_name = "NODE", value_delimiter = ',')]
    pub nodes: Vec<NodeId>,
}

impl TokenAdd {
    /// Returns the problem if flow and nodes do not fit the role.
    pub(super) fn misfit(&self) -> Option<&'static str> {
        // A node that is given twice counts once, because a token has a set of nodes.
        let nodes = self.nodes.iter().collect::<BTreeSet<_>>().len();
        match (self.role, &self.flow, nodes) {
            (
                MachineRole::Host
                | MachineRole::Agent
                | MachineRole::Instance
                | MachineRole::Provisioner
                | MachineRole::Writer,
                None,
                _,
            ) => Some("a token of this role needs a flow: add --flow FLOW"),
            (MachineRole::Agent, _, 0) => Some("an agent needs at least one node: add --node NODE"),
            (MachineRole::Writer | MachineRole::Instance | MachineRole::Provisioner, _, nodes) if nodes != 1 => {
                Some("a token of this role needs exactly one node: add --node NODE once")
            }
            (MachineRole::Host | MachineRole::Auditor | MachineRole::Admin | MachineRole::Monitor, _, 1..) => {
                Some("a token of this role has no node: remove --node")
            }
            _ => None,
        }
    }
}

/// `token revoke …`
#[derive(clap::Args, Debug)]
pub struct TokenRevoke {
    /// The id of the token, as `token list` prints it: the part of the token between `cs_` and the next `_`.
    pub id: TokenId,
}
