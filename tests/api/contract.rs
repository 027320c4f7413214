//! Tests the API description against a real gateway with schemathesis: every check, with the token of every role.

use std::path::Path;
use std::process::Command;

use countersign_web::auth::permissions::TABLE;
use reqwest::Method;
use serde_json::json;

use crate::gateway::{TestGateway, spawn_gateway};

/// Runs it on these calls. Returns its output if it has a finding.
fn finds(url: &str, token: &str, calls: &[String]) -> Option<String> {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis/schemathesis.toml");
    let python = crate::python::with("schemathesis");
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(python.with_file_name("schemathesis"));
    command.current_dir(folder.path()).arg("--config-file").arg(config);
    command.args(["run", &format!("{url}/openapi.json"), "--url", url, "--seed", "17", "--workers", "1"]);
    command.args(["--no-color", "--header", &format!("Authorization: Bearer {token}")]);
    for call in calls {
        command.args(["--include-name", call]);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (!output.status.success()).then_some(said)
}

fn tokens(g: &TestGateway) -> [(&'static str, &str); 6] {
    [
        ("host", &g.host),
        ("agent", &g.planner),
        ("writer", &g.writer),
        ("auditor", &g.auditor),
        ("admin", &g.admin),
        ("monitor", &g.monitor),
    ]
}

/// Each role's token makes the calls that the role may make. The monitor's token also makes the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing() {
    let g = spawn_gateway().await;
    g.thread().await;
    let calls_of = |role: &str| {
        let rules = TABLE.iter().filter(|it| it.machines.iter().any(|it| it.as_str() == role));
        rules.map(|it| format!("{} {}", it.method, it.route)).collect::<Vec<_>>()
    };
    for (role, token) in tokens(&g) {
        let mut calls = calls_of(role);
        if role == "monitor" {
            let others = TABLE.iter().filter(|it| !it.machines.is_empty() && it.route != "/metrics");
            calls.extend(others.map(|it| format!("{} {}", it.method, it.route)));
            calls.extend(["/.well-known/jwks.json", "/livez", "/readyz"].map(|it| format!("GET {it}")));
        }
        let (url, token) = (g.url.clone(), token.to_owned());
        let found = tokio::task::spawn_blocking(move || finds(&url, &token, &calls)).await.unwrap();
        assert!(found.is_none(), "as {role}:\n{}", found.unwrap());
    }
}

#[tokio::test]
async fn wrong_method_gets_the_allowed_methods() {
    let g = spawn_gateway().await;
    for (method, path, allowed) in [
        (Method::DELETE, "/v1/threads", "POST"),
        (Method::PUT, "/v1/endpoints/e", "GET, PATCH, DELETE"),
        (Method::POST, "/livez", "GET"),
        (Method::TRACE, "/v1/verify", "POST"),
        (Method::POST, "/v1/threads/t/episode/state.json", "GET"),
    ] {
        let response = g.http.request(method.clone(), format!("{}{path}", g.url)).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 405, "{method} {path}");
        assert_eq!(response.headers()["allow"], allowed, "{method} {path}");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        assert_eq!(response.json::<serde_json::Value>().await.unwrap()["code"], json!("method_not_allowed"));
    }
    let nothing = g.http.post(format!("{}/v1/nothing", g.url)).send().await.unwrap();
    assert_eq!(nothing.status().as_u16(), 404);
}
