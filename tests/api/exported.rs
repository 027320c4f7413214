//! Tests the log that an auditor saves of a running gateway, and the command that audits it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::gateway::TestGateway;

/// The published keys, where the command looks for them.
pub async fn save_keys(g: &TestGateway, folder: &Path) {
    let keys = g.http.get(format!("{}/.well-known/jwks.json", g.url)).send().await.unwrap().text().await.unwrap();
    std::fs::write(folder.join("jwks.json"), keys).unwrap();
}

/// Saves each page of a chain from this version on as a file.
pub async fn save_chain(g: &TestGateway, folder: &Path, thread: &Value, from: u64, page_size: u64) {
    let id = thread.as_str().unwrap();
    let mut next = Some(from);
    while let Some(token) = next {
        let path = format!("/v1/threads/{id}/chain?page_size={page_size}&page_token={token}");
        let page = g.get(&path, &g.auditor).await.expect(200);
        std::fs::write(folder.join(format!("{id}-{token}.json")), page.to_string()).unwrap();
        next = page["next_page_token"].as_u64();
    }
}

/// Returns the exit code and the output.
pub async fn audited(folder: &Path) -> (i32, Value) {
    let folder = folder.to_owned();
    tokio::task::spawn_blocking(move || {
        let mut line = Command::new(env!("CARGO_BIN_EXE_countersign"));
        let done = line.args(["--json", "audit", "--export"]).arg(folder).output().unwrap();
        let told = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
        (done.status.code().unwrap(), told)
    })
    .await
    .unwrap()
}
