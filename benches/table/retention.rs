//! What a long thread takes of a disk: with everything in the database, with what is older in archives, and with that erased.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use countersign::clock::{ClockOffset, SystemClock};
use countersign::domain::id::{PrincipalId, ThreadId};
use countersign::keyring::Keyring;
use countersign::service::Service;
use countersign::service::archiving::Place;
use countersign::service::transitions::Answer;
use countersign::store::Store;
use countersign::store::sqlite::{SqliteOptions, SqliteStore, Synchronous};
use serde_json::json;

use super::house::{House, settings};
use super::{gateway, line, number};

/// Between two runs of the worker.
const VERSIONS_AT_ONCE: usize = 500;
/// As long passes with each of them, so that values are erased four runs after they were archived.
const PASSES: Duration = Duration::from_secs(6 * 3600);

const RETAINED: &str = "[retain]\nversions = 100\n";
const ERASED: &str = "[retain]\nversions = 100\nerase_after_days = 1\n";

/// What is on the disk at the end, and how much of it was added by the second half.
struct Size {
    bytes: u64,
    each: f64,
}

pub async fn measure() {
    let versions = number("BENCH_VERSIONS", 10_000);
    let all = grown(versions, "").await;
    for (name, keys) in [("in archives", RETAINED), ("erased", ERASED)] {
        let kept = grown(versions, keys).await;
        let ratio = kept.bytes as f64 / all.bytes as f64;
        let measured = format!("{ratio:.2}× ({:.0} and {:.0} bytes for each more version)", kept.each, all.each);
        line(&format!("{versions} versions on disk, older ones {name} ÷ all in the database"), &measured, "< 1×");
    }
}

async fn grown(versions: usize, keys: &str) -> Size {
    let (folder, offset) = (tempfile::tempdir().unwrap(), ClockOffset::default());
    let house = house(folder.path(), &offset, &format!("{}\n{keys}", gateway::POLICY)).await;
    let (thread, mut head) = house.thread().await;
    let mut half = 0;
    for version in 1..versions {
        // A kilobyte that no other version has.
        let text: String = (0..28).map(|_| countersign::random::uuid_v4().to_string()).collect();
        head = match house.propose(&thread, head, "input_parser", json!({"raw_text": text})).await {
            Answer::Committed { transition, .. } => transition,
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
    let bytes = size(folder.path());
    Size { bytes, each: bytes.saturating_sub(half) as f64 / (versions - versions / 2) as f64 }
}

async fn house(folder: &Path, offset: &ClockOffset, policy: &str) -> House {
    let options =
        SqliteOptions { clock_offset: offset.clone(), synchronous: Synchronous::Off, ..SqliteOptions::default() };
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.join("countersign.db"), options).unwrap());
    let keyring = Keyring::open_or_create(&folder.join("keyring.json"), Some("urn:bench"), &SystemClock).unwrap();
    let clock = Arc::new(gateway::MovedClock(offset.clone()));
    let service = Service::open(Arc::clone(&store), keyring, clock, settings()).await.unwrap();
    let service = service.sending_by(gateway::outgoing()).archiving_in(gateway::archives_in(folder));
    let by = PrincipalId::try_from("bench").unwrap();
    service.activate_policy(&by, None, gateway::source(policy), BTreeSet::new()).await.unwrap();
    House::on(Arc::new(service), store).await
}

fn pass(offset: &ClockOffset) {
    let so_far = offset.applied_to(countersign::domain::time::Timestamp::from_millis(0)).millis();
    offset.set_millis(so_far + i64::try_from(PASSES.as_millis()).unwrap());
}

/// Everything that the worker would come to by and by.
async fn work(service: &Service, thread: &ThreadId) {
    while service.retain_thread(thread).await.unwrap() > 0 {}
    service.retain(&mut Place::default()).await.unwrap();
}

/// All files below a folder, in bytes.
fn size(folder: &Path) -> u64 {
    let of = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        if path.is_dir() { size(&path) } else { path.metadata().unwrap().len() }
    };
    std::fs::read_dir(folder).unwrap().map(of).sum()
}
