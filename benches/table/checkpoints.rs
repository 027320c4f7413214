//! Reading an earlier version's state in short and long threads: its cost must not grow.

use countersign_domain::primitives::id::{NodeId, ThreadId};

use countersign_adapters::clock::{Clock as _, SystemClock};

use super::chain::grown;
use super::house::{BenchGateway, BenchStoreKind};
use super::{line, median, number};

/// Of each length.
const READS: usize = 301;

pub async fn measure() {
    let house = BenchGateway::build(BenchStoreKind::SqliteUnsynced).await;
    let longest = number("BENCH_VERSIONS", 100_000);
    let mut lengths: Vec<usize> = [10, 1_000, 10_000, 100_000].into_iter().filter(|it| *it < longest).collect();
    lengths.push(longest);
    let mut threads = Vec::new();
    for length in &lengths {
        threads.push(grown(&house, *length).await.0);
    }
    let node = NodeId::try_from("input_parser").unwrap();
    let mut took: Vec<Vec<f64>> = vec![Vec::new(); threads.len()];
    for turn in 0..READS {
        for (at, thread) in threads.iter().enumerate() {
            // Another version each time, as far from a whole state as in any other thread.
            let version = (lengths[at] / 2 + turn % 8).min(lengths[at] - 2) as u64;
            took[at].push(read(&house, thread, &node, version).await);
        }
    }
    let micros: Vec<f64> = took.into_iter().map(median).collect();
    for (at, length) in lengths.iter().enumerate().skip(1) {
        let measured = format!("{:.2}× ({:.0} and {:.0} µs)", micros[at] / micros[0], micros[at], micros[0]);
        line(&format!("a checkpoint of {length} versions ÷ of {}", lengths[0]), &measured, "≤ 1.5×");
    }
}

async fn read(house: &BenchGateway, thread: &ThreadId, node: &NodeId, version: u64) -> f64 {
    let begin = SystemClock.instant();
    let view = house.service.threads.state_view(thread, node, Some(version)).await.unwrap();
    let took = SystemClock.instant().duration_since(begin);
    assert_eq!(view.version, version);
    took.as_secs_f64() * 1e6
}
