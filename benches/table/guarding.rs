//! `mcp guard` before a server, beside the same server without it, one call after the other.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use countersign_adapters::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::house::{BenchGateway, BenchStoreKind};
use super::speed::TURNS;
use super::{approvals, line, median, number};

/// The variable that makes this binary an MCP server.
pub const SERVES: &str = "BENCH_MCP_SERVER";

/// An MCP server on standard input and output, whose only tool answers at once.
pub fn serve() {
    for text in std::io::stdin().lines() {
        let message: Value = serde_json::from_str(&text.unwrap()).unwrap();
        let result = json!({"content": [{"type": "text", "text": "found"}]});
        println!("{}", json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
    }
}

/// A server, with or without a guard.
struct BenchClient {
    child: Child,
    asks: ChildStdin,
    told: BufReader<ChildStdout>,
}

impl BenchClient {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (asks, told) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, asks, told }
    }

    /// The median time of a call, in milliseconds.
    fn turn(&mut self, turn: usize) -> f64 {
        let calls = number("BENCH_REQUESTS", 6_000) / 20;
        let mut took = Vec::with_capacity(calls);
        for at in 0..calls {
            let params = json!({"name": "search", "arguments": {"q": format!("{turn}/{at}")}});
            let begin = SystemClock.instant();
            writeln!(self.asks, "{}", json!({"jsonrpc": "2.0", "id": at, "method": "tools/call", "params": params}))
                .unwrap();
            let mut answer = String::new();
            self.told.read_line(&mut answer).unwrap();
            took.push(SystemClock.instant().duration_since(begin).as_secs_f64() * 1e3);
            assert!(answer.contains("found"), "{answer}");
        }
        median(took)
    }
}

impl Drop for BenchClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub async fn measure() {
    let house = BenchGateway::build(BenchStoreKind::Sqlite).await;
    let (_, token) = approvals::instance(&house).await;
    let server = std::env::current_exe().unwrap();
    let url = format!("http://127.0.0.1:{}", house.port);
    let turns = tokio::task::spawn_blocking(move || {
        let mut bare = Command::new(&server);
        bare.env(SERVES, "1");
        let mut guarded = Command::new(env!("CARGO_BIN_EXE_countersign"));
        guarded.args(["mcp", "guard", "--gateway", &url, "--"]).arg(&server);
        guarded.env("COUNTERSIGN_TOKEN", token).env(SERVES, "1");
        let (mut bare, mut guarded) = (BenchClient::start(bare), BenchClient::start(guarded));
        let both: Vec<(f64, f64)> = (0..=TURNS).map(|turn| (bare.turn(turn), guarded.turn(turn))).collect();
        both
    });
    // The first turn only warms up.
    let turns: Vec<(f64, f64)> = turns.await.unwrap().into_iter().skip(1).collect();
    let added = median(turns.iter().map(|(bare, guarded)| guarded - bare).collect());
    let (bare, guarded) =
        (median(turns.iter().map(|it| it.0).collect()), median(turns.iter().map(|it| it.1).collect()));
    let measured = format!("{added:.2} ms ({guarded:.2} against {bare:.2} ms a call)");
    line("what `mcp guard` adds to an allowed call", &measured, "≤ 3 ms");
}
