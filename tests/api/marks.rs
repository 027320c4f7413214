//! Tests the marks of look-alike texts: in responses by the values that the response shows, and on a review by the
//! values that its reader may see.

use serde_json::{Value, json};

use crate::gateway::{TestGateway, spawn_with_policy};

const POLICY: &str = r#"
flow = "payments"
trust_initial = true
protected = ["payee"]

[nodes.planner]
reads = ["payee"]
writes = ["payee"]

[nodes.database_writer]
reads = ["payee"]
writes = ["result_ref"]
writer = true

[approval]
ttl = "24h"
receipt_ttl = "10m"
write_lease = "30s"

[[approval.stages]]
groups = ["reviewers"]
need = 1

[redaction]
hide = ["private"]
"#;

/// Proposes another payee than `Acme`. Returns the response and the page of the review.
async fn proposed(g: &TestGateway, payee: &str) -> (Value, String) {
    let state = json!({"payee": "Acme", "vendors": [{"payee": "Globex Ltd"}], "private": {"payee": "Initech"}});
    let thread = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
    let patch = json!({"payee": payee});
    let held = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(202);
    let (_, secret) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let url = format!("{}/reviews/{}", g.url, held["review"]["id"].as_str().unwrap());
    let page = g.http.get(url).header("cookie", format!("countersign={secret}")).send().await.unwrap();
    (held, page.text().await.unwrap())
}

fn codes(answer: &Value) -> Vec<&str> {
    let marks = answer["marks"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(marks.iter().all(|it| it["pointer"] == "/payee" && it["of"] == "value"), "{marks:?}");
    marks.iter().map(|it| it["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn look_alike_of_the_earlier_value_is_marked() {
    let g = spawn_with_policy(POLICY).await;
    for (payee, marks) in [
        ("\u{410}cme", ["mixed_scripts", "looks_like_known"].as_slice()),
        ("\u{1d400}cme", &["looks_like_ascii", "looks_like_known"]),
        ("Acrne", &["looks_like_known"]),
        ("Асме", &["new_script"]),
        ("Ac․me", &["looks_like_ascii"]),
        ("1\u{41e}\u{41e}", &["looks_like_ascii", "new_script"]),
        ("Other", &[]),
        ("Zo\u{eb}", &[]),
    ] {
        let (held, page) = proposed(&g, payee).await;
        assert_eq!(codes(&held), marks, "{payee}");
        for token in [&g.auditor, &g.host, &g.planner] {
            let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
            assert_eq!(codes(&g.get(&path, token).await.expect(200)), marks, "{payee}");
        }
        let known = marks.contains(&"looks_like_known");
        assert_eq!(page.contains("looks like \u{201c}Acme\u{201d}"), known, "{payee}: {page}");
        assert_eq!(page.contains("class=\"flag\""), !marks.is_empty(), "{payee}: {page}");
    }
}

#[tokio::test]
async fn review_compares_with_the_same_key_and_no_redacted_value() {
    let g = spawn_with_policy(POLICY).await;
    let (held, page) = proposed(&g, "G1obex Ltd").await;
    assert!(page.contains("looks like \u{201c}Globex Ltd\u{201d}"), "{page}");
    assert_eq!(codes(&held), [""; 0], "the agent may not read that");
    let (held, page) = proposed(&g, "1nitech").await;
    assert!(!page.contains("Initech") && !page.contains("class=\"flag\""), "{page}");
    assert_eq!(codes(&held), [""; 0]);
}
