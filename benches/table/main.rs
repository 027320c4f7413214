//! One table of what the gateway costs, each line a ratio within one run: `cargo bench --bench table`.
//!
//! Absolute numbers belong to a machine; ratios travel. The two sides of a ratio take turns, and the median of
//! the turns counts. Beside each ratio is the processor's time per request of the serving process. The load comes
//! from a process of its own.
//!
//! An argument runs one part: `verify` (or only its `sqlite` or `postgres`), `propose`, `requests`, `guard`, `sending`,
//! `json`, `rules`, `forms`, `joining`, `pages`, `chain`, `checkpoints` or `retention`. `BENCH_REQUESTS`, `BENCH_EVENTS`,
//! `BENCH_VERSIONS`, `BENCH_OPEN` and `BENCH_PAST` make it shorter. `pages` leaves the file that it fills, some gigabytes,
//! in the target folder. `BENCH_THREADS=1` prints the time of each thread in each turn of requests.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a bench that cannot go on says where")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is its output")]

#[path = "../../tests/support/description.rs"]
mod description;
#[expect(dead_code, reason = "a bench uses a part")]
#[path = "../../tests/support/gateway.rs"]
mod gateway;
#[path = "../../tests/support/passwords.rs"]
mod passwords;
#[path = "../../tests/support/postgres.rs"]
mod postgres;
#[path = "../../tests/support/sqlite.rs"]
mod sqlite;

/// As the gateway has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod approvals;
mod bare;
mod chain;
mod checkpoints;
mod documents;
mod floor;
mod forms;
mod guarding;
mod house;
mod joining;
mod load;
mod memory;
mod pages;
mod retention;
mod rules;
mod sending;
mod speed;

/// A number from the environment, for shorter runs.
fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).map_or(otherwise, |it| it.parse().expect("a number"))
}

/// The median, and where the turns lay around it.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A line of the table.
fn line(what: &str, measured: &str, goal: &str) {
    println!("| {what} | {measured} | {goal} |");
}

fn main() {
    if std::env::var(load::ORDERS).is_ok() {
        return load::run();
    }
    if std::env::var(sending::RECEIVES).is_ok() {
        return sending::receive();
    }
    if std::env::var(guarding::SERVES).is_ok() {
        return guarding::serve();
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    let wants = |part: &str| wanted.is_empty() || wanted.iter().any(|it| it == part);
    println!("| what | measured, median of {} turns | goal |\n|---|---|---|", speed::TURNS);
    if wants("json") {
        documents::measure();
    }
    if wants("joining") {
        joining::measure();
    }
    if wants("rules") {
        rules::measure();
    }
    if wants("forms") {
        forms::measure();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        if wants("verify") || wants("sqlite") {
            speed::verify(house::BenchStoreKind::Sqlite, speed::WriterOrder::Made).await;
            speed::verify(house::BenchStoreKind::Sqlite, speed::WriterOrder::Apart).await;
        }
        if wants("verify") || wants("postgres") {
            speed::verify(house::BenchStoreKind::Postgres, speed::WriterOrder::Made).await;
        }
        if wants("propose") {
            speed::propose().await;
        }
        if wants("requests") {
            approvals::measure(house::BenchStoreKind::Sqlite, "SQLite").await;
            approvals::measure(house::BenchStoreKind::Postgres, "PostgreSQL").await;
        }
        if wants("guard") {
            guarding::measure().await;
        }
        if wants("sending") {
            sending::measure(house::BenchStoreKind::Sqlite, "SQLite").await;
            sending::measure(house::BenchStoreKind::Postgres, "PostgreSQL").await;
        }
        if wants("pages") {
            pages::measure().await;
        }
        if wants("chain") {
            chain::measure().await;
        }
        if wants("checkpoints") {
            checkpoints::measure().await;
        }
        if wants("retention") {
            retention::measure().await;
        }
    });
}
