//! What a long thread takes of a disk: with everything in the database, with what is older in archives, and with that erased.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::primitives::id::{PrincipalId, ThreadId};

use countersign_adapters::clock::{ClockOffset, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_service::archive::move_versions::ArchiveScanCursor;
use countersign_service::proposals::outcome::ProposalOutcome;
use countersign_store::Store;
use countersign_store::sqlite::{SqliteOptions, SqliteStore, Synchronous};
use serde_json::json;

use super::house::{BenchGateway, settings};
use super::{gateway, line, number};

/// Between two runs of the worker.
const VERSIONS_AT_ONCE: usize = 500;
/// As long passes with each of them, so that values are erased two runs after they were archived.
const PASSES: Duration = Duration::from_secs(12 * 3600);

const RETAINED: &str = "[retain]\nversions = 100\n";
const ERASED: &str = "[retain]\nversions = 100\nerase_after_days = 1\n";

/// What is kept of all versions for ever grows evenly: a tenth of them tells what each more costs.
const ALL_KEPT_OF: usize = 10;

/// Half a kilobyte of text for each 14.
const TEXTS: [(&str, usize); 2] = [("1 KB", 28), ("4 KB", 112)];

/// What a thread takes at one moment.
#[derive(Clone, Copy, Default)]
struct DiskUsage {
    database: u64,
    archives: u64,
    /// The bytes of all states, transitions and entries in the database.
    versions: u64,
}

/// What a thread takes at the end, and when it was half as long.
struct ThreadGrowth {
    versions: usize,
    half: DiskUsage,
    whole: DiskUsage,
}

impl ThreadGrowth {
    /// What the second half added, for each version of it.
    fn each(&self, of: impl Fn(&DiskUsage) -> u64) -> f64 {
        of(&self.whole).saturating_sub(of(&self.half)) as f64 / (self.versions - self.versions / 2) as f64
    }
}

pub async fn measure() {
    let versions = number("BENCH_VERSIONS", 100_000);
    let mut each = Vec::new();
    for (text, uuids) in TEXTS {
        let all = grown((versions / ALL_KEPT_OF, uuids), "").await;
        for (name, keys) in [("in archives", RETAINED), ("erased", ERASED)] {
            let kept = grown((versions, uuids), keys).await;
            let title = format!("{versions} versions of {text}, older ones {name}");
            let (bytes, beside) = (kept.each(|it| it.database), all.each(|it| it.database));
            line(
                &format!("{title}: database, each more version ÷ all kept"),
                &format!("{:.2}× ({bytes:.0} and {beside:.0} bytes)", bytes / beside),
                "≤ 0.25×",
            );
            let level = kept.whole.versions as f64 / kept.half.versions as f64;
            let (half, whole) = (kilobytes(kept.half.versions), kilobytes(kept.whole.versions));
            line(
                &format!("{title}: states, transitions and entries in it ÷ at half the length"),
                &format!("{level:.2}× ({whole} and {half} KB)"),
                "level",
            );
            let (files, disk) = (kept.each(|it| it.archives), kept.each(|it| it.database + it.archives));
            let in_all = kilobytes(kept.whole.database + kept.whole.archives);
            line(
                &format!("{title}: everything on disk, each more version ÷ all kept"),
                &format!("{:.2}× ({disk:.0} bytes, {files:.0} of them in files; {in_all} KB in all)", disk / beside),
                "< 1×",
            );
            each.push(bytes);
        }
    }
    for (at, name) in ["in archives", "erased"].into_iter().enumerate() {
        let measured = format!("{:.2}×", each[at + 2] / each[at]);
        line(&format!("database, each more version, older ones {name}, 4 KB ÷ 1 KB"), &measured, "level");
    }
}

const fn kilobytes(bytes: u64) -> u64 {
    bytes / 1_024
}

async fn grown((versions, uuids): (usize, usize), keys: &str) -> ThreadGrowth {
    let (folder, offset) = (tempfile::tempdir().unwrap(), ClockOffset::default());
    let house = house(folder.path(), &offset, &format!("{}\n{keys}", gateway::POLICY)).await;
    let (thread, mut head) = house.thread().await;
    let mut half = DiskUsage::default();
    for version in 1..versions {
        // Text that no other version has.
        let text: String = (0..uuids).map(|_| countersign_adapters::random::uuid_v4().to_string()).collect();
        head = match house.propose(&thread, head, "input_parser", json!({"raw_text": text})).await {
            ProposalOutcome::Committed { transition, .. } => transition,
            other => panic!("{other:?}"),
        };
        if version % VERSIONS_AT_ONCE == 0 {
            pass(&offset);
            work(&house.service, &thread).await;
        }
        if version == versions / 2 {
            half = size(folder.path());
        }
    }
    work(&house.service, &thread).await;
    ThreadGrowth { versions, half, whole: size(folder.path()) }
}

async fn house(folder: &Path, offset: &ClockOffset, policy: &str) -> BenchGateway {
    let options =
        SqliteOptions { clock_offset: offset.clone(), synchronous: Synchronous::Off, ..SqliteOptions::default() };
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.join("countersign.db"), options).unwrap());
    let keyring = Keyring::open_or_create(&folder.join("keyring.json"), Some("urn:bench"), &SystemClock).unwrap();
    let clock = Arc::new(gateway::MovedClock(offset.clone()));
    let service = Service::open(Arc::clone(&store), keyring, clock, settings()).await.unwrap();
    let service = service.with_http_client(gateway::outgoing()).archiving_in(gateway::archives_in(folder));
    let by = PrincipalId::try_from("bench").unwrap();
    service.policy_changes.activate_policy(&by, None, gateway::source(policy), BTreeSet::new()).await.unwrap();
    BenchGateway::on(Arc::new(service), store).await
}

fn pass(offset: &ClockOffset) {
    let so_far = offset.applied_to(countersign_domain::primitives::time::Timestamp::from_millis(0)).millis();
    offset.set_millis(so_far + i64::try_from(PASSES.as_millis()).unwrap());
}

/// Everything that the workers would come to by and by.
async fn work(service: &Service, thread: &ThreadId) {
    while service.archive.apply_thread_retention(thread).await.unwrap() > 0 {}
    service.archive.retain(&mut ArchiveScanCursor::default()).await.unwrap();
    while service.log.sequence().await.unwrap() > 0 {}
}

fn size(folder: &Path) -> DiskUsage {
    // SQLite's log beside the file has a bound of its own, and would hide what a few versions take.
    let connection = rusqlite::Connection::open(folder.join("countersign.db")).unwrap();
    let is_cut = || connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(row.get::<_, i64>(0)? == 0));
    // Whoever moves the log at the same time is not waited for, so it is tried again.
    while !is_cut().unwrap() {
        std::thread::yield_now();
    }
    let archives = on_disk(&folder.join("archives"));
    DiskUsage { database: on_disk(folder) - archives, archives, versions: of_versions(&connection) }
}

/// All files below a folder, in bytes, as many blocks as they take.
fn on_disk(folder: &Path) -> u64 {
    let of = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        if path.is_dir() { on_disk(&path) } else { path.metadata().unwrap().blocks() * 512 }
    };
    std::fs::read_dir(folder).into_iter().flatten().map(of).sum()
}

fn of_versions(connection: &rusqlite::Connection) -> u64 {
    let bytes = |table: &str| -> i64 {
        let sql = format!("SELECT coalesce(sum(length(body)), 0) FROM {table}");
        connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    ["states", "transitions", "entries"].map(bytes).iter().sum::<i64>().try_into().unwrap()
}
