//! Whatever agents, hosts and people write does nothing to who looks at it: every screen that the table of routes names,
//! what its forms lead to, the file of the log, and what the command line prints, each with every kind of hostile text.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use countersign::domain::account::{Account, PersonRole};
use countersign::domain::edit::Edit;
use countersign::domain::id::{AccountId, ReviewId};
use countersign::domain::inert::{Segment, inert};
use countersign::domain::review::Verdict;
use countersign::service::access::NewAccount;
use countersign::service::comments::Saying;
use countersign::service::edits::{Rewrite, Rewritten};
use countersign::service::policies::Activation;
use countersign::web::roles::TABLE;
use countersign::worker::deliver;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::gateway::{Gateway, ballot, source, spawn_with_policy};

const PROGRAM: &str = env!("CARGO_BIN_EXE_countersign");

/// Each hostile text stands beside this, so that it is known where it is shown.
const MARK: &str = "payee-7";

/// A kind of hostile text, and how a page that shows it may show it: one of these.
struct Hostile {
    name: &'static str,
    text: &'static str,
    shown: &'static [&'static str],
}

const HOSTILE: &[Hostile] = &[
    Hostile { name: "bidi override", text: "\u{202e}004 RUE", shown: &["U+202E", "\\u202e"] },
    Hostile { name: "bidi isolates", text: "\u{2066}a\u{2069}\u{2067}b\u{2069}", shown: &["U+2066", "\\u2066"] },
    Hostile { name: "zero width", text: "4\u{200b}2\u{feff}\u{2060}", shown: &["U+200B", "\\u200b"] },
    Hostile { name: "tags", text: "\u{e0041}\u{e0042}", shown: &["U+E0041", "\\udb40\\udc41"] },
    Hostile { name: "controls", text: "\0\u{7}\u{8}\r\u{7f}", shown: &["U+0007", "\\u0007"] },
    Hostile { name: "terminal escapes", text: "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m", shown: &["U+001B", "\\u001b"] },
    Hostile { name: "line separators", text: "a\u{2028}b\u{85}c", shown: &["U+2028", "\\u2028"] },
    Hostile { name: "look-alikes", text: "p\u{430}ypal", shown: &["p\u{430}ypal"] },
    Hostile {
        name: "markup",
        text: "</td></table></script><script>owned()</script><img src=x onerror=owned()>",
        shown: &["&lt;script&gt;owned()", "&#60;script&#62;owned()", "<script>owned()"],
    },
    Hostile {
        name: "an attribute's end",
        text: "\" onmouseover=\"owned()' x='",
        shown: &["&#34; onmouseover=&#34;owned()", "onmouseover=\\&#34;owned()", "onmouseover=\\\"owned()"],
    },
    Hostile { name: "a link", text: "javascript:owned()", shown: &["javascript:owned()"] },
    Hostile { name: "a template", text: "{{7*7}}${7*7}<%= 7*7 %>", shown: &["{{7*7}}"] },
    Hostile { name: "a formula", text: "=HYPERLINK(\"http://e.example\")", shown: &["=HYPERLINK("] },
];

/// Nothing of this is in any page.
const ACTING: &[&str] = &["<script>owned", "<img src=x", "onmouseover=\"owned", "href=\"javascript:", "<%="];

const POLICY: &str = r#"
flow = "payments"
trust_initial = true
protected = ["target_user_id"]

[nodes.input_parser]
reads = ["raw_text"]
writes = ["raw_text"]

[nodes.planner]
reads = ["target_user_id", "memo", "card"]
writes = ["target_user_id", "memo", "card"]
rollback = true

[nodes.database_writer]
reads = ["target_user_id", "memo"]
writes = ["result_ref"]
writer = true

[[rules]]
when = "change.path == '/target_user_id'"
then = "warn"
reason = "payee-7 <script>owned()</script>"

[tools]
allow = ["crm.*"]

[approval]
ttl = "24h"
[[approval.stages]]
groups = ["reviewers"]
need = 1

[redaction]
hide = ["card.*"]
reveal_to = ["reviewers"]
"#;

/// Somebody's session.
struct Person<'g> {
    g: &'g Gateway,
    role: PersonRole,
    secret: String,
}

impl<'g> Person<'g> {
    async fn new(g: &'g Gateway, account: &AccountId, role: PersonRole) -> Self {
        let link = g.service.sign_in_link(account).await.unwrap();
        let (_, secret) = g.service.use_sign_in_link(&link).await.unwrap();
        Self { g, role, secret }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let page = self.g.http.get(format!("{}{path}", self.g.url)).header("cookie", self.cookie());
        let answer = page.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    async fn post(&self, path: &str, fields: &[(&str, &str)]) -> String {
        let pairs: Vec<String> =
            fields.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        let form = self.g.http.post(format!("{}{path}", self.g.url)).header("cookie", self.cookie());
        let form = form.header("origin", &self.g.url).header("content-type", "application/x-www-form-urlencoded");
        form.body(pairs.join("&")).send().await.unwrap().text().await.unwrap()
    }

    fn cookie(&self) -> String {
        format!("countersign={}", self.secret)
    }
}

fn encoded(value: &str) -> String {
    value
        .bytes()
        .map(|it| if it.is_ascii_alphanumeric() { char::from(it).to_string() } else { format!("%{it:02X}") })
        .collect()
}

fn hidden(page: &str, name: &str) -> String {
    let at = format!("name=\"{name}\" value=\"");
    let start = page.find(&at).unwrap_or_else(|| panic!("no field {name} in {page}")) + at.len();
    page[start..].split('"').next().unwrap().to_owned()
}

/// What was written of one hostile text, and where it is to be looked at.
struct Written {
    thread: String,
    open: Value,
    reviews: BTreeSet<String>,
}

async fn admin(g: &Gateway) -> Account {
    let new = NewAccount { name: "gus".to_owned(), role: PersonRole::Admin, groups: BTreeSet::new() };
    g.service.add_account(&new, "correct horse battery".to_owned()).await.unwrap()
}

/// A proposal with the text in everything that an agent says.
async fn asked(g: &Gateway, thread: &str, parent: &Value, said: &str, attempt: u32) -> Value {
    let body = json!({
        "node": "planner", "parent": parent, "format": "merge-patch", "attempt": attempt, "rationale": said,
        "patch": {"target_user_id": said, "memo": {(format!("k{said}")): said, "list": [said, said]}, "card": {(said): attempt}},
        "tool": {"name": "crm.find", "arguments": {(said): said}},
    });
    g.post(&format!("/v1/threads/{thread}/transitions"), &g.planner, body).await.expect(202)
}

fn review_of(held: &Value) -> String {
    held["review"]["id"].as_str().unwrap().to_owned()
}

/// Writes it wherever somebody can: as host, agent, writer and reviewer.
async fn write(g: &Gateway, thread: &str, said: &str) -> Written {
    let context = json!({"title": said, "on_behalf_of": said, "links": [said, format!("javascript:{said}")]});
    let state = json!({"target_user_id": format!("{said} first"), "memo": {(said): [said]}});
    let ask = json!({"flow": "payments", "thread": thread, "state": state, "context": context});
    let made = g.post("/v1/threads", &g.host, ask).await.expect(201);
    let head = made["transition"].clone();
    let mut reviews = BTreeSet::new();
    // Turned away, cancelled, denied, rewritten and approved; and one that stays open.
    let body = json!({"node": "planner", "parent": head, "patch": {(said): said}, "rationale": said});
    g.post(&format!("/v1/threads/{thread}/transitions"), &g.planner, body).await.expect(422);
    let cancelled = asked(g, thread, &head, said, 1).await;
    let path = format!("/v1/transitions/{}/cancellation", cancelled["transition"].as_str().unwrap());
    g.post(&path, &g.planner, json!({"reason": said})).await.expect(200);
    let denied = asked(g, thread, &head, &format!("{said}?"), 1).await;
    let review: ReviewId = review_of(&denied).as_str().try_into().unwrap();
    let digest = ballot(&denied, Verdict::Deny).transition;
    let nonce = countersign::random::uuid_v4().to_string();
    g.service.comment(&g.bob.id, &review, &Saying { transition: digest, words: said.to_owned(), nonce }).await.unwrap();
    let with_words = |held: &Value, verdict| countersign::domain::review::Ballot {
        comment: Some(said.to_owned()),
        ..ballot(held, verdict)
    };
    g.service.vote(&g.bob.id, &review, &with_words(&denied, Verdict::Deny)).await.unwrap();
    let rewritten = asked(g, thread, &head, &format!("{said}!"), 1).await;
    let review: ReviewId = review_of(&rewritten).as_str().try_into().unwrap();
    let values = [("/target_user_id".try_into().unwrap(), json!(format!("{said} better")))];
    let edit = Edit { values: values.into_iter().collect(), more: None };
    let ask = Rewrite { transition: ballot(&rewritten, Verdict::Approve).transition, edit, why: said.to_owned() };
    let Rewritten::Held(next) = g.service.rewrite(&g.bob.id, &review, &ask).await.unwrap() else { panic!("rejected") };
    let by = g.service.decision(ask.transition).await.unwrap().1.unwrap().superseded_by.unwrap();
    let held = json!({"transition": by, "review": {"id": next}});
    g.service.vote(&g.alice.id, &next, &with_words(&held, Verdict::Approve)).await.unwrap();
    reviews.extend([review_of(&cancelled), review_of(&denied), review_of(&rewritten), next.to_string()]);
    let receipt = g.decision(&held).await.expect(200)["receipt"].clone();
    let write_id = format!("w-{thread}");
    g.verify(&json!(thread), &json!(by), &receipt, &write_id).await.expect(200);
    g.post(&format!("/v1/writes/{write_id}/confirm"), &g.writer, json!({"result": {"result_ref": said}}))
        .await
        .expect(200);
    let head = g.get(&format!("/v1/threads/{thread}"), &g.host).await.expect(200)["transition"].clone();
    let closed = json!({"flow": "payments", "thread": format!("{thread}-closed"), "state": {"target_user_id": 1}});
    g.post("/v1/threads", &g.host, closed).await.expect(201);
    g.post(&format!("/v1/threads/{thread}-closed/closing"), &g.admin, json!({"reason": said})).await.expect(200);
    let open = asked(g, thread, &head, &format!("{said}."), 1).await;
    reviews.insert(review_of(&open));
    Written { thread: thread.to_owned(), open, reviews }
}

/// An endpoint's page, and that of something that was sent there.
struct Told {
    endpoint: String,
    delivery: String,
}

/// Whether a request is there to the end of its body.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    text.split_once("\r\n\r\n").is_some_and(|it| serde_json::from_str::<Value>(it.1).is_ok())
}

/// An endpoint for each hostile text, called so as far as names may be, whose receiver says it.
async fn told(g: &Gateway) -> Vec<Told> {
    let mut endpoints = Vec::new();
    for hostile in HOSTILE {
        let receiver = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", receiver.local_addr().unwrap());
        let said = format!("{MARK} {}", hostile.text);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = receiver.accept().await {
                let head = format!("HTTP/1.1 500 X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", said.len());
                // Whoever closes before it has read everything may take the answer back.
                let mut seen = Vec::new();
                while !is_whole(&seen) && stream.read_buf(&mut seen).await.is_ok_and(|it| it > 0) {}
                stream.write_all((head + &said).as_bytes()).await.unwrap();
            }
        });
        let name: String = format!("{MARK} {}", hostile.text).chars().filter(|it| !it.is_control()).take(64).collect();
        let new = json!({"name": name, "url": url, "events": ["policy.activated"], "after": 0});
        endpoints.push(g.post("/v1/endpoints", &g.admin, new).await.expect(201)["id"].as_str().unwrap().to_owned());
    }
    while g.service.sequence().await.unwrap() > 0 {}
    deliver::run_once(&g.service).await.unwrap();
    let mut told = Vec::new();
    for id in endpoints {
        let sent = g.get(&format!("/v1/endpoints/{id}/deliveries"), &g.auditor).await.expect(200);
        let endpoint = format!("/endpoints/{id}");
        told.push(Told { delivery: format!("{endpoint}/deliveries/{}", sent["deliveries"][0]["delivery"]), endpoint });
    }
    told
}

/// Everything that people may open, with what belongs to it filled in. What follows the log sends no words of anybody.
async fn addresses(
    g: &Gateway,
    written: &[Written],
    (amendment, interrupt, told): (&str, &str, &[Told]),
) -> Vec<(&'static str, String)> {
    while g.service.sequence().await.unwrap() > 0 {}
    while g.service.count_events().await.unwrap() > 0 {}
    let (events, _) = g.service.events_after(0, None, 1_000).await.unwrap();
    let mut all = Vec::new();
    for rule in TABLE.iter().filter(|it| it.method == "GET" && !it.people.is_empty() && it.route != "/live") {
        match rule.route {
            "/log/{event}" => all.extend(events.iter().map(|it| (rule.route, format!("/log/{}", it.event.id)))),
            "/people/{account}" => all.push((rule.route, format!("/people/{}", g.alice.id))),
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
    all.extend([("/", "/?show=everything".to_owned()), ("/", "/?show=past".to_owned())]);
    all.extend([("/insight", "/insight?span=24h".to_owned()), ("/insight", "/insight?span=1h".to_owned())]);
    for it in &all {
        assert!(!it.1.contains('{'), "{}: it is not known what stands there", it.1);
    }
    all.sort();
    all.dedup();
    all
}

/// Nothing in it acts, and where the text is, it can be seen.
fn harmless(page: &str, at: &str) {
    let mut before = "";
    for segment in inert(page) {
        match segment {
            Segment::Text(text) => before = text,
            Segment::Escape(it) => panic!("{at}: {it:?} stands as itself after {:?}", last(before)),
        }
    }
    // What is no page is given for a file, and never shown.
    for acting in ACTING.iter().filter(|_| at != "/log.jsonl") {
        assert!(!page.contains(acting), "{at}: {acting}");
    }
}

/// The end of a text.
fn last(text: &str) -> &str {
    let start = text.char_indices().rev().nth(300).map_or(0, |it| it.0);
    &text[start..]
}

/// Where each is shown, at least.
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
    "/threads/{thread}/versions/{version}",
];

#[tokio::test]
async fn whatever_is_written_is_inert_on_every_screen_and_can_be_seen() {
    let g = spawn_with_policy(POLICY).await;
    let gus = admin(&g).await;
    let all: String = HOSTILE.iter().map(|it| it.text).collect();
    let amendment = amended(&g, &format!("{MARK} {all}")).await;
    let interrupt = interrupted(&g, &format!("{MARK} {all}")).await;
    let mut written = Vec::new();
    for (number, hostile) in HOSTILE.iter().enumerate() {
        written.push(write(&g, &format!("order-{number}"), &format!("{MARK} {}", hostile.text)).await);
    }
    let people =
        [Person::new(&g, &g.alice.id, PersonRole::Reviewer).await, Person::new(&g, &gus.id, PersonRole::Admin).await];
    let mut shown: BTreeSet<(&str, &str)> = BTreeSet::new();
    let told = told(&g).await;
    for (route, path) in addresses(&g, &written, (&amendment, &interrupt, &told)).await {
        let (mut status, mut page) = people[0].get(&path).await;
        // Some pages are for administrators only; of who signs in, reviewers are not told.
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

/// Pages that a form leads to, as far as they repeat what others wrote. What one typed oneself comes back as it was
/// typed, in its field.
async fn forms(people: &[Person<'_>; 2], written: &Written, hostile: &Hostile) {
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
    assert!(page.contains("It would be held"), "{page}");
    harmless(&untyped(&page), "what if");
}

/// The page without what was typed into it.
fn untyped(page: &str) -> String {
    page.split("<textarea").map(|it| it.split_once("</textarea>").map_or(it, |it| it.1)).collect()
}

/// What a host asks people about, with the text in everything that it and a voter say; and the confirmation of a vote.
async fn interrupted(g: &Gateway, said: &str) -> String {
    let body = json!({
        "kind": "state_transition_review", "transition_digest": "d".repeat(64), "interrupt_id": "7652e9dc",
        "changed_keys": [said, "memo"], "redacted_diff": {(said): said, "memo": [said, {"before": 1, "after": said}]},
        "thread_ref": said.chars().take(150).collect::<String>(), "title": said.chars().take(150).collect::<String>(),
        "reason": said,
    });
    let asked = g.post("/v1/interrupts", &g.host, body).await.expect(202);
    let path = format!("/interrupts/{}", asked["id"].as_str().unwrap());
    let bob = Person::new(g, &g.bob.id, PersonRole::Reviewer).await;
    let page = bob.get(&path).await.1;
    let names = ["csrf", "digest", "nonce", "stage"];
    let fields: Vec<(&str, String)> = names.iter().map(|it| (*it, hidden(&page, it))).collect();
    let mut fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    fields.push(("verdict", "approve"));
    let page = bob.post(&format!("{path}/decision"), &fields).await;
    assert!(page.contains("Confirm"), "{page}");
    harmless(&page, "the confirmation of what a host asks");
    let digest = json!({"transition": asked["digest"]});
    let vote = countersign::domain::review::Ballot { comment: Some(said.to_owned()), ..ballot(&digest, Verdict::Deny) };
    let id = asked["id"].as_str().unwrap().try_into().unwrap();
    g.service.vote_on_interrupt(&g.alice.id, &id, &vote, None).await.unwrap();
    id.to_string()
}

/// A policy that people are asked about, with the text in what they say.
async fn amended(g: &Gateway, said: &str) -> String {
    let guarded = |ttl: &str| {
        let text = POLICY.replacen("\"payments\"", "\"amended\"", 1);
        source(&format!("{text}\n[approval.policy]\ngroups = [\"reviewers\"]\nttl = \"{ttl}\"\n"))
    };
    let by = countersign::domain::id::PrincipalId::try_from("tests").unwrap();
    g.service.activate_policy(&by, None, guarded("1h"), BTreeSet::new()).await.unwrap();
    let Activation::Waiting(asked) =
        g.service.activate_policy(&by, None, guarded("2h"), BTreeSet::new()).await.unwrap()
    else {
        panic!("it is active")
    };
    let digest = json!({"transition": asked.digest});
    let vote = countersign::domain::review::Ballot { comment: Some(said.to_owned()), ..ballot(&digest, Verdict::Deny) };
    g.service.vote_on_amendment(&g.alice.id, &asked.id, &vote).await.unwrap();
    asked.id.to_string()
}

#[tokio::test]
async fn a_long_value_is_folded_with_its_length_and_is_there_to_its_last_character() {
    let g = spawn_with_policy(POLICY).await;
    let made =
        g.post("/v1/threads", &g.host, json!({"flow": "payments", "thread": "long", "state": {"target_user_id": 1}}));
    let head = made.await.expect(201)["transition"].clone();
    let long = format!("{}the end", "0123456789".repeat(10_000));
    let body = json!({"node": "planner", "parent": head, "patch": {"target_user_id": 2, "memo": long}});
    let held = g.post("/v1/threads/long/transitions", &g.planner, body).await.expect(202);
    let alice = Person::new(&g, &g.alice.id, PersonRole::Reviewer).await;
    let review = format!("/reviews/{}", review_of(&held));
    let folded = |page: &str, at: &str| {
        assert!(page.contains("Show all 100,009 characters"), "{at}");
        let whole =
            page.split("class=\"fold-all\" data-whole>").any(|it| it.starts_with(&format!("&#34;{long}&#34;<")));
        assert!(whole, "{at}: not all of it is there");
    };
    folded(&alice.get(&review).await.1, "the review");
    assert!(alice.get("/").await.1.contains("a text of 100,009 characters"), "a list tells how long it is");
    g.vote(&g.alice, &held, Verdict::Approve).await.unwrap();
    folded(&alice.get("/threads/long/versions/1").await.1, "the version");
    folded(&alice.get("/threads/long/compare?from=0&to=1").await.1, "the comparison");
}

#[tokio::test]
async fn the_file_of_the_log_is_the_same_json_and_nothing_in_it_acts_on_a_terminal() {
    let g = spawn_with_policy(POLICY).await;
    let gus = admin(&g).await;
    let gus = Person::new(&g, &gus.id, PersonRole::Admin).await;
    for (number, hostile) in HOSTILE.iter().enumerate() {
        write(&g, &format!("order-{number}"), &format!("{MARK} {}", hostile.text)).await;
    }
    while g.service.sequence().await.unwrap() > 0 {}
    let file = gus.get("/log.jsonl").await.1;
    let mut reasons = BTreeSet::new();
    for line in file.lines() {
        assert!(!inert(line).iter().any(|it| matches!(it, Segment::Escape(_))), "{line:?}");
        // No line is one of a table: a spreadsheet that opens the file has nothing that begins with a formula.
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
async fn what_the_command_line_prints_acts_on_no_terminal() {
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
                let acting = inert(&text).iter().any(|it| matches!(it, Segment::Escape(_)));
                assert!(!acting, "{line:?} {form:?} {stream}: {text:?}");
                seen += usize::from(text.contains("U+202E") || text.contains("\\u202e"));
            }
        }
    }
    assert!(seen >= 6, "what is hostile is told, by its number: {seen}");
}
