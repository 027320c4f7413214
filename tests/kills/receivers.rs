//! Those who are sent to: some take everything, the others show each way in which a receiver can be bad.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiverBehavior {
    Takes,
    TakesInOrder,
    TakesLate,
    Fails,
    Hangs,
    /// Redirects to an address that the gateway must never call.
    SendsOn,
    IsGone,
    StreamsForever,
    Drips,
    HangsUp,
}

pub const BAD: [ReceiverBehavior; 7] = [
    ReceiverBehavior::Fails,
    ReceiverBehavior::Hangs,
    ReceiverBehavior::SendsOn,
    ReceiverBehavior::IsGone,
    ReceiverBehavior::StreamsForever,
    ReceiverBehavior::Drips,
    ReceiverBehavior::HangsUp,
];

const LATE: Duration = Duration::from_millis(5);
const DRIP: Duration = Duration::from_millis(100);
const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// The requests of one receiver, by id: how many came and with which body.
#[derive(Default)]
pub struct ReceiverLog {
    pub times: BTreeMap<String, u64>,
    bodies: BTreeMap<String, [u8; 32]>,
    /// In which order ids came for the first time.
    pub order: Vec<String>,
    /// Ids under which two different bodies came.
    pub mixed: Vec<String>,
}

/// All of them, at one address.
pub struct ReceiverPool {
    pub port: u16,
    manners: Vec<ReceiverBehavior>,
    got: Vec<Mutex<ReceiverLog>>,
    /// Requests that followed the redirect to the forbidden address.
    pub trapped: Mutex<u64>,
    arrived: watch::Sender<u64>,
}

impl ReceiverPool {
    pub async fn open(manners: Vec<ReceiverBehavior>) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let all = Arc::new(Self {
            port: listener.local_addr().unwrap().port(),
            got: manners.iter().map(|_| Mutex::default()).collect(),
            manners,
            trapped: Mutex::new(0),
            arrived: watch::Sender::new(0),
        });
        let shared = Arc::clone(&all);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let shared = Arc::clone(&shared);
                // However a connection ends: the next one is the sender's business.
                tokio::spawn(async move { shared.serve(stream).await.err() });
            }
        });
        all
    }

    pub fn url(&self, at: usize) -> String {
        format!("http://127.0.0.1:{}/{at}", self.port)
    }

    pub fn all(&self) -> impl Iterator<Item = (usize, ReceiverBehavior)> {
        self.manners.iter().copied().enumerate()
    }

    /// Those that take everything.
    pub fn healthy(&self) -> impl Iterator<Item = (usize, ReceiverBehavior)> {
        self.all().filter(|it| !BAD.contains(&it.1))
    }

    pub fn of<T>(&self, at: usize, look: impl FnOnce(&ReceiverLog) -> T) -> T {
        look(&self.got[at].lock().unwrap())
    }

    /// Waits until so much has arrived at those who take everything.
    pub async fn until(&self, count: u64) {
        self.arrived.subscribe().wait_for(|it| *it >= count).await.unwrap();
    }

    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut buffer = Vec::new();
        loop {
            let Some(request) = request(&mut stream, &mut buffer).await? else { return Ok(()) };
            let Ok(at) = request.path.parse::<usize>() else {
                *self.trapped.lock().unwrap() += 1;
                stream.write_all(OK).await?;
                continue;
            };
            self.note(at, &request);
            if !answer(&mut stream, self.manners[at]).await? {
                return Ok(());
            }
        }
    }

    fn note(&self, at: usize, request: &ReceivedRequest) {
        {
            let got = &mut *self.got[at].lock().unwrap();
            let times = got.times.entry(request.id.clone()).or_default();
            *times += 1;
            if *times == 1 {
                got.order.push(request.id.clone());
            }
            let body = Sha256::digest(&request.body).into();
            if *got.bodies.entry(request.id.clone()).or_insert(body) != body {
                got.mixed.push(request.id.clone());
            }
        }
        if !BAD.contains(&self.manners[at]) {
            self.arrived.send_modify(|it| *it += 1);
        }
    }
}

struct ReceivedRequest {
    path: String,
    id: String,
    body: Vec<u8>,
}

/// The next whole request of a connection.
async fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Option<ReceivedRequest>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
            let header = |name: &str| {
                let line = head.lines().find(|it| it.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
                Some(line.split_once(':').unwrap().1.trim().to_owned())
            };
            let length: usize = header("content-length").map_or(0, |it| it.parse().unwrap());
            if buffer.len() >= end + 4 + length {
                let body = buffer[end + 4..end + 4 + length].to_vec();
                let path = head.split(' ').nth(1).unwrap().trim_start_matches('/').to_owned();
                let id = header("webhook-id").unwrap_or_default();
                buffer.drain(..end + 4 + length);
                return Ok(Some(ReceivedRequest { path, id, body }));
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// Answers in that manner; whether the connection goes on.
async fn answer(stream: &mut TcpStream, manner: ReceiverBehavior) -> std::io::Result<bool> {
    match manner {
        ReceiverBehavior::Takes | ReceiverBehavior::TakesInOrder => stream.write_all(OK).await?,
        ReceiverBehavior::TakesLate => {
            tokio::time::sleep(LATE).await;
            stream.write_all(OK).await?;
        }
        ReceiverBehavior::Fails => stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n").await?,
        ReceiverBehavior::SendsOn => {
            stream.write_all(b"HTTP/1.1 307 On\r\nlocation: /trap\r\ncontent-length: 0\r\n\r\n").await?;
        }
        ReceiverBehavior::IsGone => stream.write_all(b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n").await?,
        ReceiverBehavior::Hangs => stream.read_u8().await.map(drop)?,
        ReceiverBehavior::StreamsForever => {
            stream.write_all(b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            forever(stream, b"400\r\n", &[b'x'; 1024], b"\r\n").await?;
        }
        ReceiverBehavior::Drips => {
            for byte in b"HTTP/1.1 200 OK\r\n".iter().chain(b"x-more: drops\r\n".iter().cycle()) {
                stream.write_all(&[*byte]).await?;
                tokio::time::sleep(DRIP).await;
            }
        }
        ReceiverBehavior::HangsUp => {
            stream.write_all(b"HTTP/1.1 200 O").await?;
            return Ok(false);
        }
    }
    Ok(true)
}

async fn forever(stream: &mut TcpStream, head: &[u8], body: &[u8], tail: &[u8]) -> std::io::Result<Infallible> {
    loop {
        stream.write_all(&[head, body, tail].concat()).await?;
        tokio::time::sleep(LATE).await;
    }
}
