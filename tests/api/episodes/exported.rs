//! Tests runs on the command line.

use super::*;

/// Runs the program on the gateway's own folder.
pub fn program(g: &TestGateway, arguments: &[&str]) -> (String, Option<i32>) {
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(arguments)
        .arg("--data")
        .arg(g.folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap();
    (said, ran.status.code())
}

#[tokio::test]
async fn exported_run_is_complete_and_verifies() {
    let scene = ApiScenario::on_sqlite(crate::gateway::POLICY).await;
    let g = &scene.gateway;
    let thread = begun(g).await;
    add(g, &thread, "plan", json!({"steps": []})).await.expect(201);
    add(g, &thread, "terminate", json!({"status": "ok", "message": "Done."})).await.expect(201);
    let around = tempfile::tempdir().unwrap();
    let (out, jwks) = (around.path().join("run"), around.path().join("jwks.json"));
    let keys = g.get("/.well-known/jwks.json", &g.host).await.expect(200);
    std::fs::write(&jwks, keys.to_string()).unwrap();
    let (name, path) = (thread["thread"].as_str().unwrap(), out.to_str().unwrap());
    let (said, code) = program(g, &["episode", "export", name, "--out", path]);
    assert_eq!(code, Some(0), "{said}");
    let (said, code) = program(g, &["episode", "verify", path, "--jwks", jwks.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("checked   files, signature, events"), "{said}");
    assert!(said.ends_with("\nverified: these are the run's files, and they belong together\n"), "{said}");
    for (file, content) in folder(g, &thread, &g.host).await.entries {
        assert_eq!(FileContent::Bytes(std::fs::read(out.join(&file)).unwrap()), content, "{file}");
    }
    let (said, code) = program(g, &["episode", "export", name, "--out", path]);
    assert_eq!(code, Some(2), "what is there is not written over: {said}");
    let (said, code) = program(g, &["episode", "export", "no-such-thread", "--out", "unused"]);
    assert_eq!(code, Some(1), "{said}");
    let (said, code) = program(g, &["episode", "show", path]);
    assert!(code == Some(0) && said.contains("Change an address") && said.contains("status   ok"), "{said}");
}
