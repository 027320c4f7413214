//! Tests that text of agents, hosts and people is sanitized everywhere. The places are every screen in the table of
//! routes, the pages that forms lead to, the exported log and the output of the command line.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use countersign_domain::identity::account::{Account, PersonRole};
use countersign_domain::identity::party::Party;
use countersign_domain::primitives::id::{AccountId, ReviewId};
use countersign_domain::primitives::sanitize::{TextSegment, inert};
use countersign_domain::reviews::VoteVerdict;
use countersign_domain::reviews::edit::ReviewEdit;

use countersign::worker::deliver;
use countersign_service::identity::accounts::NewAccount;
use countersign_service::policy_changes::activate::ActivationOutcome;
use countersign_service::reviews::comment::NewComment;
use countersign_service::reviews::edit::{EditRequest, EditResult};
use countersign_web::auth::permissions::TABLE;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::gateway::{TestGateway, ballot, source, spawn_with_policy};
use crate::passwords::hashed;

mod lines;
mod screens;

const PROGRAM: &str = env!("CARGO_BIN_EXE_countersign");

/// Each hostile text is beside this mark, so that the tests find it.
const MARK: &str = "payee-7";

/// A kind of hostile text, and the forms in which a page may show it.
struct HostileTextKind {
    name: &'static str,
    text: &'static str,
    shown: &'static [&'static str],
}

const HOSTILE: &[HostileTextKind] = &[
    HostileTextKind { name: "bidi override", text: "\u{202e}004 RUE", shown: &["U+202E", "\\u202e"] },
    HostileTextKind {
        name: "bidi isolates",
        text: "\u{2066}a\u{2069}\u{2067}b\u{2069}",
        shown: &["U+2066", "\\u2066"],
    },
    HostileTextKind { name: "zero width", text: "4\u{200b}2\u{feff}\u{2060}", shown: &["U+200B", "\\u200b"] },
    HostileTextKind { name: "tags", text: "\u{e0041}\u{e0042}", shown: &["U+E0041", "\\udb40\\udc41"] },
    HostileTextKind { name: "controls", text: "\0\u{7}\u{8}\r\u{7f}", shown: &["U+0007", "\\u0007"] },
    HostileTextKind {
        name: "terminal escapes",
        text: "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m",
        shown: &["U+001B", "\\u001b"],
    },
    HostileTextKind { name: "line separators", text: "a\u{2028}b\u{85}c", shown: &["U+2028", "\\u2028"] },
    HostileTextKind { name: "look-alikes", text: "p\u{430}ypal", shown: &["p\u{430}ypal"] },
    HostileTextKind {
        name: "markup",
        text: "</td></table></script><script>owned()</script><img src=x onerror=owned()>",
        shown: &["&lt;script&gt;owned()", "&#60;script&#62;owned()", "<script>owned()"],
    },
    HostileTextKind {
        name: "an attribute's end",
        text: "\" onmouseover=\"owned()' x='",
        shown: &["&#34; onmouseover=&#34;owned()", "onmouseover=\\&#34;owned()", "onmouseover=\\\"owned()"],
    },
    HostileTextKind { name: "a link", text: "javascript:owned()", shown: &["javascript:owned()"] },
    HostileTextKind { name: "a template", text: "{{7*7}}${7*7}<%= 7*7 %>", shown: &["{{7*7}}"] },
    HostileTextKind { name: "a formula", text: "=HYPERLINK(\"http://e.example\")", shown: &["=HYPERLINK("] },
];

/// Text that no page may contain.
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

struct SessionUser<'g> {
    g: &'g TestGateway,
    role: PersonRole,
    secret: String,
}

impl<'g> SessionUser<'g> {
    async fn new(g: &'g TestGateway, account: &AccountId, role: PersonRole) -> Self {
        let link = g.service.identity.sign_in_link(account).await.unwrap();
        let (_, secret) = g.service.identity.use_sign_in_link(&link).await.unwrap();
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

/// The records that contain one hostile text, and the pages that show them.
struct HostileText {
    thread: String,
    open: Value,
    reviews: BTreeSet<String>,
    /// A run of another system that has the text in every field.
    imported: String,
}

async fn admin(g: &TestGateway) -> Account {
    let new = NewAccount { name: "gus".to_owned(), role: PersonRole::Admin, groups: BTreeSet::new() };
    g.service.identity.add_account_hashed(&new, &hashed("correct horse battery").await).await.unwrap()
}

/// Proposes a change with the text in every field of an agent.
async fn asked(g: &TestGateway, thread: &str, parent: &Value, said: &str, attempt: u32) -> Value {
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

/// Returns a link that contains the text as far as possible.
fn link(said: &str) -> String {
    let query: String = said.chars().filter(|it| !it.is_control() && !it.is_whitespace()).take(400).collect();
    format!("https://desk.example/?{query}")
}

/// Writes the text everywhere it is accepted: as host, agent, writer and reviewer.
async fn write(g: &TestGateway, thread: &str, said: &str) -> HostileText {
    let context = json!({"title": said, "on_behalf_of": said, "links": [link(said)]});
    let state = json!({"target_user_id": format!("{said} first"), "memo": {(said): [said]}});
    // Names and texts are limited in length, and the hostile text is shortened to the limit.
    let word: String = said.chars().take(200).collect();
    let task: String = said.chars().take(2_000).collect();
    let episode = json!({"goal": {"task": task, "type": word}, "tags": {(word.as_str()): word}, "using": word});
    let ask = json!({"flow": "payments", "thread": thread, "state": state, "context": context, "episode": episode});
    let made = g.post("/v1/threads", &g.host, ask).await.expect(201);
    let text: String = said.chars().take(4_000).collect();
    let step = json!({"id": word, "kind": "act", "description": text});
    let plan = json!({"source": word, "rationale": text, "step_records": [step], (task.as_str()): task});
    for (phase, payload) in [("plan", plan), ("insight", json!({"metrics": {(task.as_str()): task}}))] {
        let event = json!({"node": "planner", "phase": phase, "payload": payload, "evidence_ids": [word]});
        g.post(&format!("/v1/threads/{thread}/episode/events"), &g.planner, event).await.expect(201);
    }
    let head = made["transition"].clone();
    let mut reviews = BTreeSet::new();
    // One proposal each is rejected, cancelled, denied, edited and approved. One stays open.
    let body = json!({"node": "planner", "parent": head, "patch": {(said): said}, "rationale": said});
    g.post(&format!("/v1/threads/{thread}/transitions"), &g.planner, body).await.expect(422);
    let cancelled = asked(g, thread, &head, said, 1).await;
    let path = format!("/v1/transitions/{}/cancellation", cancelled["transition"].as_str().unwrap());
    g.post(&path, &g.planner, json!({"reason": said})).await.expect(200);
    let denied = asked(g, thread, &head, &format!("{said}?"), 1).await;
    let review: ReviewId = review_of(&denied).as_str().try_into().unwrap();
    let digest = ballot(&denied, VoteVerdict::Deny).transition;
    let nonce = countersign_adapters::random::uuid_v4().to_string();
    g.service
        .reviews
        .comment(&g.bob.id, &review, &NewComment { transition: digest, words: said.to_owned(), nonce })
        .await
        .unwrap();
    let with_words = |held: &Value, verdict| countersign_domain::reviews::Ballot {
        comment: Some(said.to_owned()),
        ..ballot(held, verdict)
    };
    g.service.reviews.vote(&g.bob.id, &review, &with_words(&denied, VoteVerdict::Deny), None).await.unwrap();
    let rewritten = asked(g, thread, &head, &format!("{said}!"), 1).await;
    let review: ReviewId = review_of(&rewritten).as_str().try_into().unwrap();
    let values = [("/target_user_id".try_into().unwrap(), json!(format!("{said} better")))];
    let edit = ReviewEdit { values: values.into_iter().collect(), more: None };
    let ask =
        EditRequest { transition: ballot(&rewritten, VoteVerdict::Approve).transition, edit, why: said.to_owned() };
    let EditResult::Held(next) = g.service.reviews.rewrite(&g.bob.id, &review, &ask).await.unwrap() else {
        panic!("rejected")
    };
    let by =
        g.service.reviews.decision(ask.transition, &Party::Receiver).await.unwrap().1.unwrap().superseded_by.unwrap();
    let held = json!({"transition": by, "review": {"id": next}});
    g.service.reviews.vote(&g.alice.id, &next, &with_words(&held, VoteVerdict::Approve), None).await.unwrap();
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
    let imported = crate::imports::hostile(g, said).await;
    HostileText { thread: thread.to_owned(), open, reviews, imported }
}
