//! Seeds the demo's flows, reviewers and machine tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_adapters::random;
use countersign_domain::identity::account::{MachineRole, PersonRole};
use countersign_domain::policy::PolicySource;
use countersign_domain::primitives::id::{AccountId, FlowId, GroupName, NodeId};
use countersign_service::Service;
use countersign_service::error::Error;
use countersign_service::identity::accounts::{NewAccount, NewToken};
use countersign_service::identity::owner_names::NewOwner;

use super::DemoSetup;
use super::client::DemoMachine;
use crate::cli::{CliError, open_service};

pub(super) struct DemoMachines {
    pub(super) host: DemoMachine,
    pub(super) agent: DemoMachine,
    pub(super) writer: DemoMachine,
    pub(super) second_host: DemoMachine,
    pub(super) second_agent: DemoMachine,
    /// The administrator of accounts and halts.
    pub(super) admin: AccountId,
}

/// The sample flows from `examples/`. They are compiled in, so that the binary needs no files.
pub(super) const PAYMENTS: ExamplePolicy = ExamplePolicy {
    flow: "payments",
    text: include_str!("../../../examples/payments/policy.toml"),
    state_schema: include_str!("../../../examples/payments/payments.schema.json"),
    planner_schema: include_str!("../../../examples/payments/planner.schema.json"),
};
const PAYOUTS: ExamplePolicy = ExamplePolicy {
    flow: "payouts",
    text: include_str!("../../../examples/payouts/policy.toml"),
    state_schema: include_str!("../../../examples/payouts/payouts.schema.json"),
    planner_schema: include_str!("../../../examples/payouts/planner.schema.json"),
};

pub(super) struct ExamplePolicy {
    flow: &'static str,
    pub(super) text: &'static str,
    state_schema: &'static str,
    planner_schema: &'static str,
}

impl ExamplePolicy {
    pub(super) fn source(&self) -> PolicySource {
        self.source_for(self.flow, self.text.to_owned())
    }

    /// Returns a variant of the policy, with the same schemas under the name of another flow.
    pub(super) fn source_for(&self, flow: &str, text: String) -> PolicySource {
        let schemas = BTreeMap::from([
            (format!("{flow}.schema.json"), self.state_schema.to_owned()),
            ("planner.schema.json".to_owned(), self.planner_schema.to_owned()),
        ]);
        PolicySource { text, schemas }
    }
}

/// Creates accounts and tokens, and prints the sign-in links.
pub(super) async fn engage(service: &Arc<Service>, url: &str, stage: &DemoSetup) -> Result<DemoMachines, CliError> {
    let by = open_service::principal();
    service.policy_changes.activate_policy(&by, None, PAYMENTS.source(), BTreeSet::new()).await?;
    service.policy_changes.activate_policy(&by, None, PAYOUTS.source(), BTreeSet::new()).await?;
    stage.voice.say(
        "\nTwo reviewers. Open a link in a browser to sign in (each link works once; use a private window for the second):",
    );
    // The flow `payouts` needs two approvals, so one reviewer would not be enough.
    for (name, groups) in [("ada", &["finance"][..]), ("ben", &["finance", "security"][..])] {
        let (_, link) = person(service, name, PersonRole::Reviewer, groups).await?;
        stage.voice.say(&format!("  {name} ({}): {url}/sign-in/{link}", groups.join(", ")));
    }
    let (admin, link) = person(service, "gus", PersonRole::Admin, &[]).await?;
    stage.voice.say(&format!("An administrator, who invites people and lifts halts:\n  gus: {url}/sign-in/{link}"));
    stage.voice.say(
        "\nThree machines, each with its own token: a host, an agent and a writer. Their requests and the results follow. With \
         --verbose their bodies follow too.",
    );
    let machine = |name: &'static str, role, flow: &'static str, nodes: &'static [&'static str]| async move {
        let text = token(service, name, role, flow, nodes).await?;
        DemoMachine::new(name, text, stage)
    };
    Ok(DemoMachines {
        host: machine("host", MachineRole::Host, "payments", &[]).await?,
        agent: machine("agent", MachineRole::Agent, "payments", &["planner", "input_parser"]).await?,
        writer: machine("writer", MachineRole::Writer, "payments", &["database_writer"]).await?,
        second_host: machine("host-2", MachineRole::Host, "payouts", &[]).await?,
        second_agent: machine("agent-2", MachineRole::Agent, "payouts", &["planner"]).await?,
        admin,
    })
}

/// Returns the input for a new account.
pub(super) fn new_account(name: &str, role: PersonRole, groups: &[&str]) -> NewAccount {
    // The names are literals and valid, so none is dropped.
    let groups = groups.iter().filter_map(|it| GroupName::try_from(*it).ok()).collect();
    NewAccount { name: name.to_owned(), role, groups }
}

/// Creates an account with a random password that is discarded. Its link signs in.
async fn person(
    service: &Service,
    name: &str,
    role: PersonRole,
    groups: &[&str],
) -> Result<(AccountId, String), Error> {
    let account = service.identity.add_account(&new_account(name, role, groups), random::uuid_v4().to_string()).await?;
    let link = service.identity.sign_in_link(&account.id).await?;
    Ok((account.id, link))
}

async fn token(service: &Service, name: &str, role: MachineRole, flow: &str, nodes: &[&str]) -> Result<String, Error> {
    let new = NewToken {
        name: name.to_owned(),
        role,
        // No reviewer is in this group, so the owner excludes none of them from the reviews.
        owner: NewOwner::Group("platform".to_owned()),
        flow: FlowId::try_from(flow).ok(),
        nodes: nodes.iter().filter_map(|it| NodeId::try_from(*it).ok()).collect(),
    };
    Ok(service.identity.add_token(&new).await?.1)
}
