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
use super::mcp_server::connect_lines;
use super::sign_in_links::SignInLinks;
use crate::cli::{CliError, open_service};

pub(super) struct DemoMachines {
    pub(super) host: DemoMachine,
    pub(super) agent: DemoMachine,
    pub(super) writer: DemoMachine,
    pub(super) second_host: DemoMachine,
    pub(super) second_agent: DemoMachine,
    /// The agent that calls tools through the gateway.
    pub(super) support: DemoMachine,
    /// The administrator of accounts and halts.
    pub(super) admin: AccountId,
    pub(super) links: Arc<SignInLinks>,
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

/// The tools of the demo's MCP server.
const SUPPORT: &str = include_str!("../../../examples/support/policy.toml");

pub(super) struct ExamplePolicy {
    flow: &'static str,
    pub(super) text: &'static str,
    state_schema: &'static str,
    planner_schema: &'static str,
}

impl ExamplePolicy {
    /// Returns the policy with this time for decisions.
    fn with_deadline(&self, deadline: &str) -> PolicySource {
        self.source_for(self.flow, with_deadline(self.text, deadline))
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
    let support = PolicySource { text: with_deadline(SUPPORT, &stage.deadline), ..PolicySource::default() };
    let payments = [PAYMENTS.with_deadline(&stage.deadline), PAYOUTS.with_deadline(&stage.deadline)];
    for source in payments.into_iter().chain([support]) {
        service.policy_changes.activate_policy(&by, None, source, BTreeSet::new()).await?;
    }
    let (admin, links) = people(service, url, stage).await?;
    stage.voice.say(
        "\nThree machines, each with its own token: a host, an agent and a writer. Their requests and the results follow. With \
         --verbose their bodies follow too.",
    );
    let own_client = token(service, "own-client", MachineRole::Instance, "support", &["agent"]).await?;
    stage.voice.say(&connect_lines(url, &own_client));
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
        support: machine("support", MachineRole::Instance, "support", &["agent"]).await?,
        admin,
        links,
    })
}

/// Creates the accounts, and prints their links. Returns the administrator and the links.
async fn people(
    service: &Arc<Service>,
    url: &str,
    stage: &DemoSetup,
) -> Result<(AccountId, Arc<SignInLinks>), CliError> {
    // The flow `payouts` needs two approvals, so one reviewer would not be enough.
    let ada = person(service, "ada", PersonRole::Reviewer, &["finance"]).await?;
    let ben = person(service, "ben", PersonRole::Reviewer, &["finance", "security"]).await?;
    let gus = person(service, "gus", PersonRole::Admin, &[]).await?;
    let links = SignInLinks::start(service, url, &[("ada", ada), ("ben", ben), ("gus", gus.clone())])?;
    stage.voice.say(&format!(
        "\nTwo reviewers, and an administrator who invites people and lifts halts. Open a link in a browser to sign in. The \
         links work until the demo ends. Use a private window for the second person:\n  \
         ada (finance): {}\n  ben (finance, security): {}\n  gus (administrator): {}",
        links.to("ada", "/"),
        links.to("ben", "/"),
        links.to("gus", "/")
    ));
    Ok((gus, links))
}

fn with_deadline(policy: &str, deadline: &str) -> String {
    let line = |it: &str| if it.starts_with("ttl = ") { format!("ttl = \"{deadline}\"\n") } else { format!("{it}\n") };
    policy.lines().map(line).collect()
}

/// Returns the input for a new account.
pub(super) fn new_account(name: &str, role: PersonRole, groups: &[&str]) -> NewAccount {
    // The names are literals and valid, so none is dropped.
    let groups = groups.iter().filter_map(|it| GroupName::try_from(*it).ok()).collect();
    NewAccount { name: name.to_owned(), role, groups }
}

/// Creates an account with a random password that is discarded. Its links sign in.
async fn person(service: &Service, name: &str, role: PersonRole, groups: &[&str]) -> Result<AccountId, Error> {
    let account = service.identity.add_account(&new_account(name, role, groups), random::uuid_v4().to_string()).await?;
    Ok(account.id)
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
