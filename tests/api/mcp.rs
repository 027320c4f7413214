//! Tests an agent's tools over the Model Context Protocol with the official client. The client connects over HTTP and
//! through `countersign mcp`, in both versions of the protocol.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use countersign_domain::reviews::VoteVerdict;
use serde_json::{Value, json};

use crate::gateway::{TestGateway, spawn_gateway};

/// A client that runs, with one of the ways to reach a gateway.
struct McpClient {
    child: Child,
    asks: ChildStdin,
    told: BufReader<ChildStdout>,
}

#[derive(Clone, Copy, Debug)]
enum McpTransport {
    Http,
    Stdio,
}

const WAYS: [(&str, McpTransport); 4] = [
    ("legacy", McpTransport::Http),
    ("auto", McpTransport::Http),
    ("legacy", McpTransport::Stdio),
    ("auto", McpTransport::Stdio),
];

impl McpClient {
    fn begin(g: &TestGateway, (mode, way): (&str, McpTransport), token: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client.py");
        let mut command = Command::new(crate::python::with("mcp"));
        command.arg(script).arg(mode).env("COUNTERSIGN_TOKEN", token);
        match way {
            McpTransport::Http => command.args(["http", &format!("{}/mcp", g.url)]),
            McpTransport::Stdio => {
                command.args(["stdio", env!("CARGO_BIN_EXE_countersign"), "mcp", "--gateway", &g.url])
            }
        };
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (asks, told) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, asks, told }
    }

    fn ask(&mut self, ask: &Value) -> Value {
        writeln!(self.asks, "{ask}").unwrap();
        let mut line = String::new();
        self.told.read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect("the client answers")
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask(&json!({"tool": tool, "arguments": arguments}))
    }

    /// Returns the result of a tool, and checks that its text form has the same content.
    fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let told = self.call(tool, arguments);
        assert_eq!(told["is_error"], false, "{told:#}");
        assert_eq!(serde_json::from_str::<Value>(told["text"][0].as_str().unwrap()).unwrap(), told["told"]);
        told["told"].clone()
    }

    /// Returns the error of a tool, and checks that it has a next step.
    fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let told = self.call(tool, arguments);
        assert_eq!(told["is_error"], true, "{told:#}");
        assert!(told["told"]["next_step"].as_str().unwrap().len() > 20, "{told:#}");
        told["told"].clone()
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Blocking work with a client, while the gateway answers on this runtime.
async fn with<T: Send + 'static>(
    client: McpClient,
    work: impl FnOnce(&mut McpClient) -> T + Send + 'static,
) -> (McpClient, T) {
    tokio::task::spawn_blocking(move || {
        let mut client = client;
        let done = work(&mut client);
        (client, done)
    })
    .await
    .unwrap()
}

async fn begun(g: &TestGateway, way: (&'static str, McpTransport), token: &str) -> McpClient {
    // The Python package may have to be installed first.
    tokio::task::spawn_blocking(|| crate::python::with("mcp")).await.unwrap();
    McpClient::begin(g, way, token)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_reads_proposes_waits_and_gets_the_decision() {
    let g = spawn_gateway().await;
    for way in WAYS {
        let thread = g.thread().await;
        let (name, head) = (thread["thread"].clone(), thread["transition"].clone());
        let client = begun(&g, way, &g.planner).await;
        let (client, held) = with(client, move |client| {
            let view = client.done("read_view", json!({"thread": name, "node": "planner"}));
            assert_eq!((&view["transition"], &view["version"]), (&head, &json!(0)), "{way:?}");
            assert_eq!(view["state"], json!({"requested_action": "none", "target_user_id": 17, "payment": {"amount": 10}}));
            let patch = json!({"target_user_id": 42});
            let ask = json!({"thread": name, "node": "planner", "parent": view["transition"], "patch": patch, "rationale": "as asked"});
            let held = client.done("propose", ask.clone());
            assert_eq!(held["outcome"], "held");
            assert_eq!(held["diff"], json!([{"pointer": "/target_user_id", "before": 17, "after": 42}]));
            assert_eq!(client.done("propose", ask)["transition"], held["transition"], "asked twice");
            let wait = json!({"transition": held["transition"], "seconds": 0});
            assert_eq!(client.done("wait_for_decision", wait), json!({"status": "held"}));
            let told = client.done("look_at_hold", json!({"transition": held["transition"]}));
            assert_eq!((&told["status"], &told["review"]["can_decide"]), (&json!("held"), &json!(false)));
            let next = json!({"thread": name, "node": "planner", "parent": view["transition"], "patch": {"requested_action": "refund"}});
            let refused = client.refused("propose", next);
            assert_eq!((&refused["code"], &refused["status"]), (&json!("thread_held"), &json!(409)));
            held
        })
        .await;
        let (id, asked) = (held["transition"].clone(), json!({"transition": held["transition"]}));
        let waiting = tokio::spawn(with(client, move |client| client.done("wait_for_decision", asked)));
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!waiting.is_finished(), "{way:?}: it waits for people");
        g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
        let (_, decision) = waiting.await.unwrap();
        assert_eq!((&decision["approved"], &decision["transition_digest"]), (&json!(true), &id), "{way:?}");
        // The decision has the same bytes as everywhere else, including the receipt: the writer is allowed with it.
        assert_eq!(decision, g.decision(&held).await.expect(200));
        g.verify(
            &thread["thread"],
            &id,
            &decision["receipt"],
            &format!("w-{way:?}").replace([' ', '(', ')', '"', ','], ""),
        )
        .await
        .expect(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_describe_their_arguments_and_none_approves() {
    let g = spawn_gateway().await;
    for way in WAYS {
        let client = begun(&g, way, &g.planner).await;
        let (_, (about, tools)) =
            with(client, |client| (client.ask(&json!({"ask": "about"})), client.ask(&json!({"ask": "tools"})))).await;
        assert_eq!(about["name"], "countersign");
        assert!(about["instructions"].as_str().unwrap().contains("No tool approves a change"));
        let is_new = about["protocol"].as_str().unwrap() >= "2026-07-28";
        assert_eq!(is_new, way.0 == "auto", "{way:?}: {}", about["protocol"]);
        let tools = tools["tools"].as_array().unwrap().clone();
        let names: Vec<_> = tools.iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["read_view", "propose", "look_at_hold", "wait_for_decision", "take_back"]);
        for tool in &tools {
            let schema = &tool["inputSchema"];
            assert_eq!(
                (&schema["type"], &schema["additionalProperties"]),
                (&json!("object"), &json!(false)),
                "{tool:#}"
            );
            for (member, it) in schema["properties"].as_object().unwrap() {
                assert!(!it["type"].is_array(), "{} {member} has several types", tool["name"]);
                assert!(it["description"].as_str().is_some_and(|it| !it.is_empty()), "{} {member}", tool["name"]);
            }
            let looks = ["read_view", "look_at_hold", "wait_for_decision"].contains(&tool["name"].as_str().unwrap());
            assert_eq!(tool["annotations"]["readOnlyHint"] == true, looks, "{tool:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusal_is_a_result_with_a_next_step() {
    let g = spawn_gateway().await;
    let thread = g.thread().await;
    let (name, head) = (thread["thread"].clone(), thread["transition"].clone());
    for way in WAYS {
        let (name, head) = (name.clone(), head.clone());
        let ask = move |patch: Value| json!({"thread": name, "node": "planner", "parent": head, "patch": patch});
        let client = begun(&g, way, &g.planner).await;
        with(client, move |client| {
            let policy = client.refused("propose", ask(json!({"execution_permissions": ["admin"]})));
            assert_eq!((&policy["code"], &policy["status"]), (&json!("rejected"), &json!(422)));
            assert_eq!(policy["errors"][0]["pointer"], "/execution_permissions/0");
            // A number that no double can represent is refused with its path, as an error of the tool.
            let number = client.refused("propose", ask(json!({"payment": {"amount": 12_345_678_901_234_567_890_u64}})));
            assert_eq!(number["code"], "number_not_exact");
            assert_eq!(number["errors"][0]["pointer"], "/patch/payment/amount");
            assert!(number["next_step"].as_str().unwrap().contains("as a string"));
            let mut unknown = ask(json!({}));
            unknown["approve"] = json!(true);
            assert_eq!(client.refused("propose", unknown)["code"], "malformed");
            assert_eq!(client.refused("read_view", json!({"thread": "none", "node": "planner"}))["code"], "not_found");
            let other = json!({"thread": ask(json!({}))["thread"], "node": "input_parser"});
            assert_eq!(client.refused("read_view", other)["code"], "forbidden");
            let mut stale = ask(json!({"requested_action": "refund"}));
            stale["parent"] = json!(format!("sha256:{}", "0".repeat(64)));
            let moved = client.refused("propose", stale);
            assert_eq!((&moved["code"], &moved["head"]["version"]), (&json!("head_moved"), &json!(0)));
            assert!(moved["next_step"].as_str().unwrap().contains("read_view"));
            let vote = client.call("vote", json!({"transition": "x", "verdict": "approve"}));
            assert!(vote["is_error"] == true || vote["failed"].is_string(), "{vote:#}");
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_cancels_its_proposal() {
    let g = spawn_gateway().await;
    let (thread, client) = (g.thread().await, begun(&g, WAYS[3], &g.planner).await);
    let held = g.held(&thread).await;
    let transition = held["transition"].clone();
    with(client, move |client| {
        let ask = json!({"transition": transition, "reason": "the user thought again"});
        assert_eq!(client.done("take_back", ask.clone()), json!({"transition": transition, "status": "cancelled"}));
        let decision = client.done("wait_for_decision", json!({"transition": transition}));
        assert_eq!(decision["decision"], "cancelled");
        assert_eq!(client.done("take_back", ask)["status"], "cancelled", "asked twice");
    })
    .await;
}

/// An agent cannot read or cancel another agent's transition. The error is the same as for an unknown transition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_has_no_tool_for_other_agents_transitions() {
    let g = spawn_gateway().await;
    let (thread, client) = (g.thread().await, begun(&g, WAYS[1], &g.parser).await);
    let held = g.held(&thread).await;
    let (transition, name) = (held["transition"].clone(), thread["thread"].clone());
    with(client, move |client| {
        let told = client.done("look_at_hold", json!({"transition": transition}));
        assert_eq!(told["diff"], json!([]), "it may read none of that");
        let ask = json!({"transition": transition, "reason": "mine now"});
        assert_eq!(client.refused("take_back", ask)["code"], "forbidden");
        let view = json!({"thread": name, "node": "planner"});
        assert_eq!(client.refused("read_view", view)["code"], "forbidden");
    })
    .await;
    assert_eq!(g.decision(&held).await.status, 202, "still held");
}

/// Every other role is refused before a message is read, and so is a client without a token.
#[tokio::test]
async fn only_agents_use_the_mcp_endpoint() {
    let g = spawn_gateway().await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for token in [&g.host, &g.writer, &g.admin, &g.auditor, &g.monitor] {
        assert_eq!(g.post("/mcp", token, message.clone()).await.code(), "forbidden");
    }
    let nobody = g.post("/mcp", "cs_nobody", message.clone()).await;
    assert_eq!((nobody.status, nobody.code()), (401, "unauthenticated"));
    for method in [reqwest::Method::GET, reqwest::Method::DELETE] {
        let other = g.http.request(method, format!("{}/mcp", g.url)).bearer_auth(&g.planner).send().await.unwrap();
        assert_eq!((other.status().as_u16(), other.headers()["allow"].to_str().unwrap()), (405, "POST"));
    }
}

/// A page of another site could reach a gateway on localhost by DNS rebinding. It cannot change its `Origin`.
#[tokio::test]
async fn page_of_another_site_is_refused() {
    let g = spawn_gateway().await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let post = async |origins: &[&str]| {
        let mut request = g.http.post(format!("{}/mcp", g.url)).bearer_auth(&g.planner).json(&message);
        for origin in origins {
            request = request.header("origin", *origin);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap()["code"].clone())
    };
    let local = ["http://localhost:6274", "https://localhost", "http://127.0.0.1:1", "http://[::1]:80"];
    for own in [vec![], vec![g.url.as_str()]].into_iter().chain(local.map(|it| vec![it])) {
        assert_eq!(post(&own).await, (200, Value::Null), "{own:?}");
    }
    let others = [
        "http://evil.example",
        "null",
        "",
        "localhost",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
    ];
    for other in others {
        assert_eq!(post(&[other]).await, (403, json!("forbidden")), "{other}");
        assert_eq!(post(&[&g.url, other]).await, (403, json!("forbidden")), "{other}");
    }
}

/// Two parsers of one message must read the same content, so duplicate keys are refused before any other parser reads
/// it.
#[tokio::test]
async fn message_is_parsed_strictly_before_the_sdk_reads_it() {
    let g = spawn_gateway().await;
    let thread = g.thread().await;
    let post = |body: String| {
        let request = g.http.post(format!("{}/mcp", g.url)).bearer_auth(&g.planner).body(body);
        let accept = "application/json, text/event-stream";
        async move {
            let request = request.header("content-type", "application/json").header("accept", accept);
            let answer = request.send().await.unwrap();
            (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
        }
    };
    let call = |patch: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{{"name":"propose","arguments":{{"thread":{},"node":"planner","parent":{},"patch":{patch}}}}}}}"#,
            thread["thread"], thread["transition"]
        )
    };
    let (status, twice) = post(call(r#"{"requested_action":"refund","requested_action":"none"}"#)).await;
    assert_eq!((status, &twice["id"], &twice["result"]["isError"]), (200, &json!("a"), &json!(true)), "{twice:#}");
    let told = &twice["result"]["structuredContent"];
    assert_eq!(
        (&told["code"], &told["errors"][0]["pointer"]),
        (&json!("duplicate_key"), &json!("/patch/requested_action"))
    );
    let (status, _) = post(call(r#"{"requested_action":"refund"}"#)).await;
    assert_eq!(status, 200, "the same, said once");
    // Outside of a tool's arguments there is no tool to return the error, so the HTTP response has it.
    for body in [r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}"#, "{", ""] {
        let (status, told) = post(body.to_owned()).await;
        assert_eq!(status, 400, "{body}: {told:#}");
        assert!(told["code"] == "duplicate_key" || told["code"] == "syntax" || told["code"] == "empty", "{told:#}");
    }
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","x":"{}"}}"#, "x".repeat(1024 * 1024));
    assert_eq!(post(long).await.0, 413);
}
