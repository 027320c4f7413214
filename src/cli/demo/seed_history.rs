//! Seeds sample history in a third flow within a few seconds. All of it uses the same service calls as real clients, so
//! its timestamps are real.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use countersign_adapters::random;
use countersign_domain::chain::hash::Digest;
use countersign_domain::episode::goal::EpisodeTerms;
use countersign_domain::identity::account::{MachineRole, PersonRole, Token};
use countersign_domain::identity::party::Party;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::operations::halt::Halt;
use countersign_domain::policy::PolicySource;
use countersign_domain::primitives::id::{AccountId, FlowId, NodeId, ReviewId, ThreadId, WriteId};
use countersign_domain::reviews::edit::ReviewEdit;
use countersign_domain::reviews::{Ballot, BrowserCheck, CheckboxState, VoteVerdict, VoterProof};
use countersign_domain::threads::thread::Context;
use countersign_domain::threads::usage::Usage;
use countersign_service::error::{Error, Result};
use countersign_service::identity::accounts::NewToken;
use countersign_service::identity::delegations::NewDelegation;
use countersign_service::identity::owner_names::NewOwner;
use countersign_service::identity::passkeys::PasskeyConfirmation;
use countersign_service::operations::halt::HaltScope;
use countersign_service::proposals::outcome::ProposalOutcome;
use countersign_service::proposals::request::{Proposal, ProposalKind};
use countersign_service::proposals::rollback::RollbackInput;
use countersign_service::reviews::comment::NewComment;
use countersign_service::reviews::edit::{EditRequest, EditResult};
use countersign_service::threads::create::NewThread;
use countersign_service::writes::revoke_receipt::Revoker;
use countersign_service::writes::verify::VerifyInput;
use countersign_service::{Service, Stored};
use serde_json::{Value, json};

use super::accounts::{PAYMENTS, new_account};
use super::{DemoSetup, HISTORY_FLOW as FLOW};
use crate::cli::open_service;

/// The deadline of its reviews. It is short, so that the history contains expired reviews.
const TTL: &str = "20s";

/// The number of later reviews, and the pause between them.
const MORE: usize = 12;
const EVERY: Duration = Duration::from_secs(15);

/// The duration of a delegation.
const AWAY: Duration = Duration::from_secs(7 * 24 * 3600);

/// The accounts and machines that the program controls.
pub(super) struct DemoHistoryActors {
    pub(super) service: Arc<Service>,
    pub(super) cleo: AccountId,
    dan: AccountId,
    // A delegation is confirmed with the password, because the account has no passkey.
    dans_password: String,
    host: Stored<Token>,
    pub(super) agent: Stored<Token>,
    pub(super) writer: Stored<Token>,
}

pub(super) struct HeldSample {
    pub(super) transition: Digest,
    review: ReviewId,
}

pub(super) fn name<T: TryFrom<String>>(text: &str) -> Result<T> {
    T::try_from(text.to_owned()).map_err(|_| Error::NotFound("name"))
}

/// Returns the payments policy with a short deadline, rollbacks, and approval for policy changes.
fn refunds(ttl: &str) -> PolicySource {
    let text = PAYMENTS.text.replacen("flow = \"payments\"", "flow = \"refunds\"", 1);
    let text = text.replacen("payments.schema.json", "refunds.schema.json", 1);
    let text = text.replacen("[nodes.planner]\n", "[nodes.planner]\nrollback = true\n", 1);
    let text = text.replacen("ttl = \"15m\"", &format!("ttl = \"{ttl}\""), 1);
    let text = text + "reveal_to = [\"security\"]\n\n[approval.policy]\ngroups = [\"finance\"]\nttl = \"1h\"\n";
    PAYMENTS.source_for(FLOW, text)
}

impl DemoHistoryActors {
    pub(super) async fn engage(service: &Arc<Service>) -> Result<Self> {
        service.policy_changes.activate_policy(&open_service::principal(), None, refunds(TTL), BTreeSet::new()).await?;
        let (service, dans_password) = (Arc::clone(service), random::uuid_v4().to_string());
        Ok(Self {
            cleo: person(&service, "cleo", &random::uuid_v4().to_string()).await?,
            dan: person(&service, "dan", &dans_password).await?,
            dans_password,
            host: token(&service, "refund-desk", MachineRole::Host, &[]).await?,
            agent: token(&service, "refund-agent", MachineRole::Agent, &["planner", "input_parser"]).await?,
            writer: token(&service, "refund-ledger", MachineRole::Writer, &["database_writer"]).await?,
            service,
        })
    }

    pub(super) async fn live(&self, admin: &AccountId) -> Result<()> {
        self.written().await?;
        self.decided_otherwise().await?;
        self.talked_over().await?;
        self.rewritten().await?;
        self.rolled_back().await?;
        self.taken_back().await?;
        self.looked_after(admin).await
    }

    /// Adds reviews for a few minutes, so that live pages change.
    pub(super) async fn add_history(&self, stage: &DemoSetup) -> Result<()> {
        for round in 0..MORE {
            tokio::time::sleep(EVERY).await;
            // Names below 200 belong to the threads that were seeded at the start.
            let thread = format!("refund-{}", 200 + round);
            self.begin(&thread, None).await?;
            let held = self.ask(&thread, json!({"payment": {"amount": 100 + round}})).await?;
            tokio::time::sleep(stage.pace * u32::try_from(round % 5 + 1).unwrap_or(1)).await;
            match round % 4 {
                0 | 2 => self.say(&self.cleo, &held, VoteVerdict::Approve, None).await?,
                1 => self.say(&self.dan, &held, VoteVerdict::Deny, Some("Not what the customer asked for.")).await?,
                // This review expires without a decision.
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) async fn begin(&self, thread: &str, episode: Option<EpisodeTerms>) -> Result<Digest> {
        let context = Context {
            title: Some(format!("Refund {thread}")),
            on_behalf_of: Some("Eva Example".to_owned()),
            ..Context::default()
        };
        let state = json!({
            "raw_text": "Please refund my order.", "requested_action": "none", "target_user_id": 17,
            "payment": {"amount": 40, "currency": "EUR", "card": "4000 0000 0000 0002"},
        });
        let new = NewThread { flow: name(FLOW)?, thread: Some(name(thread)?), state, context, episode };
        Ok(self.service.threads.create_thread(&self.host, &new).await?.transition)
    }

    async fn propose(&self, thread: &str, patch: Value) -> Result<ProposalOutcome> {
        let thread: ThreadId = name(thread)?;
        let proposal = Proposal {
            // A commit moves the head, so each proposal looks up the current one.
            parent: self.service.threads.overview(&thread).await?.thread.head.transition,
            thread,
            node: name("planner")?,
            ask: ProposalKind::Patch { format: PatchFormat::MergePatch, patch },
            attempt: 1,
            rationale: Some("The customer's message asks for it.".to_owned()),
            tool: None,
            usage: Usage::default(),
            step: None,
        };
        self.service.proposals.propose(&self.agent, &proposal).await
    }

    pub(super) async fn ask(&self, thread: &str, patch: Value) -> Result<HeldSample> {
        match self.propose(thread, patch).await? {
            ProposalOutcome::Held { transition, hold, .. } => Ok(HeldSample { transition, review: hold.id }),
            _ => Err(Error::WrongState("it is not held")),
        }
    }

    pub(super) async fn say(
        &self,
        who: &AccountId,
        of: &HeldSample,
        verdict: VoteVerdict,
        why: Option<&str>,
    ) -> Result<()> {
        let ballot = Ballot {
            delegation: None,
            transition: of.transition,
            stage: 0,
            verdict,
            nonce: nonce(),
            comment: why.map(str::to_owned),
            // No browser was involved.
            browser_check: BrowserCheck::NotRecomputed,
            proof: VoterProof::default(),
            typed: None,
            outcome_unknown_accepted: CheckboxState::No,
            told: None,
        };
        self.service.reviews.vote(who, &of.review, &ballot, None).await.map(drop)
    }

    /// Seeds an approved write with a comment, and a rejected proposal.
    async fn written(&self) -> Result<()> {
        self.begin("refund-101", None).await?;
        self.propose("refund-101", json!({"requested_action": "refund"})).await?;
        self.propose("refund-101", json!({"is_admin": true})).await?;
        self.propose("refund-101", json!({"execution_permissions": ["all"]})).await?;
        let held = self.ask("refund-101", json!({"target_user_id": 18})).await?;
        let comment = NewComment {
            transition: held.transition,
            words: "The order was placed for 18, I looked it up.".to_owned(),
            nonce: nonce(),
        };
        self.service.reviews.comment(&self.dan, &held.review, &comment).await?;
        self.say(&self.cleo, &held, VoteVerdict::Approve, Some("Right, order 4711.")).await?;
        let write = self.verify("refund-101", Some(held.transition), "refund-write-1").await?;
        self.service.writes.confirm(&self.writer, &write, &json!({"result_ref": "refund-write-1"})).await?;
        Ok(())
    }

    pub(super) async fn verify(&self, thread: &str, approved: Option<Digest>, write_id: &str) -> Result<WriteId> {
        let thread: ThreadId = name(thread)?;
        let head = self.service.threads.overview(&thread).await?.thread.head.transition;
        let receipt = match approved {
            Some(transition) => {
                self.service.reviews.decision(transition, &Party::Receiver).await?.1.and_then(|it| it.receipt)
            }
            None => None,
        };
        let ask = VerifyInput { thread, transition: head, receipt, write_id: name(write_id)?, expect: Vec::new() };
        Ok(self.service.writes.verify(&self.writer, &ask).await?.write.key.write_id)
    }

    /// Seeds a denied, a cancelled and an expired review, and a closed thread.
    async fn decided_otherwise(&self) -> Result<()> {
        self.begin("refund-102", None).await?;
        let held = self.ask("refund-102", json!({"payment": {"amount": 4_000}})).await?;
        self.say(&self.dan, &held, VoteVerdict::Deny, Some("A hundred times what was paid.")).await?;
        let held = self.ask("refund-102", json!({"payment": {"amount": 400}})).await?;
        self.service.threads.cancel(&self.agent, held.transition, "the customer wrote again").await?;
        self.service.threads.close_thread(&open_service::principal(), &name("refund-102")?, "settled by phone").await?;
        self.begin("refund-103", None).await?;
        // No reviewer decides this review, so it expires.
        self.ask("refund-103", json!({"target_user_id": 99})).await?;
        self.begin("refund-104", None).await?;
        let write = self.verify("refund-104", None, "refund-write-2").await?;
        self.service.writes.abort(&self.writer, &write, "the ledger was locked").await?;
        Ok(())
    }

    async fn talked_over(&self) -> Result<()> {
        self.begin("refund-105", None).await?;
        let held = self.ask("refund-105", json!({"payment": {"amount": 45}})).await?;
        let comment = NewComment { transition: held.transition, words: "45, not 40?".to_owned(), nonce: nonce() };
        self.service.reviews.comment(&self.cleo, &held.review, &comment).await?;
        self.say(&self.dan, &held, VoteVerdict::Approve, Some("Postage included.")).await
    }

    /// Seeds a proposal that one reviewer edits and the other approves.
    async fn rewritten(&self) -> Result<()> {
        self.begin("refund-106", None).await?;
        let held = self.ask("refund-106", json!({"target_user_id": 71})).await?;
        let pointer = "/target_user_id".try_into().map_err(|_| Error::NotFound("place"))?;
        let edit = ReviewEdit { values: BTreeMap::from([(pointer, json!(17))]), more: None };
        let ask = EditRequest { transition: held.transition, edit, why: "Two digits were swapped.".to_owned() };
        if let EditResult::Held(review) = self.service.reviews.rewrite(&self.cleo, &held.review, &ask).await? {
            let by = self
                .service
                .reviews
                .decision(held.transition, &Party::Receiver)
                .await?
                .1
                .and_then(|it| it.superseded_by);
            let transition = by.ok_or(Error::WrongState("nothing superseded it"))?;
            self.say(&self.dan, &HeldSample { transition, review }, VoteVerdict::Approve, None).await?;
        }
        Ok(())
    }

    /// Seeds a rollback.
    async fn rolled_back(&self) -> Result<()> {
        self.begin("refund-107", None).await?;
        self.propose("refund-107", json!({"requested_action": "payout"})).await?;
        let thread: ThreadId = name("refund-107")?;
        let head = self.service.threads.overview(&thread).await?.thread.head.transition;
        let rollback = RollbackInput {
            thread,
            node: name("planner")?,
            parent: head,
            to_version: 0,
            attempt: 1,
            reason: Some("A payout was never asked for.".to_owned()),
        };
        let review = self.service.proposals.ask_for_rollback(&self.dan, &rollback).await?;
        let cleo = self.service.identity.account_row(&self.cleo).await?.record;
        let transition = self.service.reviews.review(&review, &cleo).await?.transition.digest;
        self.say(&self.cleo, &HeldSample { transition, review }, VoteVerdict::Approve, None).await
    }

    /// Seeds a revoked receipt, a revoked token and a halt.
    async fn taken_back(&self) -> Result<()> {
        self.begin("refund-108", None).await?;
        let held = self.ask("refund-108", json!({"target_user_id": 81})).await?;
        self.say(&self.cleo, &held, VoteVerdict::Approve, None).await?;
        let receipt = self.service.reviews.decision(held.transition, &Party::Receiver).await?.1.and_then(|it| it.nonce);
        let receipt = receipt.ok_or(Error::NotFound("receipt"))?;
        self.service
            .writes
            .revoke_receipt(&Revoker::Reviewer(self.cleo.clone()), &receipt, "I took 81 for 18.")
            .await?;
        let spare = token(&self.service, "refund-agent-old", MachineRole::Agent, &["planner"]).await?;
        self.service.identity.revoke_token(&spare.record.id).await?;
        let scope = HaltScope::Flow(name(FLOW)?);
        // The halt is lifted at once, because the flow gets more proposals later.
        for (proposing, reason) in [(true, "A drill: does everything stop?"), (false, "It did.")] {
            let halt = Halt { proposing, verifying: proposing, reason: reason.to_owned() };
            self.service.operations.set_halt(&open_service::principal(), &scope, &halt).await?;
        }
        Ok(())
    }

    /// Seeds a delegation, an invitation, and a policy change request that waits for approval.
    async fn looked_after(&self, admin: &AccountId) -> Result<()> {
        let (dan, _) = self.service.identity.sign_in("dan", self.dans_password.clone()).await?;
        let naming = NewDelegation { to: "cleo".to_owned(), length: AWAY };
        self.service
            .identity
            .delegate_to(&dan, &naming, PasskeyConfirmation::Password(self.dans_password.clone()))
            .await?;
        // The session was needed only to confirm the delegation.
        self.service.identity.sign_out(&dan).await?;
        let admin = self.service.identity.account_row(admin).await?;
        self.service.identity.invite(&admin, &new_account("emil", PersonRole::Reviewer, &["finance"])).await?;
        self.service
            .policy_changes
            .activate_policy(&open_service::principal(), None, refunds("1m"), BTreeSet::new())
            .await?;
        Ok(())
    }
}

fn nonce() -> String {
    random::uuid_v4().to_string()
}

async fn person(service: &Service, name: &str, password: &str) -> Result<AccountId> {
    let new = new_account(name, PersonRole::Reviewer, &["finance"]);
    Ok(service.identity.add_account(&new, password.to_owned()).await?.id)
}

async fn token(service: &Service, name: &str, role: MachineRole, nodes: &[&str]) -> Result<Stored<Token>> {
    let new = NewToken {
        name: name.to_owned(),
        role,
        // No reviewer is in this group, so the owner excludes none of them from the reviews.
        owner: NewOwner::Group("platform".to_owned()),
        flow: FlowId::try_from(FLOW).ok(),
        nodes: nodes.iter().filter_map(|it| NodeId::try_from(*it).ok()).collect(),
    };
    service.identity.token_of(&service.identity.add_token(&new).await?.1).await
}
