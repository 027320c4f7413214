//! Tests hostile text outside of screens: in folded lines, in the exported log and in the output of the command line.

use super::*;

#[tokio::test]
async fn long_value_is_folded_and_complete() {
    let g = spawn_with_policy(POLICY).await;
    let made =
        g.post("/v1/threads", &g.host, json!({"flow": "payments", "thread": "long", "state": {"target_user_id": 1}}));
    let head = made.await.expect(201)["transition"].clone();
    let long = format!("{}the end", "0123456789".repeat(10_000));
    let body = json!({"node": "planner", "parent": head, "patch": {"target_user_id": 2, "memo": long}});
    let held = g.post("/v1/threads/long/transitions", &g.planner, body).await.expect(202);
    let alice = SessionUser::new(&g, &g.alice.id, PersonRole::Reviewer).await;
    let review = format!("/reviews/{}", review_of(&held));
    let folded = |page: &str, at: &str| {
        assert!(page.contains("Show all 100,009 characters"), "{at}");
        let whole =
            page.split("class=\"fold-all\" data-whole>").any(|it| it.starts_with(&format!("&#34;{long}&#34;<")));
        assert!(whole, "{at}: not all of it is there");
    };
    folded(&alice.get(&review).await.1, "the review");
    assert!(alice.get("/").await.1.contains("a text of 100,009 characters"), "a list tells how long it is");
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    folded(&alice.get("/threads/long/versions/1").await.1, "the version");
    folded(&alice.get("/threads/long/compare?from=0&to=1").await.1, "the comparison");
}

#[tokio::test]
async fn exported_log_is_equal_json_without_terminal_escapes() {
    let g = spawn_with_policy(POLICY).await;
    let gus = admin(&g).await;
    let gus = SessionUser::new(&g, &gus.id, PersonRole::Admin).await;
    for (number, hostile) in HOSTILE.iter().enumerate() {
        write(&g, &format!("order-{number}"), &format!("{MARK} {}", hostile.text)).await;
    }
    while g.service.log.sequence().await.unwrap() > 0 {}
    let file = gus.get("/log.jsonl").await.1;
    let mut reasons = BTreeSet::new();
    for line in file.lines() {
        assert!(!inert(line).iter().any(|it| matches!(it, TextSegment::Escape(_))), "{line:?}");
        // No line begins with a formula for a spreadsheet that opens the file.
        assert!(line.starts_with('{'), "{line}");
        let event: Value = serde_json::from_str(line).unwrap();
        reasons.extend(event["data"]["reason"].as_str().map(str::to_owned));
    }
    for hostile in HOSTILE {
        assert!(
            reasons.contains(&format!("{MARK} {}", hostile.text)),
            "{}: read back, it is what was said",
            hostile.name
        );
    }
}

#[tokio::test]
async fn output_of_the_command_line_has_no_terminal_escapes() {
    let g = spawn_with_policy(POLICY).await;
    let folder = g.folder.path().to_owned();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let all: String = HOSTILE.iter().map(|it| it.text).collect();
    write(&g, "order-1", &format!("{MARK} {all}")).await;
    g.pass(Duration::from_secs(1));
    let database = rusqlite::Connection::open(folder.join("countersign.db")).unwrap();
    let renamed = "UPDATE tokens SET id = id || ?1 WHERE id = (SELECT max(id) FROM tokens)";
    assert_eq!(database.execute(renamed, [all.replace('\0', "")]).unwrap(), 1);
    drop(database);
    let policy =
        file("policy.toml", &POLICY.replace("payee-7", "payee-7 \u{202e}").replace("\"memo\"]", "\"raw_text\"]"));
    let broken = file("broken.toml", "flow = \"\u{202e}\u{200b}<script>\"\nprotected = [\"\u{202e}\"\n");
    let state = file("state.json", &json!({"target_user_id": all, "memo": {(all.as_str()): all}}).to_string());
    let patch = file("patch.json", &json!({"target_user_id": 1, "memo": {(all.as_str()): 1}}).to_string());
    let data = folder.display().to_string();
    let lines: &[&[&str]] = &[
        &["audit", "--data", &data],
        &["policy", "what-if", &policy, "--state", &state, "--patch", &patch, "--node", "planner"],
        &["policy", "check", &broken],
        &["policy", "replay", &policy, "--data", &data],
        &["verify", "\u{1b}[2J\u{202e}", "--jwks", &state],
        &["verify", "x", "--jwks", "\u{1b}[2J\u{202e}.json"],
        &["thread", "close", "\u{1b}[2J\u{202e}", "--reason", "x", "--data", &data],
    ];
    let mut seen = 0;
    for line in lines {
        for form in [None, Some("--json")] {
            let ran = Command::new(PROGRAM).args(*line).args(form).output().unwrap();
            for (stream, bytes) in [("out", ran.stdout), ("err", ran.stderr)] {
                let text = String::from_utf8(bytes).unwrap();
                let acting = inert(&text).iter().any(|it| matches!(it, TextSegment::Escape(_)));
                assert!(!acting, "{line:?} {form:?} {stream}: {text:?}");
                seen += usize::from(text.contains("U+202E") || text.contains("\\u202e"));
            }
        }
    }
    assert!(seen >= 6, "what is hostile is told, by its number: {seen}");
}
