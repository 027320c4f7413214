//! Kills a gateway while it archives or erases the history of a thread. The next gateway must end with the same files,
//! byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::identity::account::MachineRole;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::primitives::id::{PrincipalId, ThreadId};
use countersign_domain::threads::usage::Usage;

use countersign_adapters::clock::{ClockOffset, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_service::archive::move_versions::ArchiveScanCursor;
use countersign_service::audit::audit_with;
use countersign_service::proposals::outcome::ProposalOutcome;
use countersign_service::proposals::request::{Proposal, ProposalKind};
use countersign_service::threads::create::NewThread;
use countersign_store::Store;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ack::KillAcknowledgement;
use super::child::probe;
use super::gateway::{self, MovedClock};
use super::parent::settings;

/// The variable with the orders of the child that archives.
const ORDERS: &str = "KILLS_ARCHIVING";

const THREAD: &str = "long";
const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Serialize, Deserialize)]
struct ArchivingChildConfig {
    folder: PathBuf,
    /// How far its clock is ahead.
    ahead_millis: i64,
    point: (String, u64),
}

/// A gateway on what is in a folder, at a moment.
struct OpenedGateway {
    service: Service,
    store: Arc<dyn Store>,
}

async fn open(folder: &Path, ahead_millis: i64, point: Option<&(String, u64)>) -> OpenedGateway {
    let clock_offset = ClockOffset::default();
    clock_offset.set_millis(ahead_millis);
    let options = SqliteOptions { clock_offset: clock_offset.clone(), probe: probe(point), ..SqliteOptions::default() };
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.join("countersign.db"), options).unwrap());
    let keyring = Keyring::open_or_create(&folder.join("keyring.json"), Some("urn:test:kills"), &SystemClock).unwrap();
    let clock = Arc::new(MovedClock(clock_offset));
    let service = Service::open(Arc::clone(&store), keyring, clock, settings()).await.unwrap();
    OpenedGateway { service: service.archiving_in(gateway::archives_in(folder)), store }
}

impl OpenedGateway {
    /// Everything that the worker would come to.
    async fn works(&self) {
        let thread = ThreadId::try_from(THREAD).unwrap();
        while self.service.archive.retain(&mut ArchiveScanCursor::default()).await.unwrap() > 0 {}
        while self.service.archive.apply_thread_retention(&thread).await.unwrap() > 0 {}
    }

    async fn passes_an_audit(&self, folder: &Path) {
        let (keys, archives) = (self.service.core.keys().unwrap(), gateway::archives_in(folder));
        let report = audit_with(&*self.store, Some(&archives), &keys, self.service.core.now()).await.unwrap();
        assert!(report.findings.is_empty(), "{:#?}", report.findings);
    }
}

/// In the process that you start it has no orders, and so nothing to do.
#[test]
fn a_child_with_orders_archives_until_it_is_killed() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    std::io::stdout().write_all(b"\n").unwrap();
    let orders: ArchivingChildConfig = serde_json::from_str(&orders).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        open(&orders.folder, orders.ahead_millis, Some(&orders.point)).await.works().await;
    });
}

/// Runs the child until it reports that it has reached the point, and kills it there.
fn kill(folder: &Path, ahead_millis: i64, point: (&str, u64)) {
    let orders = ArchivingChildConfig { folder: folder.to_owned(), ahead_millis, point: (point.0.to_owned(), point.1) };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["a_child_with_orders_archives_until_it_is_killed", "--nocapture", "--test-threads=1"]);
    command.env(ORDERS, serde_json::to_string(&orders).unwrap());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut reached = false;
    for line in lines {
        if !reached
            && matches!(serde_json::from_str::<KillAcknowledgement>(&line.unwrap()), Ok(KillAcknowledgement::AtPoint))
        {
            reached = true;
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(reached, "it ended by itself");
}

fn copied(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_all(folder, copy.path());
    copy
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let there = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&there).unwrap();
            copy_all(&entry.path(), &there);
        } else {
            fs::copy(entry.path(), there).unwrap();
        }
    }
}

/// Every file of the archives, by its name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.insert(entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
        }
    }
    found
}

async fn furnish(folder: &Path) {
    let OpenedGateway { service, .. } = open(folder, 0, None).await;
    let policy = format!("{}\n[retain]\nversions = 1\nerase_after_days = 5\n", gateway::POLICY);
    let by = PrincipalId::try_from("tests").unwrap();
    service.policy_changes.activate_policy(&by, None, gateway::source(&policy), BTreeSet::new()).await.unwrap();
    let host = gateway::token(&service, "host", MachineRole::Host, &[]).await;
    let parser = gateway::token(&service, "parser", MachineRole::Agent, &["input_parser"]).await;
    let (host, parser) =
        (service.identity.token_of(&host).await.unwrap(), service.identity.token_of(&parser).await.unwrap());
    let thread = ThreadId::try_from(THREAD).unwrap();
    let new = NewThread {
        flow: "payments".try_into().unwrap(),
        thread: Some(thread.clone()),
        state: json!({"requested_action": "none", "target_user_id": 17, "payment": {"amount": 10, "card": "4111"}}),
        context: Default::default(),
        episode: None,
    };
    let mut parent = service.threads.create_thread(&host, &new).await.unwrap().transition;
    for version in 1..40 {
        let patch = json!({"raw_text": format!("text {version}, and so on. ").repeat(20)});
        let proposal = Proposal {
            thread: thread.clone(),
            parent,
            node: "input_parser".try_into().unwrap(),
            ask: ProposalKind::Patch { format: PatchFormat::Merge, patch },
            attempt: 1,
            rationale: None,
            tool: None,
            usage: Usage::default(),
            step: None,
        };
        parent = match service.proposals.propose(&parser, &proposal).await.unwrap() {
            ProposalOutcome::Committed { transition, .. } => transition,
            other => panic!("{other:?}"),
        };
    }
}

/// Kills it at each point of the first changes that it makes; what the next comes to is what comes of it undisturbed.
async fn is_ended_by_the_next(folder: &Path, ahead_millis: i64, changes: u64) {
    let undisturbed = copied(folder);
    open(undisturbed.path(), ahead_millis, None).await.works().await;
    let expected = files(&undisturbed.path().join("archives"));
    assert!(expected.len() >= 2 && expected != files(&folder.join("archives")), "there is something to do");
    for change in 1..=changes {
        for point in ["locked", "written", "committed"] {
            let house = copied(folder);
            let at = house.path().to_owned();
            tokio::task::spawn_blocking(move || kill(&at, ahead_millis, (point, change))).await.unwrap();
            let next = open(house.path(), ahead_millis, None).await;
            next.passes_an_audit(house.path()).await;
            next.works().await;
            assert_eq!(files(&house.path().join("archives")), expected, "killed when {point}, change {change}");
            next.passes_an_audit(house.path()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_it_archives_or_erases_the_next_ends_it_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    furnish(folder.path()).await;
    is_ended_by_the_next(folder.path(), 0, 2).await;
    open(folder.path(), 0, None).await.works().await;
    // Each archive has two changes: one starts its erasure, and one records that no file has its values.
    let later = i64::try_from((DAY * 6).as_millis()).unwrap();
    is_ended_by_the_next(folder.path(), later, 3).await;
}
