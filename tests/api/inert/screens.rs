//! Tests every screen in the table of routes, and the pages that their forms lead to.

use super::*;

/// The page of an endpoint, and of one of its deliveries.
struct DeliveryPaths {
    endpoint: String,
    delivery: String,
}

/// Returns whether the request is complete to the end of its body.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    text.split_once("\r\n\r\n").is_some_and(|it| serde_json::from_str::<Value>(it.1).is_ok())
}

/// Adds an endpoint for each hostile text. The text is in its name and in its receiver's answers.
async fn told(g: &TestGateway) -> Vec<DeliveryPaths> {
    let mut endpoints = Vec::new();
    for hostile in HOSTILE {
        let receiver = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", receiver.local_addr().unwrap());
        let said = format!("{MARK} {}", hostile.text);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = receiver.accept().await {
                let head = format!("HTTP/1.1 500 X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", said.len());
                // The receiver reads everything, since closing early may discard the answer.
                let mut seen = Vec::new();
                while !is_whole(&seen) && stream.read_buf(&mut seen).await.is_ok_and(|it| it > 0) {}
                stream.write_all((head + &said).as_bytes()).await.unwrap();
            }
        });
        let name: String = format!("{MARK} {}", hostile.text).chars().filter(|it| !it.is_control()).take(64).collect();
        let new = json!({"name": name, "url": url, "events": ["policy.activated"], "after": 0});
        endpoints.push(g.post("/v1/endpoints", &g.admin, new).await.expect(201)["id"].as_str().unwrap().to_owned());
    }
    while g.service.log.sequence().await.unwrap() > 0 {}
    deliver::run_once(&g.service).await.unwrap();
    let mut told = Vec::new();
    for id in endpoints {
        let sent = g.get(&format!("/v1/endpoints/{id}/deliveries"), &g.auditor).await.expect(200);
        let endpoint = format!("/endpoints/{id}");
        told.push(DeliveryPaths {
            delivery: format!("{endpoint}/deliveries/{}", sent["deliveries"][0]["delivery"]),
            endpoint,
        });
    }
    told
}

/// Returns every address that people may open, with its parameters filled in. The stream of the log is left out, since
/// it sends no text of users.
async fn addresses(
    g: &TestGateway,
    written: &[HostileText],
    (amendment, interrupt, told): (&str, &str, &[DeliveryPaths]),
) -> Vec<(&'static str, String)> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    while g.service.log.count_events().await.unwrap() > 0 {}
    let (events, _) = g.service.log.events_after(0, None, 1_000).await.unwrap();
    let mut all = Vec::new();
    for rule in TABLE.iter().filter(|it| it.method == "GET" && !it.people.is_empty() && it.route != "/live") {
        match rule.route {
            "/log/{event}" => all.extend(events.iter().map(|it| (rule.route, format!("/log/{}", it.event.id)))),
            "/people/{account}" => all.push((rule.route, format!("/people/{}", g.alice.id))),
            // The route returns a file whose bytes match its manifest. The file is never shown as a page.
            "/threads/{thread}/episode/{artefact}" => {}
            "/interrupts/{interrupt}" => all.push((rule.route, format!("/interrupts/{interrupt}"))),
            "/endpoints/{endpoint}" => all.extend(told.iter().map(|it| (rule.route, it.endpoint.clone()))),
            "/endpoints/{endpoint}/deliveries/{delivery}" => {
                all.extend(told.iter().map(|it| (rule.route, it.delivery.clone())));
            }
            "/amendments/{amendment}" => all.push((rule.route, format!("/amendments/{amendment}"))),
            route => {
                for it in written {
                    let path = route.replace("{thread}", &it.thread);
                    let path = if route.ends_with("/compare") { format!("{path}?from=0&to=2") } else { path };
                    let versions = if path.contains("{version}") { 0..=2 } else { 0..=0 };
                    for path in versions.map(|version| path.replace("{version}", &version.to_string())) {
                        all.extend(it.reviews.iter().map(|review| (route, path.replace("{review}", review))));
                    }
                }
            }
        }
    }
    all.extend(written.iter().map(|it| (AN_IMPORT, format!("/threads/{}/episode", it.imported))));
    all.extend([("/", "/?show=everything".to_owned()), ("/", "/?show=past".to_owned())]);
    all.extend([("/insight", "/insight?span=24h".to_owned()), ("/insight", "/insight?span=1h".to_owned())]);
    for it in &all {
        assert!(!it.1.contains('{'), "{}: it is not known what stands there", it.1);
    }
    all.sort();
    all.dedup();
    all
}

/// Checks that no text on the page acts, and that the hostile text is visible.
fn harmless(page: &str, at: &str) {
    let mut before = "";
    for segment in inert(page) {
        match segment {
            TextSegment::Text(text) => before = text,
            TextSegment::Escape(it) => panic!("{at}: {it:?} stands as itself after {:?}", last(before)),
        }
    }
    // Some paths download a file, which is never shown as a page.
    let is_file = at == "/log.jsonl" || at.ends_with("/arguments");
    for acting in ACTING.iter().filter(|_| !is_file) {
        assert!(!page.contains(acting), "{at}: {acting}");
    }
}

fn last(text: &str) -> &str {
    let start = text.char_indices().rev().nth(300).map_or(0, |it| it.0);
    &text[start..]
}

/// The same route as of a run of ours, and another page.
const AN_IMPORT: &str = "/threads/{thread}/episode, imported";

/// The routes that must show every kind of hostile text.
const SHOWN_ON: &[&str] = &[
    "/",
    "/amendments/{amendment}",
    "/interrupts/{interrupt}",
    "/endpoints/{endpoint}/deliveries/{delivery}",
    "/log.jsonl",
    "/log/{event}",
    "/rejections",
    "/reviews/{review}",
    "/reviews/{review}/edit",
    "/threads",
    "/threads/{thread}",
    "/threads/{thread}/compare",
    "/threads/{thread}/episode",
    AN_IMPORT,
    "/imports",
    "/threads/{thread}/versions/{version}",
];

#[tokio::test]
async fn hostile_text_is_sanitized_and_visible_on_every_screen() {
    let g = spawn_with_policy(POLICY).await;
    let gus = admin(&g).await;
    let all: String = HOSTILE.iter().map(|it| it.text).collect();
    let amendment = amended(&g, &format!("{MARK} {all}")).await;
    let interrupt = interrupted(&g, &format!("{MARK} {all}")).await;
    let mut written = Vec::new();
    for (number, hostile) in HOSTILE.iter().enumerate() {
        written.push(write(&g, &format!("order-{number}"), &format!("{MARK} {}", hostile.text)).await);
    }
    let people = [
        SessionUser::new(&g, &g.alice.id, PersonRole::Reviewer).await,
        SessionUser::new(&g, &gus.id, PersonRole::Admin).await,
    ];
    let mut shown: BTreeSet<(&str, &str)> = BTreeSet::new();
    let told = told(&g).await;
    for (route, path) in addresses(&g, &written, (&amendment, &interrupt, &told)).await {
        let (mut status, mut page) = people[0].get(&path).await;
        // Some pages are for administrators only, and sign-ins are not shown to reviewers.
        if matches!(status, 403 | 404) {
            (status, page) = people[1].get(&path).await;
        }
        assert!(matches!(status, 200 | 303), "{path}: {status}");
        harmless(&page, &path);
        let seen = HOSTILE.iter().filter(|it| it.shown.iter().any(|it| page.contains(it)));
        shown.extend(seen.map(|it| (it.name, route)));
    }
    for hostile in HOSTILE {
        let missing = SHOWN_ON.iter().find(|it| !shown.contains(&(hostile.name, **it)));
        assert_eq!(missing, None, "{} is not to be seen there", hostile.name);
    }
    let alike = HOSTILE.iter().position(|it| it.name == "look-alikes").unwrap();
    let review = format!("/reviews/{}", review_of(&written[alike].open));
    let thread = format!("/threads/order-{alike}");
    let paths = [
        "/".to_owned(),
        "/threads".to_owned(),
        "/rejections".to_owned(),
        format!("{thread}/versions/1"),
        format!("{thread}/compare?from=0&to=1"),
        thread,
        review,
    ];
    for path in paths {
        assert!(people[0].get(&path).await.1.contains("mixes Latin and Cyrillic letters"), "{path}");
    }
    for (written, hostile) in written.iter().zip(HOSTILE) {
        forms(&people, written, hostile).await;
    }
}

/// Checks the pages that a form leads to and that repeat text of others. A form shows a person's own input again
/// exactly as it was typed.
async fn forms(people: &[SessionUser<'_>; 2], written: &HostileText, hostile: &HostileTextKind) {
    let [alice, gus] = people;
    assert_eq!(gus.role, PersonRole::Admin);
    let review = format!("/reviews/{}", review_of(&written.open));
    let page = alice.get(&review).await.1;
    let names = ["csrf", "digest", "nonce", "stage", "browser_check"];
    let fields: Vec<(&str, String)> = names.iter().map(|it| (*it, hidden(&page, it))).collect();
    let mut fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    fields.push(("verdict", "approve"));
    let page = alice.post(&format!("{review}/decision"), &fields).await;
    assert!(page.contains("Confirm"), "{page}");
    harmless(&page, "the confirmation");
    let csrf = fields[0].1;
    let page = alice.post("/votes", &[("csrf", csrf), ("review", &review_of(&written.open))]).await;
    harmless(&page, "several at once");
    let page = alice.post(&format!("{review}/edit"), &[("csrf", csrf), ("digest", fields[1].1), ("why", "")]).await;
    assert!(page.contains("Nothing was changed"), "{page}");
    harmless(&page, "an edit that is refused");
    let own = hidden(&gus.get("/replays").await.1, "csrf");
    let page = gus
        .post(
            "/replays",
            &[("csrf", &own), ("flow", "payments"), ("policy", &POLICY.replace("\"memo\"]", "\"raw_text\"]"))],
        )
        .await;
    assert!(page.contains("would"), "{page}");
    harmless(&page, "a replay");
    let state = json!({"target_user_id": hostile.text, "memo": {(hostile.text): hostile.text}}).to_string();
    let patch = json!({"target_user_id": 1, "memo": {"a": hostile.text}}).to_string();
    let page = alice
        .post(
            "/what-if",
            &[
                ("csrf", csrf),
                ("flow", "payments"),
                ("node", "planner"),
                ("state", &state),
                ("patch", &patch),
                ("format", "merge"),
            ],
        )
        .await;
    assert!(page.contains("The policy would hold it for approval."), "{page}");
    harmless(&untyped(&page), "what if");
}

/// Returns the page without the input that was typed into it.
fn untyped(page: &str) -> String {
    page.split("<textarea").map(|it| it.split_once("</textarea>").map_or(it, |it| it.1)).collect()
}

/// Opens an interrupt from a host application with the text in every field of the host and of a voter. Also checks the
/// confirmation of a vote.
async fn interrupted(g: &TestGateway, said: &str) -> String {
    let body = json!({
        "kind": "state_transition_review", "transition_digest": "d".repeat(64), "interrupt_id": "7652e9dc",
        "changed_keys": [said, "memo"], "redacted_diff": {(said): said, "memo": [said, {"before": 1, "after": said}]},
        "thread_ref": said.chars().take(150).collect::<String>(), "title": said.chars().take(150).collect::<String>(),
        "reason": said,
    });
    let asked = g.post("/v1/interrupts", &g.host, body).await.expect(202);
    let path = format!("/interrupts/{}", asked["id"].as_str().unwrap());
    let bob = SessionUser::new(g, &g.bob.id, PersonRole::Reviewer).await;
    let page = bob.get(&path).await.1;
    let names = ["csrf", "digest", "nonce", "stage"];
    let fields: Vec<(&str, String)> = names.iter().map(|it| (*it, hidden(&page, it))).collect();
    let mut fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    fields.push(("verdict", "approve"));
    let page = bob.post(&format!("{path}/decision"), &fields).await;
    assert!(page.contains("Confirm"), "{page}");
    harmless(&page, "the confirmation of what a host asks");
    let digest = json!({"transition": asked["digest"]});
    let vote =
        countersign_domain::reviews::Ballot { comment: Some(said.to_owned()), ..ballot(&digest, VoteVerdict::Deny) };
    let id = asked["id"].as_str().unwrap().try_into().unwrap();
    g.service.interrupts.vote_on_interrupt(&g.alice.id, &id, &vote, None).await.unwrap();
    id.to_string()
}

/// Opens a policy change request with the text in every field of its voters.
async fn amended(g: &TestGateway, said: &str) -> String {
    let guarded = |ttl: &str| {
        let text = POLICY.replacen("\"payments\"", "\"amended\"", 1);
        source(&format!("{text}\n[approval.policy]\ngroups = [\"reviewers\"]\nttl = \"{ttl}\"\n"))
    };
    let by = countersign_domain::primitives::id::PrincipalId::try_from("tests").unwrap();
    g.service.policy_changes.activate_policy(&by, None, guarded("1h"), BTreeSet::new()).await.unwrap();
    let ActivationOutcome::Waiting(asked) =
        g.service.policy_changes.activate_policy(&by, None, guarded("2h"), BTreeSet::new()).await.unwrap()
    else {
        panic!("it is active")
    };
    let digest = json!({"transition": asked.digest});
    let vote =
        countersign_domain::reviews::Ballot { comment: Some(said.to_owned()), ..ballot(&digest, VoteVerdict::Deny) };
    g.service.policy_changes.vote_on_policy_change(&g.alice.id, &asked.id, &vote, None).await.unwrap();
    asked.id.to_string()
}
