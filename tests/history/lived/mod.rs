//! A small real history, made through public calls only: something of everything that is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub mod archives;
mod branches;
mod delegations;
mod episodes;
mod interrupts;
#[path = "../../support/passkeys.rs"]
mod passkeys;
pub mod remembered;
mod repeats;
pub mod sending;
mod stops;
mod ways_in;

use countersign_domain::chain::hash::Digest;
use countersign_domain::delivery::mail_contact::{MailContact, MailPace};
use countersign_domain::identity::account::{MachineRole, PersonRole, Token};
use countersign_domain::identity::party::Party;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::operations::halt::{Halt, LiftQuorum};
use countersign_domain::policy::{PolicySource, StateLimits};
use countersign_domain::policy_changes::change_request::PolicyChangeRequest;
use countersign_domain::primitives::id::{AccountId, FlowId, NodeId, PrincipalId, ReviewId, ThreadId, WriteId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::edit::ReviewEdit;
use countersign_domain::reviews::{Ballot, BrowserCheck, CheckboxState, VoteVerdict, VoterProof, WithdrawalRequest};
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::usage::Usage;

use countersign::worker::rejudge;
use countersign_adapters::clock::{Clock, ClockOffset, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::identity::accounts::{NewAccount, NewToken};
use countersign_service::identity::actor::Actor;
use countersign_service::identity::revocation::SignInAccess;
use countersign_service::operations::halt::HaltScope;
use countersign_service::operations::halt_request::HaltRequest;
use countersign_service::policy_changes::activate::ActivationOutcome;
use countersign_service::proposals::outcome::ProposalOutcome;
use countersign_service::proposals::request::{Proposal, ProposalKind};
use countersign_service::reviews::comment::NewComment;
use countersign_service::reviews::edit::{EditRequest, EditResult};
use countersign_service::reviews::reveal::RevealRequest;
use countersign_service::threads::create::NewThread;
use countersign_service::writes::revoke_receipt::Revoker;
use countersign_service::writes::verify::VerifyInput;
use countersign_service::{PeopleSettings, Service, ServiceSettings};
use countersign_store::Store;
use countersign_store::record::Stored;
use countersign_store::row::Table;
use countersign_store::sqlite::SqliteStore;
use serde_json::{Value, json};

use stops::{amends, lifts_in_pairs, stops_and_takes_back};
use ways_in::{looks_after_people, sign_in_and_out, uses_passkeys};

use crate::passwords::hashed;
use crate::sqlite::unsynced;

/// Moves with the store's clock.
#[derive(Clone, Default)]
pub struct TestClock(pub ClockOffset);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.0.applied_to(SystemClock.now())
    }

    fn instant(&self) -> Instant {
        SystemClock.instant()
    }
}

/// A gateway on a file, with a clock that tests move.
pub struct HistoryGateway {
    pub clock: TestClock,
    pub service: Arc<Service>,
    pub store: Arc<SqliteStore>,
}

pub const PASSWORD: &str = "correct horse battery staple";

impl HistoryGateway {
    pub async fn open(folder: &Path) -> Self {
        let clock = TestClock::default();
        Self::open_by(folder, clock.clone(), Arc::new(clock)).await
    }

    /// One whose own idea of the time is another than its store's.
    pub async fn open_by(folder: &Path, clock: TestClock, told: Arc<dyn Clock>) -> Self {
        let options = unsynced(&clock.0);
        let store = Arc::new(SqliteStore::open(folder.join("countersign.db"), options).unwrap());
        let kept: Arc<dyn Store> = Arc::<SqliteStore>::clone(&store);
        let service = service_on(folder, kept, told).await;
        Self { clock, service: Arc::new(service), store }
    }
}

/// A gateway on that database, with the keys and archives in the folder.
pub async fn service_on(folder: &Path, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Service {
    let keyring = Keyring::open_or_create(&folder.join("keyring.json"), None, &SystemClock).unwrap();
    let settings = ServiceSettings {
        limits: StateLimits::default(),
        public_url: "http://localhost:1".to_owned(),
        session_lifetime: Duration::from_secs(3600),
        people: people(),
    };
    let service = Service::open(store, keyring, clock, settings).await.unwrap();
    service.with_http_client(sending::outgoing()).archiving_in(archives::in_folder(folder))
}

/// Returns the policy of that example with its schemas. Added are:
///
/// - typed confirmation of approvals
/// - reminders and escalation
/// - allowed tools
/// - a rule that warns
/// - a budget of context tokens
/// - a group that may reveal redacted values
pub fn example(name: &str) -> PolicySource {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).join("policy.toml");
    let mut source = countersign::cli::policy::source_of(&file).unwrap();
    let notices = "ttl = \"15m\"\nremind_after = \"30s\"\nescalate_after = \"60s\"\nescalate_to = [\"support\"]";
    source.text = source.text.replacen("ttl = \"15m\"", notices, 1);
    source.text.push_str("reveal_to = [\"security\"]\n\n[tools]\nallow = [\"crm.*\"]\n");
    let warned = "[[rules]]\nwhen = \"change.path == '/target_user_id'\"\nthen = \"warn\"\nreason = \"another user\"\n";
    source.text.push_str(warned);
    // More than any of it is given, so that all of it is counted.
    source.text.push_str("\n[budgets.thread]\ncontext_tokens = 1000000\n");
    source.text = source.text.replacen("[nodes.planner]\n", "[nodes.planner]\nfork = true\n", 1);
    assert!(source.text.contains("need = 1"));
    source.text = source.text.replacen("need = 1", "need = 1\nconfirm = \"typed\"", 1);
    source
}

/// The people and machines of a history.
/// Two people lift what is stopped.
pub fn people() -> PeopleSettings {
    PeopleSettings { lift_needs: LiftQuorum::Two, ..PeopleSettings::default() }
}

pub struct HistoryActors {
    pub ada: AccountId,
    pub ben: AccountId,
    pub gus: AccountId,
    pub hal: AccountId,
    pub host: Stored<Token>,
    pub agent: Stored<Token>,
    pub writer: Stored<Token>,
    pub two_host: Stored<Token>,
    pub two_agent: Stored<Token>,
}

pub fn admin() -> PrincipalId {
    PrincipalId::try_from("command-line").unwrap()
}

pub fn flow(name: &str) -> FlowId {
    FlowId::try_from(name).unwrap()
}

pub fn thread(name: &str) -> ThreadId {
    ThreadId::try_from(name).unwrap()
}

async fn person(service: &Service, name: &str, groups: &[&str]) -> AccountId {
    person_as(service, name, PersonRole::Reviewer, groups).await
}

async fn person_as(service: &Service, name: &str, role: PersonRole, groups: &[&str]) -> AccountId {
    let groups = groups.iter().map(|it| (*it).try_into().unwrap()).collect();
    let new = NewAccount { name: name.to_owned(), role, groups };
    service.identity.add_account_hashed(&new, &hashed(PASSWORD).await).await.unwrap().id
}

async fn token(service: &Service, role: MachineRole, of: &str, nodes: &[&str]) -> Stored<Token> {
    let nodes = nodes.iter().map(|it| NodeId::try_from(*it).unwrap()).collect();
    let new = NewToken {
        name: format!("{of}-{}", role.as_str()),
        role,
        owner: countersign_service::identity::owner_names::NewOwner::Group("platform".to_owned()),
        flow: Some(flow(of)),
        nodes,
    };
    let (_, text) = service.identity.add_token(&new).await.unwrap();
    service.identity.token_of(&text).await.unwrap()
}

pub async fn cast(service: &Service) -> HistoryActors {
    for name in ["payments", "payouts"] {
        service.policy_changes.activate_policy(&admin(), None, example(name), BTreeSet::new()).await.unwrap();
    }
    let cast = HistoryActors {
        ada: person(service, "ada", &["finance"]).await,
        ben: person(service, "ben", &["finance", "security"]).await,
        gus: person_as(service, "gus", PersonRole::Admin, &[]).await,
        hal: person_as(service, "hal", PersonRole::Admin, &[]).await,
        host: token(service, MachineRole::Host, "payments", &[]).await,
        agent: token(service, MachineRole::Agent, "payments", &["planner", "input_parser"]).await,
        writer: token(service, MachineRole::Writer, "payments", &["database_writer"]).await,
        two_host: token(service, MachineRole::Host, "payouts", &[]).await,
        two_agent: token(service, MachineRole::Agent, "payouts", &["planner"]).await,
    };
    for (who, mail) in [(&cast.ada, "ada@example.org"), (&cast.ben, "ben@example.org")] {
        let mail = mail.to_owned().try_into().unwrap();
        let contact = MailContact { account: who.clone(), mail, pace: MailPace::Each, at: service.core.now() };
        service.delivery.set_contact(who, Some(contact)).await.unwrap();
    }
    // This call sets the start: later events lead to email notifications.
    assert_eq!(service.delivery.queue_mail(Duration::from_secs(3600)).await.unwrap(), Some(0));
    cast
}

pub fn first_state() -> Value {
    json!({
        "raw_text": "Please pay Eva 40 EUR.", "requested_action": "none", "target_user_id": 17,
        "payment": {"amount": 40, "currency": "EUR", "card": "4000 0000 0000 0002"},
    })
}

pub async fn make(service: &Service, host: &Stored<Token>, name: &str) -> Digest {
    let new = NewThread {
        flow: host.record.flow.clone().unwrap(),
        thread: Some(thread(name)),
        state: first_state(),
        context: Default::default(),
        episode: None,
    };
    service.threads.create_thread(host, &new).await.unwrap().transition
}

pub async fn propose(
    service: &Service,
    agent: &Stored<Token>,
    name: &str,
    node: &str,
    patch: Value,
) -> ProposalOutcome {
    let parent = service.threads.overview(&thread(name)).await.unwrap().thread.head.transition;
    let proposal = Proposal {
        thread: thread(name),
        node: NodeId::try_from(node).unwrap(),
        parent,
        ask: ProposalKind::Patch { format: PatchFormat::Merge, patch },
        attempt: 1,
        rationale: Some("the text says so".to_owned()),
        // A branch calls none.
        tool: (node == "planner" && !name.starts_with("branch-"))
            .then(|| Tool::read(&json!({"name": "crm.find", "arguments": {"who": "Eva"}})).unwrap()),
        usage: Usage::read(&json!({"tokens": 12, "cost": 0.5})).unwrap(),
        step: None,
    };
    service.proposals.propose(agent, &proposal).await.unwrap()
}

/// Returns the digest and the review of a proposal that is held for approval.
pub fn held(answer: &ProposalOutcome) -> (Digest, ReviewId) {
    match answer {
        ProposalOutcome::Held { transition, hold, .. } => (*transition, hold.id.clone()),
        other => panic!("not held: {other:?}"),
    }
}

pub fn ballot(transition: Digest, stage: u32, verdict: VoteVerdict) -> Ballot {
    Ballot {
        transition,
        delegation: None,
        stage,
        verdict,
        nonce: format!("nonce-{}", countersign_adapters::random::uuid_v4()),
        comment: None,
        browser_check: BrowserCheck::Match,
        proof: VoterProof::default(),
        typed: Some(transition.to_type()),
        outcome_unknown_accepted: CheckboxState::No,
        told: None,
    }
}

/// Reveals the card number, which the policy redacts (`hide`) and a writer reads.
pub async fn look_at_card(service: &Service, who: &AccountId, review: &ReviewId, transition: Digest) {
    let pointer = "/payment/card".try_into().unwrap();
    let look = RevealRequest { transition, pointer, reason: "the bank asks".to_owned() };
    assert!(service.reviews.reveal(who, review, &look).await.unwrap().revealed.is_some());
}

pub fn ask(name: &str, transition: Digest, receipt: Option<String>, write_id: &str) -> VerifyInput {
    let write_id = WriteId::try_from(write_id).unwrap();
    VerifyInput { thread: thread(name), transition, receipt, write_id, expect: Vec::new() }
}

pub async fn receipt_of(service: &Service, transition: Digest) -> Option<String> {
    service.reviews.decision(transition, &Party::Receiver).await.unwrap().1.and_then(|it| it.receipt)
}

/// An approved transition that a writer can write.
pub struct ApprovedWrite {
    pub thread: &'static str,
    pub transition: Digest,
    pub receipt: String,
}

/// Makes rows of every kind. At the end, one head is ready to be written, one pending review has a vote, and one write
/// is open.
pub async fn live_through(service: &Service) -> (HistoryActors, ApprovedWrite) {
    service.identity.set_up_link().await.unwrap().unwrap();
    let cast = cast(service).await;
    sign_in_and_out(service, &cast).await;
    uses_passkeys(service, &cast).await;
    one_full_round(service, &cast).await;
    delegations::lets_another_vote(service, &cast).await;
    holds_that_end_otherwise(service, &cast).await;
    writes_that_end_otherwise(service, &cast).await;
    stops_and_takes_back(service, &cast).await;
    branches::works_side_by_side(service, &cast).await;
    amends(service, &cast).await;
    interrupts::asks_people(service, &cast).await;
    episodes::runs(service, &cast).await;
    archives::outgrows_the_database(service, &cast).await;
    episodes::imports(service).await;
    lifts_in_pairs(service, &cast).await;
    looks_after_people(service, &cast).await;
    sending::tells_others(service, &cast).await;
    repeats::sends_again(service, &cast).await;
    let ready = leave_work_open(service, &cast).await;
    (cast, ready)
}

async fn one_full_round(service: &Service, cast: &HistoryActors) {
    make(service, &cast.host, "round").await;
    propose(service, &cast.agent, "round", "input_parser", json!({"raw_text": "Pay Eva."})).await;
    propose(service, &cast.agent, "round", "planner", json!({"requested_action": "payout"})).await;
    for injected in [json!({"is_admin": true}), json!({"execution_permissions": ["write"]})] {
        let rejected = propose(service, &cast.agent, "round", "planner", injected).await;
        assert!(matches!(rejected, ProposalOutcome::Rejected(_)));
    }
    let (transition, review) =
        held(&propose(service, &cast.agent, "round", "planner", json!({"target_user_id": 42})).await);
    look_at_card(service, &cast.ben, &review, transition).await;
    service.reviews.vote(&cast.ada, &review, &ballot(transition, 0, VoteVerdict::Approve), None).await.unwrap();
    let receipt = receipt_of(service, transition).await;
    let allowed = service.writes.verify(&cast.writer, &ask("round", transition, receipt, "w-1")).await.unwrap();
    let result = json!({"result_ref": "row-1"});
    service.writes.confirm(&cast.writer, &allowed.write.key.write_id, &result).await.unwrap();
    look_at_card(service, &cast.ben, &review, transition).await;
}

async fn holds_that_end_otherwise(service: &Service, cast: &HistoryActors) {
    make(service, &cast.host, "holds").await;
    let (transition, review) =
        held(&propose(service, &cast.agent, "holds", "planner", json!({"target_user_id": 42})).await);
    service.reviews.vote(&cast.ben, &review, &ballot(transition, 0, VoteVerdict::Deny), None).await.unwrap();
    let (transition, _) = held(&propose(service, &cast.agent, "holds", "planner", json!({"target_user_id": 43})).await);
    service.threads.cancel(&cast.agent, transition, "never mind").await.unwrap();
    held(&propose(service, &cast.agent, "holds", "planner", json!({"target_user_id": 44})).await);
    service.threads.close_thread(&admin(), &thread("holds"), "enough").await.unwrap();
    service.threads.reopen_thread(&admin(), &thread("holds"), "once more").await.unwrap();
    service.threads.close_thread(&admin(), &thread("holds"), "for good").await.unwrap();
}

async fn writes_that_end_otherwise(service: &Service, cast: &HistoryActors) {
    let head = make(service, &cast.host, "writes").await;
    let allowed = service.writes.verify(&cast.writer, &ask("writes", head, None, "w-2")).await.unwrap();
    service.writes.abort(&cast.writer, &allowed.write.key.write_id, "the table was locked").await.unwrap();
    service.writes.verify(&cast.writer, &ask("writes", head, None, "w-3")).await.unwrap();
}

/// Ada edits a proposal in its review, and Ben approves the edited proposal.
async fn rewritten(service: &Service, cast: &HistoryActors) {
    make(service, &cast.host, "rewritten").await;
    let (transition, review) =
        held(&propose(service, &cast.agent, "rewritten", "planner", json!({"target_user_id": 42})).await);
    let values = BTreeMap::from([("/target_user_id".try_into().unwrap(), json!(43))]);
    let ask = EditRequest { transition, edit: ReviewEdit { values, more: None }, why: "42 has left".to_owned() };
    let EditResult::Held(next) = service.reviews.rewrite(&cast.ada, &review, &ask).await.unwrap() else {
        panic!("rejected")
    };
    let by = service.reviews.decision(transition, &Party::Receiver).await.unwrap().1.unwrap().superseded_by.unwrap();
    service.reviews.vote(&cast.ben, &next, &ballot(by, 0, VoteVerdict::Approve), None).await.unwrap();
}

/// Ada withdraws her vote, Ben comments, and Ada votes again.
async fn think_again(service: &Service, cast: &HistoryActors, (review, transition): (&ReviewId, Digest)) {
    let nonce = || countersign_adapters::random::uuid_v4().to_string();
    let withdrawing = WithdrawalRequest { transition, vote: 0, nonce: nonce() };
    service.reviews.withdraw_vote(&cast.ada, review, &withdrawing).await.unwrap();
    let saying = NewComment { transition, words: "is it the right account?".to_owned(), nonce: nonce() };
    service.reviews.comment(&cast.ben, review, &saying).await.unwrap();
    service.reviews.vote(&cast.ada, review, &ballot(transition, 0, VoteVerdict::Approve), None).await.unwrap();
}

/// Returns the settings of another writer's token, as an operator would request it.
pub fn writer() -> NewToken {
    let nodes = BTreeSet::from([NodeId::try_from("database_writer").unwrap()]);
    let name = "another-writer".to_owned();
    NewToken {
        name,
        role: MachineRole::Writer,
        owner: countersign_service::identity::owner_names::NewOwner::Group("platform".to_owned()),
        flow: Some(flow("payments")),
        nodes,
    }
}

fn stricter() -> PolicySource {
    let mut source = example("payments");
    source.text = source.text.replace("need = 1", "need = 2");
    source
}

/// Every event has its place, was counted, and was copied.
async fn count(service: &Service) {
    while service.log.sequence().await.unwrap() > 0 {}
    while service.log.count_events().await.unwrap() > 0 {}
    while service.log.copy_log(|_| async { Ok(()) }).await.unwrap() > 0 {}
    while service.delivery.queue_mail(Duration::from_secs(3600)).await.unwrap() != Some(0) {}
}

async fn leave_work_open(service: &Service, cast: &HistoryActors) -> ApprovedWrite {
    make(service, &cast.two_host, "waiting").await;
    let (transition, review) =
        held(&propose(service, &cast.two_agent, "waiting", "planner", json!({"target_user_id": 42})).await);
    service.reviews.vote(&cast.ada, &review, &ballot(transition, 0, VoteVerdict::Approve), None).await.unwrap();
    think_again(service, cast, (&review, transition)).await;
    rewritten(service, cast).await;
    count(service).await;
    make(service, &cast.host, "ready").await;
    let (transition, review) =
        held(&propose(service, &cast.agent, "ready", "planner", json!({"target_user_id": 42})).await);
    service.reviews.vote(&cast.ada, &review, &ballot(transition, 0, VoteVerdict::Approve), None).await.unwrap();
    let receipt = receipt_of(service, transition).await.unwrap();
    ApprovedWrite { thread: "ready", transition, receipt }
}
