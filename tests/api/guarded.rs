//! Clients of guarded MCP servers, and what became of their calls.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use countersign_domain::primitives::id::{ReviewId, ThreadId};
use countersign_domain::reviews::{Ballot, VoteVerdict};
use serde_json::{Value, json};

use crate::gateway::{TestGateway, ballot};

/// A client in a process of its own, which answers each line with a line.
pub struct GuardedClient {
    pub child: Child,
    pub asks: ChildStdin,
    told: BufReader<ChildStdout>,
}

impl GuardedClient {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (asks, told) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, asks, told }
    }

    pub fn ask(&mut self, ask: &Value) -> Value {
        writeln!(self.asks, "{ask}").unwrap();
        serde_json::from_str(&self.line()).expect("the client answers")
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.told.read_line(&mut line).unwrap();
        line
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> (bool, String) {
        let told = self.ask(&json!({"tool": tool, "arguments": arguments}));
        (told["is_error"] == false, told["text"][0].as_str().map_or_else(|| told.to_string(), str::to_owned))
    }

    /// Closes the client, which ends the guard and its server.
    pub fn close(self) {
        let Self { mut child, asks, told } = self;
        drop((asks, told));
        child.wait().unwrap();
    }
}

/// Waits for the only held call, and decides it.
pub async fn decides(g: &TestGateway, verdict: VoteVerdict) {
    for _ in 0..200 {
        let held = threads(g).await.into_iter().find_map(|(thread, review)| Some((thread, review?)));
        if let Some((thread, review)) = held {
            let facts = g.service.reviews.review(&review, &g.alice).await.unwrap();
            let held = json!({"transition": facts.hold.transition, "thread": thread});
            let ballot = Ballot { comment: Some("as agreed".to_owned()), ..ballot(&held, verdict) };
            g.service.reviews.vote(&g.alice.id, &review, &ballot, None).await.unwrap();
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no call is held");
}

/// The threads of all requests, with their pending reviews.
pub async fn threads(g: &TestGateway) -> Vec<(ThreadId, Option<ReviewId>)> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let events = g.get(&format!("/v1/events?limit=500&after={after}"), &g.auditor).await.expect(200);
        let events = events["events"].as_array().unwrap();
        let Some(last) = events.last() else { return found };
        after = last["index"].as_u64().unwrap();
        for event in events.iter().filter(|it| it["type"] == "thread.created") {
            let thread: ThreadId = event["thread"].as_str().unwrap().try_into().unwrap();
            let overview = g.service.threads.overview(&thread).await.unwrap();
            found.push((thread, overview.review));
        }
    }
}

/// The outcomes of all calls, as the gateway recorded them.
pub async fn outcomes(g: &TestGateway) -> Vec<&'static str> {
    let mut outcomes = Vec::new();
    for (thread, _) in threads(g).await {
        let overview = g.service.threads.overview(&thread).await.unwrap();
        let outcome = overview.thread.request.and_then(|it| it.outcome);
        outcomes.extend(outcome.map(|it| it.status.as_str()));
    }
    outcomes
}

pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}
