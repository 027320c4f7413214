//! A local server that answers as a test specifies.

use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A certificate for `localhost` and its CA, shared with the tests of the OpenID provider.
const CERTIFICATE: &[u8] = include_bytes!("../../../../../tests/provider/tls/certificate.pem");
const KEY: &[u8] = include_bytes!("../../../../../tests/provider/tls/key.pem");
pub const AUTHORITY: &[u8] = include_bytes!("../../../../../tests/provider/tls/authority.pem");

/// An HTTP server that counts its connections and requests.
pub struct PeerServer {
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl PeerServer {
    /// Answers each request in the same way and keeps connections open.
    pub async fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer: Arc<[u8]> = answer.into().into();
        Self::doing(move |mut stream| {
            let answer = answer.clone();
            async move { while stream.request().await && stream.say(&answer).await {} }
        })
        .await
    }

    /// Handles each connection with the given function.
    pub async fn doing<F, D>(handle: F) -> Self
    where
        F: Fn(PeerConnection) -> D + Send + 'static,
        D: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let peer = Self { address, connections: connections.clone(), requests: requests.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(handle(PeerConnection { stream, requests: requests.clone() }));
            }
        });
        peer
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

pub struct PeerConnection {
    stream: TcpStream,
    requests: Arc<Mutex<Vec<String>>>,
}

impl PeerConnection {
    /// Reads a request with its body. Returns false at the end of the connection.
    pub async fn request(&mut self) -> bool {
        let mut seen = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&seen).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && body.len() >= length(head)
            {
                self.requests.lock().unwrap().push(text);
                return true;
            }
            match self.stream.read_buf(&mut seen).await {
                Ok(1..) => (),
                _ => return false,
            }
        }
    }

    /// Sends bytes. Returns false if the client has disconnected.
    pub async fn say(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Waits until the client disconnects.
    pub async fn wait(&mut self) {
        let mut rest = Vec::new();
        while let Ok(1..) = self.stream.read_buf(&mut rest).await {}
    }
}

fn length(head: &str) -> usize {
    let lines = head.lines().filter_map(|it| it.split_once(':'));
    let length = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length")).map(|it| it.1.trim()).next();
    length.map_or(0, |it| it.parse().unwrap())
}

/// Starts a server that presents the certificate for `localhost` and answers 204 to clients that accept it.
pub fn with_certificate() -> SocketAddr {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(CERTIFICATE).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    crate::tls::ready();
    let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key).unwrap();
    let (config, listener) = (Arc::new(config), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut tls = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut tls = rustls::Stream::new(&mut tls, &mut stream);
            let (mut seen, mut part) = (Vec::new(), [0; 1024]);
            // A client that does not trust the certificate disconnects here.
            while let Ok(read @ 1..) = tls.read(&mut part) {
                seen.extend_from_slice(&part[..read]);
                if seen.ends_with(b"\r\n\r\n{}") {
                    let _ = tls.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
                }
            }
        }
    });
    address
}
