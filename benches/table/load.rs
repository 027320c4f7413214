//! The load: a process of its own that keeps connections busy and tells how long each answer took.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use countersign_adapters::clock::{Clock as _, SystemClock};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The variable that makes this binary the load.
pub const ORDERS: &str = "BENCH_LOAD";

/// As in the goals.
pub const CONNECTIONS: usize = 64;

/// One request; its answer must have this status.
#[derive(Clone, Serialize, Deserialize)]
pub struct LoadRequest {
    pub path: String,
    pub token: String,
    pub body: String,
    pub status: u16,
    /// The idempotency key, for calls that need one.
    #[serde(default)]
    pub key: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct LoadConfig {
    port: u16,
    requests: Vec<LoadRequest>,
}

/// What a turn came to.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct LoadResult {
    pub per_second: f64,
    pub p50_micros: f64,
    pub p99_micros: f64,
    /// Of the serving process, by request.
    #[serde(default)]
    pub cpu_micros: f64,
}

/// Sends the requests to a server of this process.
pub async fn send(port: u16, requests: Vec<LoadRequest>) -> LoadResult {
    let count = requests.len() as f64;
    let orders = serde_json::to_vec(&LoadConfig { port, requests }).unwrap();
    let before = cpu_micros();
    let threads = cpu_of_threads();
    let turn = tokio::task::spawn_blocking(move || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command.env(ORDERS, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&orders).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        serde_json::from_slice::<LoadResult>(&output.stdout).unwrap()
    });
    let turn = turn.await.unwrap();
    tell_threads(&threads, count);
    LoadResult { cpu_micros: (cpu_micros() - before) / count, ..turn }
}

/// The processor's time of this process, in steps of the kernel's clock, 10 ms.
pub fn cpu_micros() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(") ").unwrap().1;
    let ticks = after_name.split(' ').skip(11).take(2).map(|it| it.parse::<f64>().unwrap());
    ticks.sum::<f64>() * 10_000.0
}

/// The same by threads' names, in nanoseconds.
fn cpu_of_threads() -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        let Ok(name) = std::fs::read_to_string(task.join("comm")) else { continue };
        let Ok(stat) = std::fs::read_to_string(task.join("schedstat")) else { continue };
        let nanos: f64 = stat.split(' ').next().unwrap().parse().unwrap();
        *all.entry(name.trim().to_owned()).or_default() += nanos;
    }
    all
}

fn tell_threads(before: &BTreeMap<String, f64>, count: f64) {
    if std::env::var("BENCH_THREADS").is_err() {
        return;
    }
    for (name, nanos) in cpu_of_threads() {
        let micros = (nanos - before.get(&name).copied().unwrap_or_default()) / 1_000.0 / count;
        if micros > 0.5 {
            eprint!("{name} {micros:.1}  ");
        }
    }
    eprintln!();
}

/// The life of the process that loads.
pub fn run() {
    let mut orders = Vec::new();
    std::io::stdin().read_to_end(&mut orders).unwrap();
    let orders: LoadConfig = serde_json::from_slice(&orders).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let turn = runtime.block_on(all(orders));
    std::io::stdout().write_all(&serde_json::to_vec(&turn).unwrap()).unwrap();
}

async fn all(orders: LoadConfig) -> LoadResult {
    let mut lanes: Vec<Vec<(Vec<u8>, u16)>> = vec![Vec::new(); CONNECTIONS];
    for (at, request) in orders.requests.iter().enumerate() {
        let LoadRequest { path, token, body, status, key } = request;
        let key = key.as_ref().map_or(String::new(), |it| format!("idempotency-key: {it}\r\n"));
        let bytes = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
             {key}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        lanes[at % CONNECTIONS].push((bytes.into_bytes(), *status));
    }
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(("127.0.0.1", orders.port)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        streams.push(stream);
    }
    let begin = SystemClock.instant();
    let tasks: Vec<_> =
        streams.into_iter().zip(lanes).map(|(stream, lane)| tokio::spawn(drive(stream, lane))).collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    let took = SystemClock.instant().duration_since(begin).as_secs_f64();
    latencies.sort_by(f64::total_cmp);
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    LoadResult { per_second: latencies.len() as f64 / took, p50_micros: at(0.5), p99_micros: at(0.99), cpu_micros: 0.0 }
}

async fn drive(mut stream: TcpStream, lane: Vec<(Vec<u8>, u16)>) -> Vec<f64> {
    let mut latencies = Vec::with_capacity(lane.len());
    let mut buffer = Vec::with_capacity(16 * 1024);
    for (bytes, status) in lane {
        let begin = SystemClock.instant();
        stream.write_all(&bytes).await.unwrap();
        buffer.clear();
        while !is_whole(&buffer) {
            assert!(stream.read_buf(&mut buffer).await.unwrap() > 0, "the server hung up");
        }
        let expected = format!("HTTP/1.1 {status} ");
        assert!(buffer.starts_with(expected.as_bytes()), "{}", String::from_utf8_lossy(&buffer));
        latencies.push(SystemClock.instant().duration_since(begin).as_secs_f64() * 1e6);
    }
    latencies
}

/// Whether head and body of an answer with a length are there.
fn is_whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|it| it == b"\r\n\r\n") else { return false };
    let text = std::str::from_utf8(&answer[..head]).unwrap().to_ascii_lowercase();
    let length = text.lines().find_map(|it| it.strip_prefix("content-length: ")).expect("answers have a length");
    answer.len() >= head + 4 + length.trim().parse::<usize>().unwrap()
}
