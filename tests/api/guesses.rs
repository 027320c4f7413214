//! Guesses at redacted values. Two gateways differ only in values that one party may not read. The party writes guesses
//! wherever it can write a text. Everything it can fetch afterwards must be equal in both, but for what is random.

use std::collections::BTreeSet;

use countersign_domain::identity::account::{Account, MachineRole, PersonRole};
use countersign_domain::log::event::EventType;
use countersign_domain::policy::RedactedChange;
use countersign_domain::primitives::id::{InterruptId, ReviewId};
use countersign_domain::reviews::edit::ReviewEdit;
use countersign_domain::reviews::{ExtensionRequest, VoteVerdict};

use countersign_service::proposals::rollback::RollbackInput;
use countersign_service::reviews::comment::NewComment;
use countersign_service::reviews::edit::{EditRequest, EditResult};
use countersign_service::threads::history::HistoryItem;
use countersign_service::threads::tool_call_view::RedactedArguments;
use countersign_web::auth::permissions::TABLE;
use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{TestGateway, ballot, owned_token, person, spawn_with_policy};

mod answers;
mod attempts;
mod blind_writes;
mod carried;
mod fetched;
mod hashes;
mod owners;
mod rejected;
mod steps;
mod told_apart;
mod traced;

use fetched::FetchedFacts;

/// One redacted value of each world, alike in kind and length.
const CARDS: [&str; 2] = ["4929000000000001", "5500990000000002"];
const BIRTHDAYS: [&str; 2] = ["1984-02-11", "1991-07-23"];

const POLICY: &str = r#"
flow = "payments"
protected = ["target_user_id"]

[nodes.planner]
reads = ["raw_text", "notes", "found", "requested_action", "target_user_id"]
writes = ["raw_text", "notes", "found", "requested_action", "target_user_id"]
rollback = true
fork = true

[nodes.vault]
reads = ["payment", "customer"]
writes = ["payment", "customer"]

[nodes.database_writer]
reads = ["requested_action", "target_user_id", "raw_text"]
writes = ["result_ref"]
writer = true

[[rules]]
name = "notes"
when = "change.path.startsWith('/notes')"
then = "warn"
reason = "a note changes"

[tools]
allow = ["crm.*"]

[approval]
ttl = "24h"
receipt_ttl = "10m"
write_lease = "30s"
attempts = 10
denials = 2

[[approval.stages]]
groups = ["reviewers"]
need = 2

[redaction]
hide = ["payment.card", "customer.birthday"]
reveal_to = ["security"]
"#;

/// A gateway whose state has the redacted values of one world, and a party that may not read them.
struct GuessWorld {
    g: TestGateway,
    vault: String,
    /// The redacted values that this world has.
    own: [&'static str; 2],
}

/// The machines of one owner, and the account that owns them.
struct GuessingParty {
    host: String,
    agent: String,
    owner: Account,
}

impl GuessWorld {
    async fn new(which: usize) -> Self {
        Self::with_policy(which, POLICY).await
    }

    async fn with_policy(which: usize, policy: &str) -> Self {
        let g = spawn_with_policy(policy).await;
        for name in ["carl", "dora"] {
            person(&g.service, name, &["reviewers"]).await;
        }
        let vault = owned_token(&g.service, "vault", MachineRole::Agent, &["vault"], "platform").await;
        Self { g, vault, own: [CARDS[which], BIRTHDAYS[which]] }
    }

    /// Returns the facts so far: accounts and tokens, some of them made in the same millisecond.
    async fn known(&self) -> FetchedFacts {
        while self.g.service.log.sequence().await.unwrap() > 0 {}
        FetchedFacts::after(self.g.service.log.log_length().await.unwrap())
    }

    async fn party(&self) -> GuessingParty {
        let owner = person(&self.g.service, "olga", &["reviewers"]).await;
        let service = &self.g.service;
        GuessingParty {
            host: owned_token(service, "olgas-host", MachineRole::Host, &[], "olga").await,
            agent: owned_token(service, "olgas-agent", MachineRole::Agent, &["planner"], "olga").await,
            owner,
        }
    }

    /// A thread in which another party has set the redacted values.
    async fn thread(&self, host: &str, texts: &GuessTexts) -> Value {
        let state = json!({
            "requested_action": "none", "target_user_id": 17, "raw_text": texts.text("initial"),
            "notes": {(texts.key()): texts.text("note"), "plain": texts.number()}, "found": [{"id": "start"}],
        });
        let episode = json!({"goal": {"task": texts.text("task"), "type": "support"}, "seed": 7, "tags": texts.tags(),
            "using": "graph", "intuition_mode": "advisory"});
        let ask =
            json!({"flow": "payments", "state": state, "episode": episode, "context": {"title": texts.text("title")}});
        let mut thread = self.g.post("/v1/threads", host, ask).await.expect(201);
        let [card, birthday] = self.own;
        let patch = json!({"payment": {"card": card}, "customer": {"birthday": birthday}});
        let set =
            self.g.propose(&thread["thread"], &thread["transition"], (&self.vault, "vault"), patch).await.expect(201);
        thread["transition"] = set["transition"].clone();
        thread
    }
}

/// Texts with guesses: each is right in one world, in the other, or in none.
struct GuessTexts(usize);

impl GuessTexts {
    /// None of these has a guess.
    const PLAIN: Self = Self(0);
    const ALL: [Self; 3] = [Self(1), Self(2), Self(3)];

    fn guess(&self) -> &'static str {
        ["nothing to see", CARDS[0], BIRTHDAYS[1], CARDS[1]][self.0]
    }

    fn text(&self, about: &str) -> String {
        match self.0 {
            0 => format!("{about}, as agreed"),
            1 => self.guess().to_owned(),
            2 => format!("{about}: {}.", self.guess()),
            _ => format!("{about} {} or {} or {}", CARDS[0], CARDS[1], BIRTHDAYS[0]),
        }
    }

    fn key(&self) -> String {
        format!("k{}", self.guess())
    }

    fn number(&self) -> Value {
        self.guess().parse::<u64>().map_or(json!(17), Value::from)
    }

    fn tags(&self) -> Value {
        json!({"team": self.text("team")})
    }
}

fn review_of(answer: &Value) -> ReviewId {
    answer["review"]["id"].as_str().unwrap().try_into().unwrap()
}

/// Everything that machines of one owner write, and the answers.
async fn machines_write(world: &GuessWorld, party: &GuessingParty, texts: &GuessTexts, known: &mut FetchedFacts) {
    let g = &world.g;
    let thread = world.thread(&party.host, texts).await;
    let name = thread["thread"].as_str().unwrap().to_owned();
    known.threads.push(name.clone());
    let transitions = format!("/v1/threads/{name}/transitions");
    let ask = |parent: &Value, patch: Value| {
        json!({
            "node": "planner", "parent": parent, "patch": patch, "rationale": texts.text("why"),
            "tool": {"name": "crm.find", "arguments": {"q": texts.text("find"), (texts.key()): [texts.number()]}},
        })
    };
    let mut patch = json!({"raw_text": texts.text("text"), "notes": {(texts.key()): texts.text("other")}});
    // The same guess many times: no limit on lookups may show how many values equal a redacted one.
    for copy in 0..66 {
        patch["notes"][format!("copy{copy:02}")] = json!(texts.text("copy"));
    }
    let committed = known.answer(g.post(&transitions, &party.agent, ask(&thread["transition"], patch)).await, 201);
    let patch = json!({"raw_text": "plain again", "is_admin": {(texts.key()): texts.text("is")}});
    known.answer(g.post(&transitions, &party.agent, ask(&committed["transition"], patch)).await, 422);
    for (phase, payload) in [
        ("observe", json!({"message": texts.text("seen"), (texts.key()): texts.number()})),
        (
            "memory",
            json!({"facts": [{"key": texts.key(), "value": texts.text("fact")}], "scratchpad": texts.text("pad")}),
        ),
    ] {
        let event = json!({"node": "planner", "phase": phase, "payload": payload, "evidence_ids": [texts.text("e")]});
        known.answer(g.post(&format!("/v1/threads/{name}/episode/events"), &party.agent, event).await, 201);
    }
    let patch = json!({"target_user_id": 42, "raw_text": texts.text("held"), "notes": {"plain": texts.text("p")}});
    let held = known.answer(g.post(&transitions, &party.agent, ask(&committed["transition"], patch)).await, 202);
    let digest = held["transition"].as_str().unwrap();
    let look = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "look_at_hold", "arguments": {"transition": digest}}});
    known.mcp(g, &party.agent, look).await;
    let interrupt = json!({
        "kind": "state_transition_review", "transition_digest": "d".repeat(64), "interrupt_id": "7652e9dcf1db4576",
        "changed_keys": ["target_user_id", texts.key()], "title": texts.text("title"), "reason": texts.text("reason"),
        "redacted_diff": {"target_user_id": {"before": 17, "after": 42}, "raw_text": texts.text("diff")},
        "thread_ref": name,
    });
    let taken = known.answer(g.post("/v1/interrupts", &party.host, interrupt).await, 202);
    known.interrupts.push(taken["id"].as_str().unwrap().to_owned());
    let cancel = json!({"reason": texts.text("cancelled")});
    known.answer(g.post(&format!("/v1/transitions/{digest}/cancellation"), &party.agent, cancel).await, 200);
    let patch = json!({"target_user_id": 43});
    known.answer(g.post(&transitions, &party.agent, ask(&committed["transition"], patch)).await, 202);
}

/// Writes every text that a reviewer can write about proposals of others.
async fn a_reviewer_writes(world: &GuessWorld, erin: &Account, texts: &GuessTexts, known: &mut FetchedFacts) {
    let g = &world.g;
    let thread = world.thread(&g.host, &GuessTexts::PLAIN).await;
    known.threads.push(thread["thread"].as_str().unwrap().to_owned());
    let patch = json!({"target_user_id": 42, "raw_text": "call them", "notes": {"plain": "n"}});
    let held = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(202);
    let review = review_of(&held);
    let hold = g.service.reviews.review(&review, erin).await.unwrap().hold;
    let (transition, deadline) = (hold.transition, hold.expires_at);
    let until = deadline.plus(std::time::Duration::from_secs(3_600));
    let longer = ExtensionRequest { transition, deadline, until, reason: texts.text("longer") };
    g.service.reviews.extend(&erin.id, &review, &longer).await.unwrap();
    let saying = NewComment { transition, words: texts.text("comment"), nonce: "n".repeat(22) };
    g.service.reviews.comment(&erin.id, &review, &saying).await.unwrap();
    // Guesses in values and in a name; then the editor's own edit once more.
    let values = [("/raw_text", json!(texts.text("edit"))), ("/target_user_id", json!(44))];
    let values = values.into_iter().map(|(at, value)| (at.try_into().unwrap(), value)).collect();
    let more = Some(json!({"notes": {(texts.key()): texts.text("more")}}));
    let ask = EditRequest { transition, edit: ReviewEdit { values, more }, why: texts.text("why") };
    let EditResult::Held(next) = g.service.reviews.rewrite(&erin.id, &review, &ask).await.unwrap() else {
        panic!("rejected")
    };
    let hold = g.service.reviews.review(&next, erin).await.unwrap().hold;
    let values = [("/target_user_id", json!(45))].into_iter().map(|(at, it)| (at.try_into().unwrap(), it)).collect();
    let ask =
        EditRequest { transition: hold.transition, edit: ReviewEdit { values, more: None }, why: texts.text("again") };
    let EditResult::Held(last) = g.service.reviews.rewrite(&erin.id, &next, &ask).await.unwrap() else {
        panic!("rejected")
    };
    let digest = g.service.reviews.review(&last, erin).await.unwrap().hold.transition;
    let answer = json!({"transition": digest.to_string(), "review": {"id": last.to_string()}});
    for voter in [&g.alice, &g.bob] {
        g.service.reviews.vote(&voter.id, &last, &ballot(&answer, VoteVerdict::Approve), None).await.unwrap();
    }
    // The value that the editor chose is in the chain now. Another change and a rollback come after it.
    let patch = json!({"requested_action": "call"});
    let next = g.propose(&thread["thread"], &json!(digest), (&g.planner, "planner"), patch).await.expect(201);
    let rollback = RollbackInput {
        thread: thread["thread"].as_str().unwrap().try_into().unwrap(),
        node: "planner".try_into().unwrap(),
        parent: next["transition"].as_str().unwrap().try_into().unwrap(),
        to_version: 2,
        attempt: 1,
        reason: Some(texts.text("back")),
    };
    g.service.proposals.ask_for_rollback(&erin.id, &rollback).await.unwrap();
    // A host's diff has redacted values of its own.
    let [card, birthday] = world.own;
    let interrupt = json!({
        "kind": "state_transition_review", "transition_digest": "d".repeat(64), "interrupt_id": "7652e9dcf1db4576",
        "changed_keys": ["target_user_id"], "title": "Another card", "reason": "asked by the customer",
        "redacted_diff": {"payment": {"card": card}, "customer": {"birthday": birthday}}, "thread_ref": "t",
    });
    let taken = g.post("/v1/interrupts", &g.host, interrupt).await.expect(202);
    let id = InterruptId::try_from(taken["id"].as_str().unwrap()).unwrap();
    let mut vote = ballot(&json!({"transition": taken["digest"]}), VoteVerdict::Deny);
    vote.comment = Some(texts.text("denied"));
    g.service.interrupts.vote_on_interrupt(&erin.id, &id, &vote, None).await.unwrap();
    known.interrupts.push(id.to_string());
}

/// The answer to an interrupt contains the last comment, compared with the host's own text, for the host. The author of
/// the comment is not shown that.
#[tokio::test]
async fn a_comment_in_a_hosts_answer_is_read_on_the_interrupts_page() {
    let world = GuessWorld::new(0).await;
    let (g, [card, _]) = (&world.g, world.own);
    let interrupt = json!({
        "kind": "state_transition_review", "transition_digest": "d".repeat(64), "interrupt_id": "7652e9dcf1db4576",
        "changed_keys": ["payment"], "redacted_diff": {"payment": {"card": card}},
    });
    let taken = g.post("/v1/interrupts", &g.host, interrupt).await.expect(202);
    let id = InterruptId::try_from(taken["id"].as_str().unwrap()).unwrap();
    for who in [&g.alice, &g.bob] {
        let mut vote = ballot(&json!({"transition": taken["digest"]}), VoteVerdict::Deny);
        vote.comment = Some(format!("is it {card}"));
        g.service.interrupts.vote_on_interrupt(&who.id, &id, &vote, None).await.unwrap();
    }
    let answer = g.get(&format!("/v1/interrupts/{id}"), &g.host).await.expect(200);
    assert_eq!(answer["comment"], "is it [hidden]", "{answer:#}");
    while g.service.log.sequence().await.unwrap() > 0 {}
    let events = g.service.log.events_after(0, None, 500).await.unwrap().0.into_iter().map(|it| it.event);
    let ended = events.into_iter().find(|it| it.kind == EventType::InterruptDenied).unwrap();
    let told = g.service.log.event_view(&ended.id, &g.bob).await.unwrap().event;
    assert_eq!(told.data["answer"]["comment"], "[shown on the interrupt's page]", "{}", told.data);
    let shown = g.service.interrupts.interrupt_view(&id).await.unwrap();
    let words = format!("is it {card}");
    assert_eq!(shown.said(&g.bob.id, &g.bob.id, &words), words.as_str());
    assert_eq!(shown.said(&g.alice.id, &g.bob.id, &words), "is it [hidden]");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_learn_nothing_from_guesses_in_what_they_write() {
    for texts in &GuessTexts::ALL {
        let mut seen = Vec::new();
        for which in 0..2 {
            let world = GuessWorld::new(which).await;
            let party = world.party().await;
            let mut known = world.known().await;
            machines_write(&world, &party, texts, &mut known).await;
            known.look_up(&world.g).await;
            for (role, token) in [(MachineRole::Host, &party.host), (MachineRole::Agent, &party.agent)] {
                known.fetch_as_machine(&world.g, role, token).await;
            }
            seen.push(known.seen);
        }
        told_apart::nothing(&seen[0], &seen[1]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_owner_learns_nothing_from_guesses_in_what_the_agent_writes() {
    for texts in &GuessTexts::ALL {
        let mut seen = Vec::new();
        for which in 0..2 {
            let world = GuessWorld::new(which).await;
            let party = world.party().await;
            let mut known = world.known().await;
            machines_write(&world, &party, texts, &mut known).await;
            known.look_up(&world.g).await;
            known.seen.clear();
            known.fetch_as_person(&world.g, &party.owner).await;
            seen.push(known.seen);
        }
        told_apart::nothing(&seen[0], &seen[1]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reviewer_learns_nothing_from_guesses_in_what_they_write() {
    for texts in &GuessTexts::ALL {
        let mut seen = Vec::new();
        for which in 0..2 {
            let world = GuessWorld::new(which).await;
            let erin = person(&world.g.service, "erin", &["reviewers"]).await;
            let mut known = world.known().await;
            a_reviewer_writes(&world, &erin, texts, &mut known).await;
            known.look_up(&world.g).await;
            known.fetch_as_person(&world.g, &erin).await;
            seen.push(known.seen);
        }
        told_apart::nothing(&seen[0], &seen[1]);
    }
}

/// A right guess keeps its author when a rollback, a fork and a join take it over. Its author's owner sees it as written in
/// every version, and any other reviewer sees it redacted.
#[tokio::test]
async fn a_leaf_is_traced_through_rollbacks_forks_and_joins() {
    let world = GuessWorld::new(0).await;
    let (g, party) = (&world.g, world.party().await);
    let thread = world.thread(&g.host, &GuessTexts::PLAIN).await;
    let id = thread["thread"].as_str().unwrap();
    let guess = world.own[0];
    let propose = async |thread: &Value, parent: &Value, text: &str| {
        let patch = json!({"raw_text": text});
        g.propose(thread, parent, (&party.agent, "planner"), patch).await.expect(201)["transition"].clone()
    };
    let guessed = propose(&thread["thread"], &thread["transition"], guess).await;
    let head = propose(&thread["thread"], &guessed, "something else").await;
    let back = json!({"to_version": 2, "node": "planner", "parent": head});
    let held = g.post(&format!("/v1/threads/{id}/rollbacks"), &party.agent, back).await.expect(202);
    for voter in [&g.alice, &g.bob] {
        g.vote(voter, &held, VoteVerdict::Approve).await.unwrap();
    }
    let head = held["transition"].clone();
    let fork = json!({"node": "planner", "branches": ["left"]});
    let forked = g.post(&format!("/v1/threads/{id}/forks"), &party.agent, fork).await.expect(201);
    let branch = &forked["branches"][0];
    let tip = propose(&branch["thread"], &branch["transition"], "on the branch").await;
    propose(&branch["thread"], &tip, &format!("{guess} again")).await;
    let join = json!({"node": "planner", "parent": head, "branches": ["left"], "strategy": "union"});
    g.post(&format!("/v1/threads/{id}/joins"), &party.agent, join).await.expect(201);
    let shown = async |of: &str, who: &Account| -> Vec<bool> {
        let (_, items) = g.service.threads.history(&of.try_into().unwrap(), None, 25, &who.into()).await.unwrap();
        let about = |it: &&RedactedChange| serde_json::to_string(it).unwrap().contains("/raw_text");
        let line = |it: &HistoryItem| it.diff.iter().find(about).map(|it| serde_json::to_string(it).unwrap());
        items.iter().rev().filter_map(line).map(|it| !it.contains("hidden")).collect()
    };
    let branch = branch["thread"].as_str().unwrap();
    // The value was set, guessed, replaced, rolled back and joined. The branch's history is the second part.
    assert_eq!(shown(id, &party.owner).await, [true; 5]);
    assert_eq!(shown(id, &g.alice).await, [true, false, false, false, false]);
    assert_eq!(shown(branch, &party.owner).await, [true; 3]);
    assert_eq!(shown(branch, &g.alice).await, [false; 3]);
}

/// A value that another party copied stays redacted for a party that moves it in a list or rewrites a value beside it.
#[tokio::test]
async fn copied_value_stays_redacted_if_a_party_moves_it_or_edits_beside_it() {
    let world = GuessWorld::new(0).await;
    let (g, party) = (&world.g, world.party().await);
    let card = world.own[0];
    let state = json!({"requested_action": "none", "target_user_id": 17, "raw_text": "t", "notes": {"list": [card]}});
    let made = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
    let patch = json!({"payment": {"card": card}});
    let set = g.propose(&made["thread"], &made["transition"], (&world.vault, "vault"), patch).await.expect(201);
    let path = format!("/v1/threads/{}/transitions", made["thread"].as_str().unwrap());
    let shift = json!([{"op": "add", "path": "/notes/list/0", "value": "first"}]);
    let ask = json!({"node": "planner", "parent": set["transition"], "format": "json-patch", "patch": shift});
    let shifted = g.post(&path, &party.agent, ask).await.expect(201);
    let (_, items) = g
        .service
        .threads
        .history(&made["thread"].as_str().unwrap().try_into().unwrap(), None, 25, &(&party.owner).into())
        .await
        .unwrap();
    let shown = serde_json::to_string(&items[0].diff).unwrap();
    assert!(!shown.contains(card) && shown.contains("/notes/list/1"), "{shown}");

    // Another party's agent calls a tool with the value. A reviewer who edits the change sees no more of the call.
    let tool = json!({"name": "crm.find", "arguments": {"card": card}});
    let patch = json!({"target_user_id": 42});
    let ask = json!({"node": "planner", "parent": shifted["transition"], "patch": patch, "tool": tool});
    let held = g.post(&path, &g.planner, ask).await.expect(202);
    let values = [("/target_user_id".try_into().unwrap(), json!(43))].into_iter().collect();
    let transition = held["transition"].as_str().unwrap().try_into().unwrap();
    let ask = EditRequest { transition, edit: ReviewEdit { values, more: None }, why: "better".to_owned() };
    let done = g.service.reviews.rewrite(&g.alice.id, &review_of(&held), &ask).await.unwrap();
    let EditResult::Held(next) = done else { panic!("rejected") };
    for (review, who) in [(review_of(&held), &g.alice), (next.clone(), &g.alice), (next, &g.bob)] {
        let facts = g.service.reviews.review(&review, who).await.unwrap();
        let RedactedArguments::Parts(parts) = &facts.call.as_ref().unwrap().arguments else { panic!("all is shown") };
        assert!(!format!("{parts:?}").contains(card), "{parts:?}");
    }
}

/// A machine that reads a value as one node and writes it as another has read it.
#[tokio::test]
async fn value_readable_by_any_node_of_a_machine_is_redacted_for_its_owner() {
    let world = GuessWorld::new(0).await;
    let (g, party) = (&world.g, world.party().await);
    let both = owned_token(&g.service, "both", MachineRole::Agent, &["planner", "vault"], "olga").await;
    let thread = world.thread(&g.host, &GuessTexts::PLAIN).await;
    let patch = json!({"raw_text": format!("born {}", world.own[1])});
    g.propose(&thread["thread"], &thread["transition"], (&both, "planner"), patch).await.expect(201);
    let id = thread["thread"].as_str().unwrap().try_into().unwrap();
    let (_, items) = g.service.threads.history(&id, None, 25, &(&party.owner).into()).await.unwrap();
    let shown = serde_json::to_string(&items[0].diff).unwrap();
    assert!(!shown.contains(world.own[1]) && shown.contains("hidden"), "{shown}");
}

/// Fails if a new route is not fetched.
#[test]
fn every_route_that_the_parties_may_read_is_fetched() {
    let mut read: BTreeSet<&str> = BTreeSet::new();
    for rule in TABLE.iter().filter(|it| it.method == Method::GET.as_str()) {
        let machines = rule.machines.iter().any(|it| matches!(it, MachineRole::Host | MachineRole::Agent));
        if machines || rule.people.contains(&PersonRole::Reviewer) {
            read.insert(rule.route);
        }
    }
    let unknown: Vec<&&str> = read.iter().filter(|it| !fetched::is_known(it)).collect();
    assert!(unknown.is_empty(), "say in tests/api/guesses/fetched.rs how these are fetched: {unknown:?}");
}
