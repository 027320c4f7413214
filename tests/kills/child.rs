//! The gateway that is killed. It works without pause and reports every acknowledgement until then.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::Token;
use countersign_domain::identity::party::Party;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::primitives::id::{AccountId, ReviewId, ThreadId, WriteId};
use countersign_domain::reviews::{Ballot, BrowserCheck, CheckboxState, VoteVerdict, VoterProof};

use countersign::worker::Workers;
use countersign_adapters::clock::SystemClock;
use countersign_adapters::keyring::Keyring;
use countersign_service::error::Error;
use countersign_service::proposals::outcome::ProposalOutcome;
use countersign_service::proposals::request::{Proposal, ProposalKind};
use countersign_service::threads::create::NewThread;
use countersign_service::writes::verify::VerifyInput;
use countersign_service::{Service, Stored};
use countersign_store::Store;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{CommitPoint, CommitProbe, SqliteOptions, SqliteStore, Synchronous};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ack::KillAcknowledgement;
use super::gateway;
use super::parent::settings;

/// How many work beside each other.
const HANDS: usize = 8;

/// The variable with the child's orders; without it this binary is the parent.
pub const ORDERS: &str = "KILLS_ORDERS";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KillChildConfig {
    pub database: String,
    pub keyring: String,
    pub synced: bool,
    /// At which point of which group of commits it is to be killed, if at a point at all.
    pub point: Option<(String, u64)>,
    /// Whether it sends events, too.
    pub sends: Option<SenderConfig>,
    pub host: String,
    pub planner: String,
    pub writer: String,
    pub reviewers: [String; 2],
}

/// The settings of a child that sends events.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SenderConfig {
    /// Once so many events are in the log, it only sends.
    pub until: u64,
}

/// The child's whole life. In the process that you start it has no orders, and so nothing to do.
#[test]
fn a_child_with_orders_is_busy_until_it_is_killed() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    // The test harness left a line half written.
    std::io::stdout().write_all(b"\n").unwrap();
    let orders: KillChildConfig = serde_json::from_str(&orders).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(work(orders));
}

fn tell(ack: &KillAcknowledgement) {
    let mut line = serde_json::to_vec(ack).unwrap();
    line.push(b'\n');
    std::io::stdout().lock().write_all(&line).unwrap();
}

/// Groups of commits until the fatal one; 0 when none is.
static TO_GO: AtomicU64 = AtomicU64::new(0);

fn stop_here() {
    if TO_GO.load(Ordering::SeqCst) > 0 && TO_GO.fetch_sub(1, Ordering::SeqCst) == 1 {
        tell(&KillAcknowledgement::AtPoint);
        loop {
            std::thread::park();
        }
    }
}

pub fn probe(point: Option<&(String, u64)>) -> CommitProbe {
    let Some((point, count)) = point else { return CommitProbe::default() };
    TO_GO.store(*count, Ordering::SeqCst);
    match point.as_str() {
        "locked" => CommitProbe(|at| {
            if at == CommitPoint::Locked {
                stop_here()
            }
        }),
        "written" => CommitProbe(|at| {
            if at == CommitPoint::Written {
                stop_here()
            }
        }),
        "committed" => CommitProbe(|at| {
            if at == CommitPoint::Committed {
                stop_here()
            }
        }),
        other => panic!("no such point: {other}"),
    }
}

async fn open(orders: &KillChildConfig) -> Arc<dyn Store> {
    let probe = probe(orders.point.as_ref());
    if orders.database.starts_with("postgres:") {
        let options = PostgresOptions { probe, ..PostgresOptions::default() };
        return Arc::new(PostgresStore::open(&orders.database, options).await.unwrap());
    }
    let synchronous = if orders.synced { Synchronous::Full } else { Synchronous::Off };
    let options = SqliteOptions { probe, synchronous, ..SqliteOptions::default() };
    Arc::new(SqliteStore::open(&orders.database, options).unwrap())
}

async fn work(orders: KillChildConfig) {
    let store = open(&orders).await;
    let keyring = Keyring::open(orders.keyring.as_ref(), None).unwrap();
    let service = Service::open(store, keyring, Arc::new(SystemClock), settings()).await.unwrap();
    let service = Arc::new(match orders.sends {
        Some(_) => service.with_http_client(gateway::outgoing()),
        None => service,
    });
    let _workers = Workers::start(&service, Duration::from_millis(50));
    let mut hands = Vec::new();
    for _ in 0..HANDS {
        let hand = LoadDriver {
            host: service.identity.token_of(&orders.host).await.unwrap(),
            planner: service.identity.token_of(&orders.planner).await.unwrap(),
            writer: service.identity.token_of(&orders.writer).await.unwrap(),
            reviewers: orders.reviewers.clone().map(|it| AccountId::try_from(it.as_str()).unwrap()),
            service: Arc::clone(&service),
            until: orders.sends.as_ref().map_or(u64::MAX, |it| it.until),
        };
        hands.push(tokio::spawn(hand.work()));
    }
    for hand in hands {
        hand.await.unwrap();
    }
    std::future::pending::<()>().await;
}

struct LoadDriver {
    service: Arc<Service>,
    host: Stored<Token>,
    planner: Stored<Token>,
    writer: Stored<Token>,
    reviewers: [AccountId; 2],
    /// Enough is in the log then.
    until: u64,
}

#[derive(Clone, Copy)]
enum HoldPlan {
    Deny,
    Cancel,
    LeaveOpen,
    Abort,
    Confirm,
}

const PLANS: [HoldPlan; 7] = [
    HoldPlan::Confirm,
    HoldPlan::Deny,
    HoldPlan::Confirm,
    HoldPlan::Abort,
    HoldPlan::Cancel,
    HoldPlan::Confirm,
    HoldPlan::LeaveOpen,
];

impl LoadDriver {
    async fn work(self) {
        for plan in PLANS.iter().cycle() {
            if self.until < u64::MAX && self.service.log.log_length().await.is_ok_and(|it| it >= self.until) {
                return;
            }
            if let Err(error) = self.live(*plan).await {
                tell(&KillAcknowledgement::Trouble { text: error.to_string() });
            }
        }
    }

    async fn live(&self, plan: HoldPlan) -> Result<(), Error> {
        let (thread, made) = self.make().await?;
        let head = self.propose(&thread, made, json!({"requested_action": "look"})).await?;
        self.propose(&thread, head, json!({"is_admin": true})).await?;
        let proposal = self.proposal(&thread, head, json!({"target_user_id": 42}));
        let ProposalOutcome::Held { transition, hold, .. } =
            self.service.proposals.propose(&self.planner, &proposal).await?
        else {
            panic!("it was to be held");
        };
        tell(&KillAcknowledgement::Held {
            thread: thread.to_string(),
            review: hold.id.to_string(),
            transition: transition.to_string(),
        });
        match plan {
            HoldPlan::LeaveOpen => Ok(()),
            HoldPlan::Cancel => {
                self.service.threads.cancel(&self.planner, transition, "never mind").await?;
                tell(&KillAcknowledgement::Cancelled { review: hold.id.to_string() });
                Ok(())
            }
            HoldPlan::Deny => {
                self.service
                    .reviews
                    .vote(&self.reviewers[0], &hold.id, &ballot(transition, VoteVerdict::Deny), None)
                    .await?;
                tell(&KillAcknowledgement::Denied { review: hold.id.to_string() });
                Ok(())
            }
            HoldPlan::Abort | HoldPlan::Confirm => {
                self.approve(&hold.id, transition).await?;
                self.write(&thread, transition, plan).await
            }
        }
    }

    async fn make(&self) -> Result<(ThreadId, Digest), Error> {
        let state = json!({"requested_action": "none", "target_user_id": 17, "payment": {"amount": 10}});
        let flow = self.host.record.flow.clone().unwrap();
        let new = NewThread { flow, thread: None, state, context: Default::default(), episode: None };
        let made = self.service.threads.create_thread(&self.host, &new).await?;
        tell(&KillAcknowledgement::Made { thread: made.thread.to_string(), transition: made.transition.to_string() });
        Ok((made.thread, made.transition))
    }

    fn proposal(&self, thread: &ThreadId, parent: Digest, patch: Value) -> Proposal {
        let ask = ProposalKind::Patch { format: PatchFormat::Merge, patch };
        let node = "planner".try_into().unwrap();
        Proposal {
            thread: thread.clone(),
            node,
            parent,
            ask,
            attempt: 1,
            rationale: None,
            tool: None,
            usage: Default::default(),
            step: None,
        }
    }

    async fn propose(&self, thread: &ThreadId, parent: Digest, patch: Value) -> Result<Digest, Error> {
        match self.service.proposals.propose(&self.planner, &self.proposal(thread, parent, patch)).await? {
            ProposalOutcome::Committed { version, transition, .. } => {
                tell(&KillAcknowledgement::Committed {
                    thread: thread.to_string(),
                    version,
                    transition: transition.to_string(),
                });
                Ok(transition)
            }
            ProposalOutcome::Rejected(_) => {
                tell(&KillAcknowledgement::Rejected { thread: thread.to_string() });
                Ok(parent)
            }
            ProposalOutcome::Held { .. } => panic!("nothing here is held"),
        }
    }

    async fn approve(&self, review: &ReviewId, transition: Digest) -> Result<(), Error> {
        self.service.reviews.vote(&self.reviewers[0], review, &ballot(transition, VoteVerdict::Approve), None).await?;
        tell(&KillAcknowledgement::Voted { review: review.to_string(), reviewer: self.reviewers[0].to_string() });
        self.service.reviews.vote(&self.reviewers[1], review, &ballot(transition, VoteVerdict::Approve), None).await?;
        tell(&KillAcknowledgement::Approved { review: review.to_string(), transition: transition.to_string() });
        Ok(())
    }

    /// Two writes race for the head, and `verify` allows one of them.
    async fn write(&self, thread: &ThreadId, transition: Digest, plan: HoldPlan) -> Result<(), Error> {
        let (_, decision) = self.service.reviews.decision(transition, &Party::Receiver).await?;
        let receipt = decision.and_then(|it| it.receipt).expect("an approved transition has its receipt");
        tell(&KillAcknowledgement::Receipt { transition: transition.to_string(), receipt: receipt.clone() });
        let ask = || VerifyInput {
            thread: thread.clone(),
            transition,
            receipt: Some(receipt.clone()),
            write_id: WriteId::try_from(countersign_adapters::random::uuid_v4().to_string().as_str()).unwrap(),
            expect: Vec::new(),
        };
        let (one, two) = (ask(), ask());
        let (one, two) = tokio::join!(
            self.service.writes.verify(&self.writer, &one),
            self.service.writes.verify(&self.writer, &two)
        );
        for allowed in [&one, &two].into_iter().flatten() {
            let write = &allowed.write;
            tell(&KillAcknowledgement::Reserved {
                write: name(write),
                fence: write.fence,
                transition: transition.to_string(),
            });
        }
        let write = one.or(two)?.write;
        if matches!(plan, HoldPlan::Abort) {
            self.service.writes.abort(&self.writer, &write.key.write_id, "the table was locked").await?;
            tell(&KillAcknowledgement::Aborted { write: name(&write) });
            return Ok(());
        }
        let ended =
            self.service.writes.confirm(&self.writer, &write.key.write_id, &json!({"result_ref": "row 1"})).await?;
        match &ended.state {
            countersign_domain::writes::write::WriteState::Confirmed { version, transition, .. } => {
                tell(&KillAcknowledgement::Confirmed {
                    write: name(&ended),
                    version: *version,
                    transition: transition.to_string(),
                });
            }
            other => tell(&KillAcknowledgement::Trouble { text: format!("a confirmed write is {other:?}") }),
        }
        Ok(())
    }
}

fn name(write: &countersign_domain::writes::write::Write) -> String {
    countersign_store::records::write_row_id(&write.key)
}

fn ballot(transition: Digest, verdict: VoteVerdict) -> Ballot {
    Ballot {
        transition,
        delegation: None,
        stage: 0,
        verdict,
        nonce: countersign_adapters::random::uuid_v4().to_string(),
        comment: None,
        browser_check: BrowserCheck::NotRecomputed,
        proof: VoterProof::default(),
        typed: None,
        outcome_unknown_accepted: CheckboxState::No,
        told: None,
    }
}
