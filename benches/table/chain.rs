//! Verify on short and long chains: its cost must not grow.

use countersign_domain::chain::hash::Digest;
use countersign_domain::primitives::id::{ThreadId, WriteId};

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_service::Service;
use countersign_service::proposals::outcome::ProposalOutcome;
use countersign_service::writes::verify::VerifyInput;
use serde_json::json;

use super::house::{BenchGateway, BenchStoreKind};
use super::{line, median, number};

/// Of each length, and of each kind of start.
const ASKS: usize = 101;

pub async fn measure() {
    let house = BenchGateway::build(BenchStoreKind::SqliteUnsynced).await;
    let longest = number("BENCH_VERSIONS", 100_000);
    let lengths: Vec<usize> = [10, 1_000, 100_000].into_iter().map(|it: usize| it.min(longest)).collect();
    let mut chains = Vec::new();
    for length in &lengths {
        chains.push(grown(&house, *length).await);
    }
    let mut warm: Vec<Vec<f64>> = vec![Vec::new(); chains.len()];
    let mut cold: Vec<Vec<f64>> = vec![Vec::new(); chains.len()];
    for _ in 0..ASKS {
        for (at, (thread, head)) in chains.iter().enumerate() {
            ask(&house, &house.service, thread, *head).await;
            warm[at].push(ask(&house, &house.service, thread, *head).await);
            cold[at].push(ask(&house, &house.restarted().await, thread, *head).await);
        }
    }
    let (warm, cold): (Vec<f64>, Vec<f64>) =
        (warm.into_iter().map(median).collect(), cold.into_iter().map(median).collect());
    for (name, micros) in [("head in memory", warm), ("just started", cold)] {
        let last = micros.len() - 1;
        let measured =
            format!("{:.2}× ({:.0}, {:.0} and {:.0} µs)", micros[last] / micros[0], micros[0], micros[1], micros[last]);
        line(&format!("verify after {} versions ÷ after {}, {name}", lengths[last], lengths[0]), &measured, "flat");
    }
}

pub async fn grown(house: &BenchGateway, versions: usize) -> (ThreadId, Digest) {
    let (thread, mut head) = house.thread().await;
    for version in 1..versions {
        let patch = json!({"raw_text": format!("text number {version}")});
        head = match house.propose(&thread, head, "input_parser", patch).await {
            ProposalOutcome::Committed { transition, .. } => transition,
            other => panic!("{other:?}"),
        };
    }
    (thread, head)
}

/// Lets a writer through and lets it give up, so that the next can be. How long the first took, in µs.
async fn ask(house: &BenchGateway, service: &Service, thread: &ThreadId, transition: Digest) -> f64 {
    let token = service.identity.token_of(&house.writer).await.unwrap();
    let write_id = WriteId::try_from(countersign_adapters::random::uuid_v4().to_string().as_str()).unwrap();
    let ask = VerifyInput { thread: thread.clone(), transition, receipt: None, write_id, expect: Vec::new() };
    let begin = SystemClock.instant();
    service.writes.verify(&token, &ask).await.unwrap();
    let took = SystemClock.instant().duration_since(begin);
    service.writes.abort(&token, &ask.write_id, "it was only asked").await.unwrap();
    took.as_secs_f64() * 1e6
}
