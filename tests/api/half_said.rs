//! Tests requests whose last byte is held back. The gateway checks their permissions when that byte arrives, and counts
//! the waiting requests until then.

use std::sync::Arc;
use std::time::Duration;

use countersign_domain::identity::account::{Account, MachineRole, PersonRole};
use countersign_domain::reviews::VoteVerdict;

use countersign_service::error::Error;
use countersign_service::identity::accounts::NewAccount;
use countersign_web::auth::permissions::TABLE;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::attacks::approve;
use crate::gateway::{TestGateway, spawn_gateway, token};
use crate::meanwhile::{InterleavedAction, second_gateway};
use crate::passwords::hashed;
use crate::roles::path_of;

const MACHINES: [MachineRole; 6] = [
    MachineRole::Host,
    MachineRole::Agent,
    MachineRole::Writer,
    MachineRole::Auditor,
    MachineRole::Admin,
    MachineRole::Monitor,
];

/// A request of which the rest is not sent yet.
struct PartialRequest {
    stream: TcpStream,
    rest: String,
}

impl PartialRequest {
    /// Sends all but the last byte. The gateway has confirmed that it reads on.
    async fn of(g: &TestGateway, request: &str, who: &str, body: &str) -> Self {
        let (first, last) = body.split_at(body.len() - 1);
        let mut begun = Self::so_long(g, request, who, body.len()).await;
        begun.stream.write_all(first.as_bytes()).await.unwrap();
        last.clone_into(&mut begun.rest);
        begun
    }

    /// Sends only the length of a body.
    async fn so_long(g: &TestGateway, request: &str, who: &str, length: usize) -> Self {
        Self::so_long_from("127.0.0.1", g, request, who, length).await
    }

    async fn so_long_from(address: &str, g: &TestGateway, request: &str, who: &str, length: usize) -> Self {
        let mut stream = connected_from(address, g).await;
        let who = format!("{who}\r\nExpect: 100-continue");
        stream.write_all(head(g, request, &who, length).as_bytes()).await.unwrap();
        let mut on = [0; 25];
        stream.read_exact(&mut on).await.unwrap();
        assert_eq!(&on, b"HTTP/1.1 100 Continue\r\n\r\n", "{request}");
        Self { stream, rest: String::new() }
    }

    async fn whole(g: &TestGateway, request: &str, who: &str, body: &str) -> Self {
        let mut stream = connected(g).await;
        stream.write_all((head(g, request, who, body.len()) + body).as_bytes()).await.unwrap();
        Self { stream, rest: String::new() }
    }

    /// Sends the rest. Returns the status and the redirect of the response.
    async fn end(mut self) -> (u16, String) {
        self.stream.write_all(self.rest.as_bytes()).await.unwrap();
        let mut text = String::new();
        self.stream.read_to_string(&mut text).await.unwrap();
        let status = text.split(' ').nth(1).unwrap_or_else(|| panic!("{text:?}")).parse().unwrap();
        let leads = text.lines().find_map(|it| it.strip_prefix("location: ")).unwrap_or_default();
        (status, leads.to_owned())
    }
}

async fn connected(g: &TestGateway) -> TcpStream {
    connected_from("127.0.0.1", g).await
}

/// Connects from one of localhost's addresses.
async fn connected_from(address: &str, g: &TestGateway) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
    socket.connect(g.url.replace("http://localhost", "127.0.0.1").parse().unwrap()).await.unwrap()
}

fn head(g: &TestGateway, request: &str, who: &str, length: usize) -> String {
    let (origin, at) = (&g.url, g.url.strip_prefix("http://").unwrap());
    format!(
        "{request} HTTP/1.1\r\nHost: {at}\r\n{who}\r\nOrigin: {origin}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    )
}

/// The gateway has one worker thread, so its answer shows that it has read every earlier request.
async fn all_are_begun(g: &TestGateway) {
    for _ in 0..3 {
        assert_eq!(g.get("/v1/threads/none", &g.auditor).await.status, 404);
    }
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\nContent-Type: application/json")
}

async fn revoke(g: &TestGateway, token: &str) {
    let id = g.service.identity.token_of(token).await.unwrap().record.id;
    g.service.identity.revoke_token(&id).await.unwrap();
}

#[tokio::test]
async fn token_revoked_before_the_last_byte_is_refused_on_every_route() {
    let g = spawn_gateway().await;
    for role in MACHINES {
        let nodes: &[&str] = match role {
            MachineRole::Agent => &["planner"],
            MachineRole::Writer => &["database_writer"],
            _ => &[],
        };
        let own = token(&g.service, "own", role, nodes).await;
        let mut begun = Vec::new();
        // A request without a body is complete with its head, so it is not part of this test.
        for rule in TABLE.iter().filter(|it| !["GET", "DELETE"].contains(&it.method) && it.machines.contains(&role)) {
            let request = format!("{} {}", rule.method, path_of(rule.route).replace(['{', '}'], ""));
            begun.push((PartialRequest::of(&g, &request, &bearer(&own), "{}").await, request));
        }
        all_are_begun(&g).await;
        revoke(&g, &own).await;
        for (begun, request) in begun {
            assert_eq!(begun.end().await.0, 401, "{request} as {role:?}");
        }
    }
}

async fn admin(g: &TestGateway) -> Account {
    let new = NewAccount { name: "root".to_owned(), role: PersonRole::Admin, groups: Default::default() };
    g.service.identity.add_account_hashed(&new, &hashed("correct horse battery").await).await.unwrap()
}

#[tokio::test]
async fn session_ended_before_the_last_byte_is_refused_for_every_form() {
    let g = spawn_gateway().await;
    let root = admin(&g).await;
    for (who, role) in [(&g.alice, PersonRole::Reviewer), (&root, PersonRole::Admin)] {
        let (me, secret) = g.service.identity.sign_in(&who.name, "correct horse battery".to_owned()).await.unwrap();
        let cookie = format!("Cookie: countersign={secret}\r\nContent-Type: application/x-www-form-urlencoded");
        let page = g.http.get(format!("{}/account", g.url)).header("cookie", format!("countersign={secret}"));
        let page = page.send().await.unwrap().text().await.unwrap();
        let form = format!("csrf={}", page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap());
        let mut begun = Vec::new();
        for rule in TABLE.iter().filter(|it| it.method == "POST" && it.people.contains(&role)) {
            let request = format!("POST {}", path_of(rule.route).replace(['{', '}'], ""));
            begun.push((PartialRequest::of(&g, &request, &cookie, &form).await, request));
        }
        assert!(begun.len() > 10);
        all_are_begun(&g).await;
        g.service.identity.sign_out(&me).await.unwrap();
        for (begun, request) in begun {
            let (status, leads) = begun.end().await;
            assert_eq!((status, leads.starts_with("/sign-in")), (303, true), "{request} as {role:?}: {status} {leads}");
        }
    }
}

#[tokio::test]
async fn waiting_request_with_a_revoked_token_gets_no_content() {
    let g = spawn_gateway().await;
    let held = g.held(&g.thread().await).await;
    let path = format!("{}/v1/transitions/{}/decision", g.url, held["transition"].as_str().unwrap());
    let asked = g.http.get(path).bearer_auth(&g.planner).header("prefer", "wait=30").send();
    let waiting = tokio::spawn(asked);
    all_are_begun(&g).await;
    revoke(&g, &g.planner).await;
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().status().as_u16(), 401);
}

/// The writer was accepted, and is revoked before the end of its write is recorded.
#[tokio::test]
async fn writer_revoked_during_its_request_ends_no_write() {
    for confirms in [true, false] {
        let g = spawn_gateway().await;
        let approved = approve(&g).await;
        g.post("/v1/verify", &g.writer, approved.ask("w-1")).await.expect(200);
        let (store, second) = second_gateway(&g).await;
        let writer = second.identity.token_of(&g.writer).await.unwrap();
        let (service, id) = (Arc::clone(&g.service), writer.record.id.clone());
        let revokes: InterleavedAction =
            Box::new(move || Box::pin(async move { service.identity.revoke_token(&id).await.unwrap() }));
        store.watching.by(revokes);
        let write = "w-1".try_into().unwrap();
        let ended = match confirms {
            true => second.writes.confirm(&writer, &write, &json!({})).await,
            false => second.writes.abort(&writer, &write, "enough").await,
        };
        assert!(matches!(ended, Err(Error::Unauthenticated)), "{ended:?}");
        assert!(store.watching.is_over());
        let thread = approved.id().as_str().unwrap().try_into().unwrap();
        assert!(g.service.threads.overview(&thread).await.unwrap().thread.live_write(g.service.core.now()).is_some());
    }
}

#[tokio::test]
async fn unfinished_requests_of_a_client_are_limited() {
    const LONGEST: usize = 1024 * 1024;
    let g = spawn_gateway().await;
    for (path, role, nodes, heard) in [
        ("/v1/threads", MachineRole::Host, &[][..], 400),
        ("/v1/verify", MachineRole::Writer, &["database_writer"], 403),
    ] {
        let (one, other) = (token(&g.service, "one", role, nodes).await, token(&g.service, "other", role, nodes).await);
        let request = format!("POST {path}");
        let empty = async |token: &str| PartialRequest::of(&g, &request, &bearer(token), "{}").await.end().await.0;
        let mut begun = Vec::new();
        for _ in 0..64 {
            begun.push(PartialRequest::so_long(&g, &request, &bearer(&one), LONGEST).await);
        }
        all_are_begun(&g).await;
        assert_eq!(empty(&one).await, 429, "however short it is");
        assert_eq!(empty(&other).await, heard, "another is heard");
        for _ in 0..3 {
            let whole = PartialRequest::whole(&g, &request, &bearer(&one), "{}").await;
            assert_eq!(whole.end().await.0, heard, "what is there at once needs no room");
        }
        drop(begun);
        let mut status = 429;
        while status == 429 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            status = empty(&one).await;
        }
        assert_eq!(status, heard, "what is given up is counted no more");
    }
}

#[tokio::test]
async fn unfinished_requests_delay_only_unauthenticated_clients() {
    const LONGEST: usize = 1024 * 1024;
    let g = spawn_gateway().await;
    let (post, nobody) = ("POST /v1/interrupts?source=somebody", "Content-Type: application/json");
    let from = async |address: &str| {
        let mut one = PartialRequest::so_long_from(address, &g, post, nobody, 2).await;
        one.rest = "{}".to_owned();
        one.end().await.0
    };
    let mut begun = Vec::new();
    for address in ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"] {
        for _ in 0..16 {
            begun.push(PartialRequest::so_long_from(address, &g, post, nobody, LONGEST).await);
        }
        all_are_begun(&g).await;
        assert_eq!(from(address).await, 429);
        assert_eq!(from("127.0.0.6").await, if begun.len() < 64 { 401 } else { 429 }, "{} have begun", begun.len());
    }
    assert_eq!(
        PartialRequest::of(&g, "POST /v1/threads", &bearer(&g.host), "{}").await.end().await.0,
        400,
        "who is known is heard"
    );
}
