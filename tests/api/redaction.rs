//! Tests redaction by key and by value, in every response and on every page.

use countersign_domain::chain::hash::{Digest, Tag};
use countersign_domain::json::canonical::canonical;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::reviews::VoteVerdict;

use countersign_service::inbox::InboxFilter;
use countersign_service::inbox::list::InboxPageSelection;
use countersign_service::reviews::details::ReviewFacts;
use countersign_service::reviews::reveal::RevealRequest;
use countersign_service::threads::tool_call_view::RedactedArguments;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{POLICY, TestGateway, ballot, person, spawn_with_policy};
use crate::rules::ApiScenario;
use crate::under_new_policy::activate;

on_both_in_full! {
    redacted_value_is_redacted_wherever_it_is_written(super::written_elsewhere()),
    redacted_value_in_a_rejected_request_is_shown_only_to_its_proposer(super::written_elsewhere()),
    warning_path_shows_a_redacted_value_only_to_its_proposer(super::without_schema()),
    current_policy_redacts_values_in_earlier_decisions(super::written_elsewhere()),
}

/// The value at `/payment/card` in `TestGateway::thread`, which is redacted.
const CARD: &str = "4111111111111111";

fn written_elsewhere() -> String {
    policy_with("hide = [\"payment.card\"]", "hide = [\"payment.card\"]\nreveal_to = [\"security\"]")
        .replace(
            "writes = [\"requested_action\", \"target_user_id\", \"payment.amount\"]",
            "writes = [\"requested_action\", \"target_user_id\", \"raw_text\"]",
        )
        .replace("[approval]\n", "[[rules]]\nname = \"texts\"\nwhen = \"change.path.startsWith('/raw_text')\"\nthen = \"warn\"\nreason = \"a text\"\n\n[tools]\nallow = [\"crm.*\"]\n\n[approval]\n")
}

fn without_schema() -> String {
    written_elsewhere().replace("schema = \"payments.schema.json\"\ntrust_initial = true\n", "")
}

/// Proposes a change with the redacted card in a text, in the rationale and in the arguments of a tool.
async fn written(g: &TestGateway, thread: &Value) -> Value {
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let ask = json!({
        "node": "planner", "parent": thread["transition"],
        "patch": {"target_user_id": 42, "raw_text": format!("charge {CARD} now")},
        "rationale": format!("the card {CARD} is theirs"),
        "tool": {"name": "crm.find", "arguments": {"card": CARD, "user": 42}},
    });
    g.post(&path, &g.planner, ask).await.expect(202)
}

async fn redacted_value_is_redacted_wherever_it_is_written(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = written(g, &thread).await;
    let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
    let told = g.get(&path, &g.host).await.expect(200);
    let hidden = json!({"pointer": "/raw_text", "hidden": true, "effect": "added"});
    assert!(told["diff"].as_array().unwrap().contains(&hidden), "{told:#}");
    assert!(!told.to_string().contains(CARD), "{told:#}");
    assert_eq!(told["arguments"][0], json!({"pointer": "/card", "hidden": true}), "{told:#}");

    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    let facts = g.service.reviews.review(&review, &g.alice).await.unwrap();
    let parts = match &facts.call.as_ref().unwrap().arguments {
        RedactedArguments::Parts(parts) => format!("{parts:?}"),
        RedactedArguments::Whole { .. } => panic!("all of the arguments are shown"),
    };
    let rationale = facts.proposed(facts.transition.rationale.as_deref().unwrap());
    assert_eq!(rationale, "the card [hidden] is theirs");
    let shown = format!("{:?} {:?} {} {parts}", facts.diff, facts.writers, json!(facts.opening));
    assert!(!shown.contains(CARD), "{shown}");
    let inbox =
        g.service.inbox.find(&g.alice, &InboxFilter::open(), &InboxPageSelection::First, 100).await.unwrap().items;
    assert_eq!(inbox.len(), 1);
    assert!(!format!("{:?}", inbox[0].diff).contains(CARD), "{:?}", inbox[0].diff);

    // It can be revealed like any redacted value, and is the signed value.
    let grace = person(&g.service, "grace", &["security"]).await;
    let pointer = Pointer::try_from("/raw_text").unwrap();
    let look = RevealRequest { transition: facts.hold.transition, pointer, reason: format!("is {CARD} in it?") };
    let seen = g.service.reviews.reveal(&grace.id, &review, &look).await.unwrap();
    let (_, open) = seen.revealed.as_ref().unwrap();
    assert!(json!(open).to_string().contains(CARD) && open.to.root() == facts.opening.to.root());
    let said = |facts: &ReviewFacts| {
        let reveal = &facts.hold.reveals[0];
        facts.said(&reveal.person, &reveal.reason).into_owned()
    };
    assert_eq!(said(&seen), format!("is {CARD} in it?"), "who wrote it reads it as written");
    assert_eq!(said(&g.service.reviews.review(&review, &g.alice).await.unwrap()), "is [hidden] in it?");

    let mut vote = ballot(&held, VoteVerdict::Approve);
    vote.comment = Some(format!("{CARD} it is"));
    g.service.reviews.vote(&g.bob.id, &review, &vote, None).await.unwrap();
    assert_eq!(g.decision(&held).await.expect(200)["comment"], "[hidden] it is");
    let id = facts.thread.id.clone();
    let (_, history) = g.service.threads.history(&id, None, 25, &(&g.alice).into()).await.unwrap();
    assert!(history.iter().all(|it| !format!("{:?}", it.diff).contains(CARD)), "{:?}", history[0].diff);
    while g.service.log.sequence().await.unwrap() > 0 {}
    let events = g.get("/v1/events?limit=200", &g.host).await.expect(200);
    assert!(!events.to_string().contains(CARD), "{events:#}");
    scene.passes_an_audit().await;
}

/// The amount, which the first policy does not redact.
const AMOUNT: &str = "7771234567";

async fn current_policy_redacts_values_in_earlier_decisions(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let ask = json!({
        "node": "planner", "parent": thread["transition"], "patch": {"target_user_id": 7_771_234_567_i64},
        "rationale": format!("for user {AMOUNT}"), "tool": {"name": "crm.find", "arguments": {"user": 7_771_234_567_i64}},
    });
    let held = g.post(&path, &g.planner, ask).await.expect(202);
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    g.approved(&held).await;
    let told = async || {
        let facts = g.service.reviews.review(&review, &g.alice).await.unwrap();
        let call = match &facts.call.as_ref().unwrap().arguments {
            RedactedArguments::Parts(parts) => format!("{parts:?}"),
            RedactedArguments::Whole { value, .. } => value.to_string(),
        };
        let inbox =
            g.service.inbox.find(&g.alice, &InboxFilter::past(), &InboxPageSelection::First, 100).await.unwrap().items;
        let (_, history) = g.service.threads.history(&facts.thread.id, None, 25, &(&g.alice).into()).await.unwrap();
        let transition = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
        [
            format!("{:?} {:?}", facts.diff, facts.writers),
            json!(facts.opening).to_string(),
            facts.proposed(facts.transition.rationale.as_deref().unwrap()).into_owned(),
            call,
            format!("{:?}", inbox[0].diff),
            format!("{:?}", history[0].diff),
            g.get(&transition, &g.host).await.expect(200).to_string(),
        ]
    };
    for shown in told().await {
        assert!(shown.contains(AMOUNT), "{shown}");
    }
    let hides = "hide = [\"payment.card\", \"target_user_id\"]";
    let now = written_elsewhere().replace("hide = [\"payment.card\"]", hides);
    activate(g, &now, &[]).await;
    for shown in told().await {
        assert!(!shown.contains(AMOUNT), "{shown}");
    }
    scene.passes_an_audit().await;
}

async fn warning_path_shows_a_redacted_value_only_to_its_proposer(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let patch = json!({"target_user_id": 42, "raw_text": {(format!("of {CARD}")): 1}});
    let held = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(202);
    let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
    let own = format!("/raw_text/of {CARD}");
    assert_eq!(held["warnings"][0]["pointer"], json!(own), "{held:#}");
    assert_eq!(g.get(&path, &g.planner).await.expect(200)["warnings"][0]["pointer"], json!(own));
    let told = g.get(&path, &g.host).await.expect(200);
    assert_eq!(told["warnings"][0]["pointer"], "/raw_text", "{told:#}");
    assert!(!told.to_string().contains(CARD), "{told:#}");
    while g.service.log.sequence().await.unwrap() > 0 {}
    let events = g.get("/v1/events?limit=200", &g.host).await.expect(200);
    assert!(!events.to_string().contains(CARD) && events.to_string().contains("\"texts\""), "{events:#}");
    scene.passes_an_audit().await;
}

async fn redacted_value_in_a_rejected_request_is_shown_only_to_its_proposer(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let patch = json!({"is_admin": {(format!("of {CARD}")): 1}, "result_ref": CARD});
    let answer = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(422);
    let places = |errors: &Value| -> Vec<String> {
        errors.as_array().unwrap().iter().map(|it| it["pointer"].as_str().unwrap().to_owned()).collect()
    };
    // Were its own name cut, an agent that does not read the card could find out by asking.
    let own = [format!("/is_admin/of {CARD}"), "/result_ref".to_owned(), "/is_admin".to_owned()];
    assert_eq!(places(&answer["errors"]), own);
    let listed = g.get("/v1/rejections", &g.auditor).await.expect(200);
    let row = &listed["rejections"][0];
    assert_eq!(places(&row["errors"]), ["/is_admin", "/result_ref", "/is_admin"]);
    assert_eq!(row["excerpt"], r#"{"is_admin":"[hidden]","result_ref":"[hidden]"}"#);
    assert!(!listed.to_string().contains(CARD), "{listed:#}");
    guesses_are_not_answered(g, &row["proposal"], &row["patch_digest"], &thread).await;
    scene.passes_an_audit().await;
}

/// An attacker who guesses the exact request finds none of its hashes in a response: not as an auditor, not as a host,
/// and not on a page.
async fn guesses_are_not_answered(g: &TestGateway, identity: &Value, patch: &Value, thread: &Value) {
    let guess = json!({"is_admin": {(format!("of {CARD}")): 1}, "result_ref": CARD});
    let plain = Digest::of(Tag::Patch, &[canonical(&guess).as_bytes()]).to_string();
    let told = g.get("/v1/rejections", &g.auditor).await.expect(200)["rejections"][0].clone();
    let parts = |patch: &str| {
        let principal = told["principal"].as_str().unwrap();
        let asked = json!([thread["thread"], told["parent"], "planner", principal, "propose", "merge", patch, 1]);
        Digest::of(Tag::Proposal, &[canonical(&asked).as_bytes()]).to_string()
    };
    let guessed = [plain.clone(), parts(&plain), parts(patch.as_str().unwrap())];
    let told = [identity, patch].map(|it| it.as_str().unwrap());
    assert!(guessed.iter().all(|it| !told.contains(&it.as_str())), "{guessed:?} {told:?}");
    while g.service.log.sequence().await.unwrap() > 0 {}
    for token in [&g.auditor, &g.host] {
        let events = g.get("/v1/events?limit=200", token).await.expect(200).to_string();
        assert!(events.contains("transition.rejected") && guessed.iter().all(|it| !events.contains(it)), "{events}");
    }
}

#[tokio::test]
async fn detected_values_are_not_in_diffs_or_comments() {
    let detecting = POLICY.replace("hide = [\"payment.card\"]", "detect = [\"email\", \"card_number\"]");
    assert_ne!(detecting, POLICY);
    let g = spawn_with_policy(&detecting).await;
    let thread = g.thread().await;
    let patch = json!({"raw_text": "charge 4111 1111 1111 1111"});
    let asked = g.propose(&thread["thread"], &thread["transition"], (&g.parser, "input_parser"), patch);
    let committed = asked.await.expect(201);
    let path = format!("/v1/transitions/{}", committed["transition"].as_str().unwrap());
    let told = g.get(&path, &g.host).await.expect(200);
    assert_eq!(told["diff"], json!([{"pointer": "/raw_text", "hidden": true, "effect": "added"}]));

    let patch = json!({"target_user_id": 42});
    let asked = g.propose(&thread["thread"], &committed["transition"], (&g.planner, "planner"), patch);
    let held = asked.await.expect(202);
    let mut vote = ballot(&held, VoteVerdict::Approve);
    vote.comment = Some("ana@example.org says yes".to_owned());
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    g.service.reviews.vote(&g.bob.id, &review, &vote, None).await.unwrap();
    assert_eq!(g.decision(&held).await.expect(200)["comment"], "[email] says yes");
}
