//! The pipe against a scripted server, with responses that no gateway sends and lines that no client sends.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::*;

type ReceivedLines = Arc<Mutex<Vec<String>>>;

/// Answers each post by its content, and stores the requests.
async fn peer(answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> (SocketAddr, ReceivedLines) {
    let (listener, heard) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), ReceivedLines::default());
    let (address, answer, kept) = (listener.local_addr().unwrap(), Arc::new(answer), Arc::clone(&heard));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (answer, heard) = (Arc::clone(&answer), Arc::clone(&kept));
            tokio::spawn(async move {
                let (mut stream, text) = read_post(stream).await;
                heard.lock().unwrap().push(text.clone());
                match answer(&text) {
                    Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
                    // The server never responds, so the client times out or cancels.
                    None => std::future::pending().await,
                }
            });
        }
    });
    (address, heard)
}

async fn read_post(mut stream: TcpStream) -> (TcpStream, String) {
    let mut text = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).await.unwrap();
        text.extend_from_slice(&piece[..length]);
        let said = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = said.split_once("\r\n\r\n") else { continue };
        let wanted = head.lines().find_map(|it| it.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() >= wanted.unwrap_or(0) {
            return (stream, said);
        }
    }
}

fn http(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

/// Returns the output for these lines.
async fn piped(address: SocketAddr, lines: &str) -> Vec<Value> {
    let address = Url::parse(&format!("http://{address}/mcp")).unwrap();
    let pipe = McpPipe::new(address, &Secret::new("cs_secret".to_owned())).unwrap();
    let mut out = Vec::new();
    pipe.run(BufReader::new(lines.as_bytes()), &mut out).await.unwrap();
    String::from_utf8(out).unwrap().lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[tokio::test]
async fn each_line_is_posted_unchanged_with_the_negotiated_version() {
    let (address, heard) = peer(|post| {
        Some(match post.contains("initialize\"") {
            true => http(
                "200 OK",
                "application/json",
                "{\"jsonrpc\":\"2.0\",\"id\":0,\n\"result\":{\"protocolVersion\":\"2025-11-25\"}}",
            ),
            false if post.contains("notifications/") => http("202 Accepted", "text/plain", ""),
            false => http("200 OK", "application/json", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        })
    })
    .await;
    let told = piped(
        address,
        concat!(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#, "\n\n",
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "\n",
            r#"{"jsonrpc":"2.0","id":1, "method":"tools/call","params":{"name":"propose","arguments":{"a":1,"a":2.50}}}"#,
        ),
    )
    .await;
    assert_eq!(told.len(), 2, "a notification has no answer, an empty line is nothing: {told:?}");
    assert_eq!(told[0]["result"]["protocolVersion"], "2025-11-25");
    let heard = heard.lock().unwrap();
    let call = heard.iter().find(|it| it.contains("tools/call")).unwrap();
    assert!(call.ends_with(
        r#"{"jsonrpc":"2.0","id":1, "method":"tools/call","params":{"name":"propose","arguments":{"a":1,"a":2.50}}}"#
    ));
    for header in [
        "authorization: Bearer cs_secret",
        "mcp-protocol-version: 2025-11-25",
        "mcp-method: tools/call",
        "mcp-name: propose",
    ] {
        assert!(call.contains(&format!("\r\n{header}\r\n")), "{header} in {call}");
    }
    assert!(!heard[0].contains("mcp-protocol-version"), "nothing is agreed yet");
}

#[tokio::test]
async fn response_of_another_server_is_an_error() {
    for (answer, code, words) in [
        (
            http("401 Unauthorized", "application/problem+json", r#"{"code":"unauthenticated","detail":"sign in"}"#),
            json!("unauthenticated"),
            "refused the request: sign in",
        ),
        (http("200 OK", "text/html", "<h1>Welcome</h1>"), json!(null), "no gateway"),
        (http("404 Not Found", "text/html", "nothing"), json!(null), "no gateway"),
        (
            "HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.1:1/mcp\r\ncontent-length: 0\r\n\r\n".to_owned(),
            json!(null),
            "no gateway",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_owned(), json!(null), "broke"),
    ] {
        let (address, heard) = peer(move |_| Some(answer.clone())).await;
        let lines = "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/list\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/a\"}\n";
        let told = piped(address, lines).await;
        assert_eq!(told.len(), 1, "only what was asked is answered: {told:?}");
        assert_eq!((&told[0]["id"], &told[0]["error"]["data"]["code"]), (&json!("x"), &code));
        assert!(told[0]["error"]["message"].as_str().unwrap().contains(words), "{words}: {}", told[0]);
        assert!(!told[0].to_string().contains("cs_secret"));
        assert_eq!(heard.lock().unwrap().len(), 2, "no request is repeated");
    }
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let told = piped(nobody, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    assert!(told[0]["error"]["message"].as_str().unwrap().contains("cannot be reached"), "{told:?}");
}

#[tokio::test]
async fn invalid_line_gets_an_error_and_the_next_line_is_read() {
    let (address, heard) =
        peer(|_| Some(http("200 OK", "application/json", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#))).await;
    let long = "x".repeat(2 * LINE_BYTES_MAX);
    let lines = format!("no json\n{long}\n{}\n", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let told = piped(address, &lines).await;
    let codes: Vec<_> = told.iter().map(|it| it["error"]["code"].clone()).collect();
    assert_eq!(codes, [json!(-32700), json!(-32700), json!(null)], "{told:?}");
    assert!(told[1]["error"]["message"].as_str().unwrap().contains("too long"));
    assert_eq!(heard.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn cancelled_request_is_dropped_and_blocks_no_other() {
    let (address, _) = peer(|post| match post {
        _ if post.contains("wait_for_decision") => None,
        _ if post.contains("notifications/") => Some(http("202 Accepted", "text/plain", "")),
        _ => Some(http("200 OK", "application/json", r#"{"jsonrpc":"2.0","id":2,"result":{}}"#)),
    })
    .await;
    // If the first request were not cancelled, the test would run into its time limit.
    let lines = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait_for_decision","arguments":{}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        "\n",
    );
    assert_eq!(piped(address, lines).await, [json!({"jsonrpc": "2.0", "id": 2, "result": {}})]);
}
