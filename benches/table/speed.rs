//! Verify and propose over HTTP, each beside what it is measured against.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_client::{Client, Secret, WriteRequest};
use countersign_service::proposals::outcome::ProposalOutcome;
use serde_json::json;

use super::floor::{self, BaselineCase, RowSelection};
use super::house::{BenchGateway, BenchStoreKind};
use super::load::{CONNECTIONS, LoadRequest, LoadResult, send};
use super::{bare, line, median, number};

/// How often both sides take a turn; the first turn of all only warms up.
pub const TURNS: usize = 5;

/// Requests of one turn.
pub fn requests() -> usize {
    number("BENCH_REQUESTS", 6_000)
}

/// As many of something as one turn needs, made by many at once.
async fn prepare<T: Send + 'static, F: Future<Output = T> + Send>(
    house: &Arc<BenchGateway>,
    make: impl Fn(Arc<BenchGateway>) -> F + Clone + Send + 'static,
) -> Vec<T> {
    let hands = (0..CONNECTIONS).map(|hand| {
        let (house, make) = (Arc::clone(house), make.clone());
        let share = requests() / CONNECTIONS + usize::from(hand < requests() % CONNECTIONS);
        tokio::spawn(async move {
            let mut made = Vec::with_capacity(share);
            for _ in 0..share {
                made.push(make(Arc::clone(&house)).await);
            }
            made
        })
    });
    let hands: Vec<_> = hands.collect();
    let mut all = Vec::with_capacity(requests());
    for hand in hands {
        all.extend(hand.await.unwrap());
    }
    all
}

#[derive(Default)]
struct SpeedPair {
    ours: Vec<LoadResult>,
    theirs: Vec<LoadResult>,
}

impl SpeedPair {
    fn add(&mut self, ours: LoadResult, theirs: LoadResult) {
        self.ours.push(ours);
        self.theirs.push(theirs);
    }

    fn ratio(&self, of: impl Fn(&LoadResult) -> f64) -> f64 {
        median(self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| of(ours) / of(theirs)).collect())
    }

    fn tell(&self, what: &str, goal: &str) {
        let middle = |turns: &[LoadResult], of: fn(&LoadResult) -> f64| median(turns.iter().map(of).collect());
        let ratios: Vec<String> =
            self.ours.iter().zip(&self.theirs).map(|(a, b)| format!("{:.2}", a.per_second / b.per_second)).collect();
        let measured = format!(
            "{:.2} of {:.0}/s ({}); {:.0} against {:.0} CPU µs a request; p99 {:.2}×",
            self.ratio(|it| it.per_second),
            middle(&self.theirs, |it| it.per_second),
            ratios.join(" "),
            middle(&self.ours, |it| it.cpu_micros),
            middle(&self.theirs, |it| it.cpu_micros),
            self.ratio(|it| it.p99_micros),
        );
        line(what, &measured, goal);
    }
}

/// In which order writers come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WriterOrder {
    /// As their threads were made: those that come together touch neighbours.
    Made,
    /// Far from each other: every row that a verify touches lies on a page of its own.
    Apart,
}

pub async fn verify_requests(house: &Arc<BenchGateway>, order: WriterOrder) -> Vec<LoadRequest> {
    let mut requests = prepare(house, async |house| {
        let (thread, transition, receipt) = house.approved().await;
        // As docs/integrating.md tells writers to name them: in the order of time.
        let write_id = countersign_adapters::random::uuid_v7(SystemClock.now()).to_string();
        let body = json!({"thread": thread, "transition": transition, "receipt": receipt, "write_id": write_id});
        let body = body.to_string();
        (
            thread,
            LoadRequest { path: "/v1/verify".to_owned(), token: house.writer.clone(), body, status: 200, key: None },
        )
    })
    .await;
    // As it is prepared, every hand's threads stand together: neighbours in the queue are not so in time.
    if order == WriterOrder::Made {
        requests.sort_by(|a, b| a.0.cmp(&b.0));
    }
    requests.into_iter().map(|it| it.1).collect()
}

/// Checks that a client with the published keys accepts the answers that are measured.
async fn client_accepts(house: &BenchGateway) {
    let (thread, transition, receipt) = house.approved().await;
    let url = format!("http://127.0.0.1:{}", house.port).parse().unwrap();
    let client = Client::new(&url, &Secret::new(house.writer.clone())).unwrap();
    let write_id = countersign_adapters::random::uuid_v7(SystemClock.now()).to_string().try_into().unwrap();
    let write = WriteRequest { thread, transition, receipt: Some(receipt), write_id, expect: BTreeMap::new() };
    let keys = client.keys().await.unwrap();
    client.verify(&write, Some(&keys)).await.unwrap();
}

pub async fn verify(kind: BenchStoreKind, order: WriterOrder) {
    let house = Arc::new(BenchGateway::build(kind).await);
    client_accepts(&house).await;
    let bare = bare::serve(&house.service.core.keys().unwrap());
    let (all, two) = (
        BaselineCase::beside(&house, RowSelection::All).await,
        BaselineCase::beside(&house, RowSelection::ThreadAndEvent).await,
    );
    let (least, less) = (floor::serve(&all), floor::serve(&two));
    let (mut pair, mut limit, mut lower) = (SpeedPair::default(), SpeedPair::default(), SpeedPair::default());
    for turn in 0..=TURNS {
        let requests = verify_requests(&house, order).await;
        let theirs = send(bare, requests.clone()).await;
        let ours = send(house.port, requests.clone()).await;
        all.know(&requests).await;
        let least = send(least, requests.clone()).await;
        two.know(&requests).await;
        let less = send(less, requests).await;
        if turn > 0 {
            pair.add(ours, theirs);
            limit.add(least, theirs);
            lower.add(less, theirs);
        }
    }
    match (kind, order) {
        (BenchStoreKind::Postgres, _) => pair.tell("verify ÷ bare handler, PostgreSQL", "≥ 0.2"),
        (_, WriterOrder::Made) => pair.tell("verify ÷ bare handler, SQLite", "≥ 0.75, p99 ≤ 1.5×"),
        (_, WriterOrder::Apart) => pair.tell("the same, neighbours far apart", "≥ 0.75, p99 ≤ 1.5×"),
    }
    limit.tell("no verify does without: an answer signed, its rows durable ÷ the same bare handler", "");
    lower.tell("the same with two rows, the thread's and the event", "");
}

async fn propose_requests(house: &Arc<BenchGateway>) -> Vec<LoadRequest> {
    prepare(house, async |house| {
        let (thread, head) = house.thread().await;
        let patch = json!({"requested_action": "refund"});
        let body = json!({"node": "planner", "parent": head, "patch": patch});
        LoadRequest {
            path: format!("/v1/threads/{thread}/transitions"),
            token: house.planner.clone(),
            body: body.to_string(),
            status: 201,
            key: None,
        }
    })
    .await
}

pub async fn propose() {
    let (durable, memory) = (
        Arc::new(BenchGateway::build(BenchStoreKind::Sqlite).await),
        Arc::new(BenchGateway::build(BenchStoreKind::Memory).await),
    );
    let mut pair = SpeedPair::default();
    let (thread, head) = durable.thread().await;
    let answer = durable.propose(&thread, head, "planner", json!({"requested_action": "refund"})).await;
    assert!(matches!(answer, ProposalOutcome::Committed { .. }), "{answer:?}");
    for turn in 0..=TURNS {
        let theirs = send(memory.port, propose_requests(&memory).await).await;
        let ours = send(durable.port, propose_requests(&durable).await).await;
        if turn > 0 {
            pair.add(ours, theirs);
        }
    }
    pair.tell("propose ÷ the same without its store, SQLite", "≥ 0.45");
}
