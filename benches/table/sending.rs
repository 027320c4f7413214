//! Events to a local receiver, beside a bare loop that makes the same requests.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use countersign_domain::delivery::endpoint::EventPattern;
use countersign_domain::primitives::id::EndpointId;
use countersign_domain::primitives::secret::Secret;

use countersign::worker::{deliver, sequence};
use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_service::Stored;
use countersign_service::delivery::endpoint_kind::NewKind;
use countersign_service::delivery::endpoints::NewEndpoint;
use countersign_service::identity::actor::Actor;
use futures_util::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::house::{BenchGateway, BenchStoreKind};
use super::load::{CONNECTIONS, cpu_micros};
use super::speed::TURNS;
use super::{line, median, number};

/// The variable that makes this binary the receiver.
pub const RECEIVES: &str = "BENCH_RECEIVES";

/// As many requests as a gateway has under way to one endpoint while they arrive.
const WIDTH: usize = deliver::LANE_WIDTH_MAX;

/// Endpoints that are served beside each other in the second line.
const ENDPOINTS: usize = 8;

/// The life of the process that receives: it says where, and ends with its input.
pub fn receive() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut out = std::io::stdout();
        writeln!(out, "{}", listener.local_addr().unwrap().port()).unwrap();
        out.flush().unwrap();
        let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()).unwrap());
        tokio::select! {
            _ = end => {}
            never = accept(listener) => match never {},
        }
    });
}

async fn accept(listener: TcpListener) -> Infallible {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        tokio::spawn(take(stream));
    }
}

async fn take(mut stream: TcpStream) {
    let mut buffer = Vec::with_capacity(16 * 1024);
    loop {
        while let Some(length) = request_length(&buffer) {
            buffer.drain(..length);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        }
        if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

/// How long the first request in there is, once it is whole.
fn request_length(buffer: &[u8]) -> Option<usize> {
    let head = buffer.windows(4).position(|it| it == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&buffer[..head]).unwrap().to_ascii_lowercase();
    let length = text.lines().find_map(|it| it.strip_prefix("content-length: ")).expect("requests have a length");
    let whole = head + length.trim().parse::<usize>().unwrap();
    (buffer.len() >= whole).then_some(whole)
}

struct BenchReceiver {
    process: Child,
    port: u16,
}

impl BenchReceiver {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut process = command.env(RECEIVES, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, port: port.trim().parse().unwrap() }
    }
}

impl Drop for BenchReceiver {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }
}

/// How many were sent in one turn, and what that cost.
struct SendResult {
    count: usize,
    seconds: f64,
    cpu_micros: f64,
}

impl SendResult {
    fn per_second(&self) -> f64 {
        self.count as f64 / self.seconds
    }

    fn cpu_micros(&self) -> f64 {
        self.cpu_micros / self.count as f64
    }
}

async fn timed(work: impl Future<Output = usize>) -> SendResult {
    let (cpu, begin) = (cpu_micros(), SystemClock.instant());
    let count = work.await;
    let seconds = SystemClock.instant().duration_since(begin).as_secs_f64();
    SendResult { count, seconds, cpu_micros: cpu_micros() - cpu }
}

/// An endpoint that gets the whole log from its beginning.
async fn endpoint(house: &BenchGateway, by: Actor<'_>, port: u16) -> EndpointId {
    let new = NewEndpoint {
        name: "bench".to_owned(),
        kind: NewKind::Webhook,
        url: Secret::new(format!("http://127.0.0.1:{port}/hook")),
        events: BTreeSet::from([EventPattern::all()]),
        flows: BTreeSet::new(),
        ordered: false,
        headers: BTreeMap::new(),
        after: Some(0),
    };
    house.service.delivery.add_endpoint(by, &new).await.unwrap().0.endpoint.id
}

/// The bodies that an endpoint was sent.
async fn bodies(house: &BenchGateway, endpoint: &EndpointId) -> Vec<String> {
    let mut bodies = Vec::new();
    let mut after = None;
    loop {
        let all = countersign_service::delivery::deliveries::DeliveryFilter::All;
        let (page, next) = house.service.delivery.deliveries(endpoint, all, after, 200).await.unwrap();
        for it in &page {
            assert_eq!(it.attempts.len(), 1, "each arrived at once");
            bodies.push(house.service.delivery.delivery(endpoint, it.index).await.unwrap().body);
        }
        after = next;
        if after.is_none() {
            return bodies;
        }
    }
}

/// The same bodies by a loop that does nothing else, as many at a time.
async fn bare(port: u16, bodies: &[String], width: usize) -> usize {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://127.0.0.1:{port}/hook");
    let send = |body: &String| {
        let request = client
            .post(&url)
            .header("webhook-id", "019e0000-0000-7000-8000-000000000000")
            .header("webhook-timestamp", "1790000000")
            .header("webhook-signature", format!("v1,{} v1a,{}", "A".repeat(44), "A".repeat(88)))
            .header("content-type", "application/json")
            .body(body.clone());
        async move {
            let answer = request.send().await.unwrap();
            assert!(answer.status().is_success());
            answer.bytes().await.unwrap();
        }
    };
    futures_util::stream::iter(bodies).map(send).buffer_unordered(width).count().await
}

pub async fn measure(kind: BenchStoreKind, name: &str) {
    let house = Arc::new(BenchGateway::build(kind).await);
    let admin = countersign_domain::identity::account::MachineRole::Admin;
    let admin = super::gateway::token(&house.service, "admin", admin, &[]).await;
    let admin: Stored<_> = house.service.identity.token_of(&admin).await.unwrap();
    let by = Actor::Token(&admin);
    let events = number("BENCH_EVENTS", 6_000);
    let hands = (0..CONNECTIONS).map(|_| {
        let house = Arc::clone(&house);
        tokio::spawn(async move {
            for _ in 0..events / CONNECTIONS {
                house.thread().await;
            }
        })
    });
    futures_util::future::join_all(hands.collect::<Vec<_>>()).await;
    while sequence::run_once(&house.service).await.unwrap() > 0 {}
    let receiver = BenchReceiver::start();
    for endpoints in [1, ENDPOINTS] {
        let (mut ours, mut theirs, mut one_by_one) = (Vec::new(), Vec::new(), Vec::new());
        for turn in 0..=TURNS {
            let mut served = Vec::new();
            for _ in 0..endpoints {
                served.push(endpoint(&house, by, receiver.port).await);
            }
            let events = events / CONNECTIONS * CONNECTIONS * endpoints;
            let own = timed(async { deliver::run_once(&house.service).await.unwrap() }).await;
            assert!(own.count >= events, "{} were sent", own.count);
            let mut same = Vec::new();
            for it in &served {
                same.extend(bodies(&house, it).await);
                house.service.delivery.remove_endpoint(by, it).await.unwrap();
            }
            assert_eq!(same.len(), own.count, "each once");
            let wide = timed(bare(receiver.port, &same, WIDTH * endpoints)).await;
            let narrow = timed(bare(receiver.port, &same, 1)).await;
            if turn > 0 {
                ours.push(own);
                theirs.push(wide);
                one_by_one.push(narrow);
            }
        }
        let told =
            [(one_by_one, "a bare reqwest loop", "≥ 0.7"), (theirs, "as many at a time as we, and nothing else", "")];
        for (theirs, how, goal) in told {
            let what = format!("deliveries to {endpoints} endpoint(s) ÷ {how}, {name}");
            tell(&what, (&ours, &theirs), goal);
        }
    }
}

fn tell(what: &str, (ours, theirs): (&[SendResult], &[SendResult]), goal: &str) {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a.per_second() / b.per_second()).collect();
    let each: Vec<String> = ratios.iter().map(|it| format!("{it:.2}")).collect();
    let middle = |turns: &[SendResult], of: fn(&SendResult) -> f64| median(turns.iter().map(of).collect());
    let measured = format!(
        "{:.2} of {:.0}/s ({}); {:.0} against {:.0} CPU µs a delivery",
        median(ratios),
        middle(theirs, SendResult::per_second),
        each.join(" "),
        middle(ours, SendResult::cpu_micros),
        middle(theirs, SendResult::cpu_micros),
    );
    line(what, &measured, goal);
}
