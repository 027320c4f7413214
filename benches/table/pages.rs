//! The pages that people search: how long they take over 10,000 open reviews and 1,000,000 past ones.
//!
//! Open ones are asked for as agents do. Past ones are written through the store, each with its transition and labels, as
//! copies of an open one that ended: the file is kept beside the build and used again until its reviews are about to
//! expire.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::chain::hash::{Digest, Tag};
use countersign_domain::log::insight::{
    BucketWidth, Counts, FLOWS_MAX, FlowCounts, Period, PeriodFigures, REASONS_MAX,
};
use countersign_domain::primitives::id::PrincipalId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Hold, HoldState};
use countersign_domain::threads::transition::{HoldEndReason, Transition, TransitionOutcome};

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_store::change::Draft;
use countersign_store::record::{RecordReader, Stored};
use countersign_store::records::InsightRow;
use countersign_store::sqlite::{SqliteOptions, SqliteStore, Synchronous};
use countersign_store::{Cursor, RowFilter, Store, StoreError};
use futures_util::future::join_all;

use super::house::{BenchGateway, listen, settings};
use super::{gateway, line, median, number};

/// How often each page is asked for.
const ASKS: usize = 31;

/// What every page stays below.
const GOAL_MILLIS: f64 = 50.0;

/// How long the filled file is of use: its reviews wait for a week.
const USABLE: Duration = Duration::from_secs(6 * 24 * 3600);

/// The time over which past reviews ended.
const PAST_MILLIS: i64 = 90 * 24 * 3600 * 1000;

/// Open reviews that are asked for at once.
const AT_ONCE: usize = 32;

/// The reviews that were opened, and one of the past.
struct PageSamples {
    open: Hold,
    past: Hold,
    middle: Hold,
}

pub async fn measure() {
    countersign_adapters::tls::ready();
    let (open, past) = (number("BENCH_OPEN", 10_000), number("BENCH_PAST", 1_000_000));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("pages-{open}-{past}"));
    let filled = folder.join("filled");
    let usable =
        filled.metadata().and_then(|it| it.modified()).is_ok_and(|it| it.elapsed().is_ok_and(|it| it < USABLE));
    if !usable {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        fill(&folder, open, past).await;
        std::fs::write(&filled, "").unwrap();
    }
    let (service, store, keyring) = open_in(&folder, Synchronous::Full).await;
    let key = keyring.current().unwrap();
    let samples = samples(&RecordReader { store: &*store, key: key.row() }).await;
    let port = listen(&service);
    let (_, secret) = service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let of = format!("of {open} open and {past} past reviews");
    count_much(&*store, &RecordReader { store: &*store, key: key.row() }).await;
    for (name, path) in pages(&samples) {
        let url = format!("http://127.0.0.1:{port}{path}");
        let (millis, bytes) = asked(&url, &secret).await;
        let measured = format!("{millis:.1} ms, {} kB", bytes / 1000);
        line(&format!("{name}, {of}"), &measured, &format!("≤ {GOAL_MILLIS:.0} ms"));
    }
}

fn pages(samples: &PageSamples) -> Vec<(&'static str, String)> {
    let place = |it: &Hold| format!("{}.{}", it.state.ended_at().unwrap_or(it.expires_at).millis(), it.id);
    let digits = samples.past.transition.to_string()[7..15].to_owned();
    vec![
        ("inbox", "/".to_owned()),
        ("inbox, the reader's own", "/?show=mine".to_owned()),
        ("inbox, expiring soon", "/?show=soon".to_owned()),
        ("inbox, past", "/?show=past".to_owned()),
        ("inbox, past, in the middle", format!("/?show=past&after={}", place(&samples.middle))),
        ("inbox, past, back from the middle", format!("/?show=past&before={}", place(&samples.middle))),
        ("inbox, denied", "/?show=denied".to_owned()),
        ("inbox, everything", "/?show=everything".to_owned()),
        ("inbox, a flow", "/?flow=payments".to_owned()),
        ("inbox, denied of a flow", "/?flow=payments&show=denied".to_owned()),
        ("inbox, a flow with nothing in it", "/?flow=refunds&show=mine".to_owned()),
        ("search by digest", format!("/?q={digits}")),
        ("search by thread", format!("/?q={}", samples.past.thread)),
        ("search by protected key", "/?q=target_user_id".to_owned()),
        ("search by a key that nothing touches", "/?q=payment.amount".to_owned()),
        ("insight, 90 days of 50 flows with 20 reasons each", "/insight?span=90d".to_owned()),
        ("review, open", format!("/reviews/{}", samples.open.id)),
        ("review, past", format!("/reviews/{}", samples.past.id)),
    ]
}

/// As much as was ever counted of a day, for each of 90.
async fn count_much(store: &dyn Store, reader: &RecordReader<'_>) {
    let now = SystemClock.now();
    let counts = |seed: u64| {
        let mut counts = Counts { opened: 9, approved: 5, denied: 3, expired: 1, committed: 400, ..Counts::default() };
        (0..8).for_each(|it| counts.times.add(Duration::from_secs(20 << ((seed + it) % 12))));
        counts
    };
    for back in 0..90 {
        let period = Period::of(BucketWidth::Day, now.minus(Duration::from_secs(back * 24 * 3600)));
        let reasons = (0..REASONS_MAX as u64).map(|it| (format!("reason number {it} asks for approval"), counts(it)));
        let flow = FlowCounts { all: counts(back), reasons: reasons.collect(), other_reasons: None };
        let flows = (0..FLOWS_MAX).map(|it| (format!("flow-{it}").try_into().unwrap(), flow.clone())).collect();
        let row = InsightRow::Figures(PeriodFigures { period, flows, other_flows: None });
        if reader.get::<InsightRow>(&period.name()).await.unwrap().is_none() {
            let mut draft = Draft::new(reader.key, SystemClock.now());
            draft.insert(&row).unwrap();
            store.commit(draft.finish().change).await.unwrap();
        }
    }
}

/// The median over some asks, and how long the page is.
async fn asked(url: &str, secret: &str) -> (f64, usize) {
    let http = reqwest::Client::new();
    let mut took = Vec::with_capacity(ASKS);
    let mut bytes = 0;
    for _ in 0..ASKS {
        let began = SystemClock.instant();
        let answer = http.get(url).header("cookie", format!("countersign={secret}")).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200, "{url}");
        bytes = answer.bytes().await.unwrap().len();
        took.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    (median(took), bytes)
}

async fn open_in(folder: &Path, synchronous: Synchronous) -> (Arc<Service>, Arc<dyn Store>, Keyring) {
    let options = SqliteOptions { synchronous, ..SqliteOptions::default() };
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.join("countersign.db"), options).unwrap());
    let keyring = || Keyring::open_or_create(&folder.join("keyring.json"), Some("urn:bench"), &SystemClock).unwrap();
    let service = Service::open(Arc::clone(&store), keyring(), Arc::new(SystemClock), settings()).await.unwrap();
    (Arc::new(service), store, keyring())
}

async fn fill(folder: &Path, open: usize, past: usize) {
    let (service, store, keyring) = open_in(folder, Synchronous::Off).await;
    let by = PrincipalId::try_from("bench").unwrap();
    let policy = gateway::POLICY.replace("ttl = \"24h\"", "ttl = \"168h\"");
    service.policy_changes.activate_policy(&by, None, gateway::source(&policy), BTreeSet::new()).await.unwrap();
    let house = BenchGateway::on(service, Arc::clone(&store)).await;
    let mut made = 0;
    while made < open {
        let batch = AT_ONCE.min(open - made);
        join_all((0..batch).map(|_| house.held())).await;
        made += batch;
    }
    let key = keyring.current().unwrap();
    let reader = RecordReader { store: &*store, key: key.row() };
    let each = past.div_ceil(open.max(1));
    let (mut copied, mut after): (usize, Option<Cursor>) = (0, None);
    while copied < past {
        let page = reader.list::<Hold>(RowFilter::State("open"), after.as_ref(), 100).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(Cursor { due: last.record.expires_at.millis(), id: last.record.id.to_string() });
        for hold in page {
            let count = each.min(past - copied);
            bury(&*store, &reader, &hold.record, copied..copied + count, past).await;
            copied += count;
        }
    }
}

/// Copies of a review that ended some time ago, in one change.
async fn bury(store: &dyn Store, reader: &RecordReader<'_>, hold: &Hold, numbers: std::ops::Range<usize>, of: usize) {
    let transition: Stored<Transition> = reader.get(&hold.transition.to_string()).await.unwrap().unwrap();
    let now = SystemClock.now();
    let mut draft = Draft::new(reader.key, now);
    for number in numbers {
        // In no order of the threads' age.
        let back = PAST_MILLIS / of as i64 * ((number as i64 * 7_919) % of as i64);
        let at = Timestamp::from_millis(now.millis() - 60_000 - back);
        let mut statement = transition.record.statement.clone();
        statement.proposed_at = Timestamp::from_millis(at.millis() - 3_600_000);
        let (digest, identity) = (statement.digest(), Digest::of(Tag::Proposal, &[&number.to_be_bytes()]));
        let review = countersign_domain::primitives::id::ReviewId::try_from(
            countersign_adapters::random::uuid_v7(at).to_string(),
        )
        .unwrap();
        let (state, decision) = ended(number, at);
        let outcome = TransitionOutcome::Ended { review: review.clone(), decision };
        draft.insert(&Transition { digest, identity, statement, outcome, ..transition.record.clone() }).unwrap();
        let opened_at = Timestamp::from_millis(at.millis() - 3_600_000);
        let expires_at = at.plus(Duration::from_secs(3600));
        let past = Hold { id: review, transition: digest, opened_at, expires_at, state, ..hold.clone() };
        draft.insert(&past).unwrap();
    }
    let mut change = draft.finish().change;
    // A disk that is busy with what came before makes a change too old: it is the same a moment later.
    while let Err(error) = store.commit(change.clone()).await {
        assert!(matches!(error, StoreError::Busy), "{error}");
        change.decided_at = SystemClock.now();
    }
}

fn ended(number: usize, at: Timestamp) -> (HoldState, HoldEndReason) {
    match number % 4 {
        0 => (HoldState::Denied { at, denial: String::new() }, HoldEndReason::Denied),
        1 => (HoldState::Expired { at }, HoldEndReason::Expired),
        2 => (HoldState::Cancelled { at, reason: "no longer needed".to_owned() }, HoldEndReason::Cancelled),
        _ => (HoldState::Superseded { at, by: None, policy: None }, HoldEndReason::Superseded),
    }
}

async fn samples(reader: &RecordReader<'_>) -> PageSamples {
    use countersign_store::Direction::{Backward, Forward};
    let first = async |word: &str, direction, after: Option<&Cursor>| {
        reader.labelled::<Hold>(word, direction, after, 1).await.unwrap().0.remove(0).record
    };
    let middle = Cursor { due: SystemClock.now().millis() - PAST_MILLIS / 2, id: String::new() };
    PageSamples {
        open: first("open", Forward, None).await,
        past: first("past", Backward, None).await,
        middle: first("past", Backward, Some(&middle)).await,
    }
}
