//! Tests interrupts from host applications and their answers. On both databases.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_domain::chain::jws::{self, JwsError, TokenType};
use countersign_domain::chain::receipt::{Denial, Receipt};
use countersign_domain::identity::account::{Account, MachineRole};
use countersign_domain::interrupts::{InterruptAnswer, InterruptDecision};
use countersign_domain::keys::KeyUse;
use countersign_domain::operations::halt::Halt;
use countersign_domain::primitives::id::InterruptId;
use countersign_domain::reviews::{Ballot, Ineligible, VoteRejected, VoteVerdict};

use countersign::worker::{expire, rejudge};
use countersign_service::error::Error;
use countersign_service::identity::revocation::SignInAccess;
use countersign_service::operations::halt::HaltScope;
use countersign_service::reviews::vote::VoteOutcome;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{ApiResponse, POLICY, TestGateway, ballot, owned_token, person, source};
use crate::rules::ApiScenario;
use crate::under_new_policy::activate;

on_both! {
    host_gets_the_decision_of_its_interrupt(crate::gateway::POLICY),
    same_digest_with_other_content_is_refused(crate::gateway::POLICY),
    denial_and_expiry_are_answered_as_such(crate::gateway::POLICY),
    answer_is_no_receipt_and_receipt_is_no_answer(crate::gateway::POLICY),
    owner_of_the_host_does_not_decide(crate::gateway::POLICY),
    vote_covers_the_whole_interrupt_and_counts_once(crate::gateway::POLICY.replace("need = 1", "need = 2")),
    only_one_of_two_concurrent_last_votes_answers(crate::gateway::POLICY.replace("need = 1", "need = 2")),
    a_deadline_between_reading_and_voting_ends_it(crate::gateway::POLICY),
    further_attempts_are_in_order_and_limited(crate::gateway::POLICY),
    halted_flow_accepts_and_decides_no_interrupt(crate::gateway::POLICY),
    interrupt_under_a_new_policy_asks_its_reviewers(crate::gateway::POLICY),
    interrupt_without_eligible_reviewers_is_refused(crate::gateway::POLICY.replace("\"reviewers\"", "\"nobody\"")),
    detected_values_are_in_no_event(super::detecting()),
    value_redacted_by_a_later_policy_is_not_shown(crate::gateway::POLICY),
    line_about_a_redacted_path_is_not_shown(crate::gateway::POLICY),
    typed_confirmation_is_required(crate::gateway::POLICY.replace("need = 1", "need = 1\nconfirm = \"typed\"")),
    required_passkey_is_enforced(crate::gateway::POLICY.replace("need = 1", "need = 1\npasskey = true")),
}

/// The policy, with a detector.
fn detecting() -> String {
    policy_with("hide = [\"payment.card\"]", "hide = [\"payment.card\"]\ndetect = [\"email\"]")
}

pub fn asked() -> Value {
    json!({
        "kind": "state_transition_review", "transition_digest": "d".repeat(64), "interrupt_id": "7652e9dcf1db4576",
        "changed_keys": ["target_user_id"], "redacted_diff": {"target_user_id": {"before": 17, "after": 42}},
        "thread_ref": "order-8812", "title": "Another user", "reason": "the customer wrote so",
    })
}

fn asked_with(changes: Value) -> Value {
    let mut body = asked();
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

async fn posts(g: &TestGateway, body: &Value) -> ApiResponse {
    g.post("/v1/interrupts", &g.host, body.clone()).await
}

async fn answer(g: &TestGateway, taken: &Value) -> ApiResponse {
    g.get(&format!("/v1/interrupts/{}", taken["id"].as_str().unwrap()), &g.host).await
}

fn id(taken: &Value) -> InterruptId {
    taken["id"].as_str().unwrap().try_into().unwrap()
}

fn vote_of(taken: &Value, verdict: VoteVerdict) -> Ballot {
    ballot(&json!({"transition": taken["digest"]}), verdict)
}

async fn votes(g: &TestGateway, who: &Account, taken: &Value, verdict: VoteVerdict) -> Result<VoteOutcome, Error> {
    g.service.interrupts.vote_on_interrupt(&who.id, &id(taken), &vote_of(taken, verdict), None).await
}

fn refused(voted: &Result<VoteOutcome, Error>) -> &VoteRejected {
    match voted {
        Err(Error::Vote(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Returns the claims of an answer, verified by the gateway's published keys.
fn claims(g: &TestGateway, answered: &Value) -> InterruptAnswer {
    let keys = g.service.core.keys().unwrap();
    let unverified =
        jws::read::<InterruptAnswer>(answered["answer"].as_str().unwrap(), TokenType::InterruptAnswer).unwrap();
    let key = keys.public(KeyUse::Chain, unverified.kid()).unwrap();
    let claims = unverified.verify(key).unwrap();
    assert_eq!(claims.iss, keys.issuer());
    claims
}

/// Returns the names of the events about interrupts with their data. The events of one commit are in any order.
async fn events(g: &TestGateway) -> Vec<(String, Value)> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let all = g.get("/v1/events", &g.host).await.expect(200);
    let all = all["events"].as_array().unwrap().iter();
    let about = all.filter(|it| it["type"].as_str().unwrap().starts_with("interrupt."));
    about.map(|it| (it["type"].as_str().unwrap().to_owned(), it["data"].clone())).collect()
}

async fn host_gets_the_decision_of_its_interrupt(scene: ApiScenario) {
    let g = &scene.gateway;
    let taken = posts(g, &asked()).await.expect(202);
    assert_eq!(taken["needed"], json!([{"groups": ["reviewers"], "need": 1}]));
    assert_eq!(taken["url"], format!("{}/interrupts/{}", g.url, taken["id"].as_str().unwrap()));
    assert_eq!(answer(g, &taken).await.expect(202), json!({"status": "open"}));
    let vote = Ballot { comment: Some("as agreed".to_owned()), ..vote_of(&taken, VoteVerdict::Approve) };
    let voted = g.service.interrupts.vote_on_interrupt(&g.alice.id, &id(&taken), &vote, None).await.unwrap();
    assert_eq!(voted, VoteOutcome::Approved);
    let answered = answer(g, &taken).await.expect(200);
    assert_eq!((&answered["approved"], &answered["decision"]), (&json!(true), &json!("approved")));
    assert_eq!((&answered["reviewer_id"], &answered["reviewers"]), (&json!(g.alice.id), &json!([g.alice.id])));
    for name in ["transition_digest", "interrupt_id"] {
        assert_eq!(answered[name], asked()[name]);
    }
    assert_eq!(answered["comment"], "as agreed");
    let said = claims(g, &answered);
    let host = g.service.identity.token_of(&g.host).await.unwrap().record;
    assert_eq!((said.decision, &said.aud, &said.sub), (InterruptDecision::Approved, &host.principal(), &id(&taken)));
    assert_eq!(json!([said.asserted, said.jti]), json!([taken["digest"], answered["nonce"]]));
    assert_eq!(said.exp, Some(said.iat + 600), "it is good for as long as a receipt");
    assert_eq!((&said.approvals[0].reviewer, said.approvals.len()), (&g.alice.id, 1));
    // The answer has the same bytes for every request at any time.
    g.pass(Duration::from_secs(3600));
    assert_eq!(answer(g, &taken).await.expect(200), answered);
    let told = events(g).await;
    let names: BTreeSet<&str> = told.iter().map(|it| it.0.as_str()).collect();
    assert_eq!((names.len(), told.len()), (3, 3), "{names:?}");
    let ended = told.iter().find(|it| it.0 == "interrupt.approved").unwrap();
    let mut sent = answered.clone();
    sent["comment"] = json!("[shown on the interrupt's page]");
    assert_eq!(ended.1["answer"], sent, "a webhook can carry it");
    scene.passes_an_audit().await;
}

async fn same_digest_with_other_content_is_refused(scene: ApiScenario) {
    let g = &scene.gateway;
    let taken = posts(g, &asked()).await.expect(202);
    assert_eq!(posts(g, &asked()).await.expect(202), taken);
    for other in [
        json!({"redacted_diff": {}}),
        json!({"changed_keys": []}),
        json!({"interrupt_id": "another"}),
        json!({"title": "Nothing to see"}),
        json!({"expires_in": 60}),
    ] {
        let answer = posts(g, &asked_with(other)).await;
        assert_eq!((answer.status, answer.code()), (409, "interrupt_differs"));
    }
    votes(g, &g.alice, &taken, VoteVerdict::Deny).await.unwrap();
    assert_eq!(posts(g, &asked()).await.expect(202), taken, "whatever became of it");
    // Another host that asserts the same is another source.
    let other = crate::gateway::token(&g.service, "second", MachineRole::Host, &[]).await;
    let second = g.post("/v1/interrupts", &other, asked()).await.expect(202);
    assert_ne!(second["id"], taken["id"]);
    // Only one of many concurrent requests creates the interrupt.
    let body = asked_with(json!({"transition_digest": "e".repeat(64)}));
    let all = join_all((0..8).map(|_| posts(g, &body))).await;
    let ids: BTreeSet<String> =
        all.into_iter().filter(|it| it.status == 202).map(|it| it.body["id"].to_string()).collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    scene.passes_an_audit().await;
}

async fn denial_and_expiry_are_answered_as_such(scene: ApiScenario) {
    let g = &scene.gateway;
    let taken = posts(g, &asked()).await.expect(202);
    assert_eq!(votes(g, &g.bob, &taken, VoteVerdict::Deny).await.unwrap(), VoteOutcome::Denied);
    let denied = answer(g, &taken).await.expect(200);
    assert_eq!((&denied["approved"], &denied["decision"]), (&json!(false), &json!("denied")));
    assert_eq!((&denied["expires_at"], &denied["reviewer_id"]), (&Value::Null, &json!(g.bob.id)));
    let said = claims(g, &denied);
    assert_eq!((said.decision, said.exp, said.approvals.len()), (InterruptDecision::Denied, None, 0));
    assert_eq!(said.refusals[0].reviewer, g.bob.id);
    let late = [("f", false), ("0", true)];
    for (digit, worker) in late {
        let body = asked_with(json!({"transition_digest": digit.repeat(64), "expires_in": 60}));
        let taken = posts(g, &body).await.expect(202);
        g.pass(Duration::from_secs(61));
        assert!(matches!(refused(&votes(g, &g.bob, &taken, VoteVerdict::Approve).await), VoteRejected::Expired));
        if worker {
            assert_eq!(expire::run_once(&g.service).await.unwrap(), 1);
            assert_eq!(expire::run_once(&g.service).await.unwrap(), 0);
        }
        let expired = answer(g, &taken).await.expect(200);
        assert_eq!((&expired["approved"], &expired["decision"]), (&json!(false), &json!("expired")));
        assert_eq!((&expired["reviewer_id"], &expired["reviewers"]), (&Value::Null, &json!([])));
        assert_eq!(claims(g, &expired).decision, InterruptDecision::Expired);
    }
    let names: Vec<String> = events(g).await.into_iter().map(|it| it.0).collect();
    let ends = ["interrupt.denied", "interrupt.expired"];
    assert_eq!(ends.map(|end| names.iter().filter(|it| *it == end).count()), [1, 2]);
    scene.passes_an_audit().await;
}

async fn answer_is_no_receipt_and_receipt_is_no_answer(scene: ApiScenario) {
    let g = &scene.gateway;
    let taken = posts(g, &asked()).await.expect(202);
    votes(g, &g.alice, &taken, VoteVerdict::Approve).await.unwrap();
    let answered = answer(g, &taken).await.expect(200);
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let approved = g.approved(&held).await;
    let denied = g.verify(&thread["thread"], &held["transition"], &answered["answer"], "w-1").await;
    assert_eq!((denied.status, denied.code()), (403, "receipt_malformed"));
    let token = answered["answer"].as_str().unwrap();
    assert_eq!(jws::read::<Receipt>(token, TokenType::Receipt).unwrap_err(), JwsError::Typ);
    assert_eq!(jws::read::<Denial>(token, TokenType::Denial).unwrap_err(), JwsError::Typ);
    // A reader that reads the answer's claims under another `typ` rejects them too.
    assert_eq!(jws::read::<InterruptAnswer>(token, TokenType::Receipt).unwrap_err(), JwsError::Typ);
    let receipt = approved["receipt"].as_str().unwrap();
    assert_eq!(jws::read::<InterruptAnswer>(receipt, TokenType::InterruptAnswer).unwrap_err(), JwsError::Typ);
    g.verify(&thread["thread"], &held["transition"], &approved["receipt"], "w-1").await.expect(200);
    scene.passes_an_audit().await;
}

async fn owner_of_the_host_does_not_decide(scene: ApiScenario) {
    let g = &scene.gateway;
    let own = owned_token(&g.service, "alices", MachineRole::Host, &[], "alice").await;
    let taken = g.post("/v1/interrupts", &own, asked()).await.expect(202);
    let why = votes(g, &g.alice, &taken, VoteVerdict::Approve).await;
    assert!(matches!(refused(&why), VoteRejected::Ineligible(Ineligible::Author)), "{why:?}");
    let carol = person(&g.service, "carol", &["support"]).await;
    let why = votes(g, &carol, &taken, VoteVerdict::Approve).await;
    assert!(matches!(refused(&why), VoteRejected::Ineligible(Ineligible::Group)), "{why:?}");
    g.service.identity.set_admission("bob", SignInAccess::Barred).await.unwrap();
    let why = votes(g, &g.bob, &taken, VoteVerdict::Approve).await;
    assert!(matches!(refused(&why), VoteRejected::Ineligible(Ineligible::Disabled)), "{why:?}");
    assert_eq!(answer(g, &taken).await.expect(202)["status"], "open");
    scene.passes_an_audit().await;
}

async fn vote_covers_the_whole_interrupt_and_counts_once(scene: ApiScenario) {
    let g = &scene.gateway;
    let taken = posts(g, &asked()).await.expect(202);
    let other = posts(g, &asked_with(json!({"transition_digest": "e".repeat(64)}))).await.expect(202);
    assert_ne!(taken["digest"], other["digest"]);
    let wrong = g
        .service
        .interrupts
        .vote_on_interrupt(&g.alice.id, &id(&taken), &vote_of(&other, VoteVerdict::Approve), None)
        .await;
    assert!(matches!(refused(&wrong), VoteRejected::Digest), "{wrong:?}");
    let vote = vote_of(&taken, VoteVerdict::Approve);
    let first = g.service.interrupts.vote_on_interrupt(&g.alice.id, &id(&taken), &vote, None).await.unwrap();
    assert_eq!(first, VoteOutcome::Waiting);
    let again = g.service.interrupts.vote_on_interrupt(&g.bob.id, &id(&taken), &vote, None).await;
    assert!(matches!(refused(&again), VoteRejected::NonceUsed), "{again:?}");
    let again = votes(g, &g.alice, &taken, VoteVerdict::Approve).await;
    assert!(matches!(refused(&again), VoteRejected::Ineligible(Ineligible::Voted)), "{again:?}");
    let stage = Ballot { stage: 1, ..vote_of(&taken, VoteVerdict::Approve) };
    let wrong = g.service.interrupts.vote_on_interrupt(&g.bob.id, &id(&taken), &stage, None).await;
    assert!(matches!(refused(&wrong), VoteRejected::Stage), "{wrong:?}");
    assert_eq!(votes(g, &g.bob, &taken, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    let late = votes(g, &g.bob, &taken, VoteVerdict::Deny).await;
    assert!(matches!(refused(&late), VoteRejected::Ended), "{late:?}");
    scene.passes_an_audit().await;
}

async fn only_one_of_two_concurrent_last_votes_answers(scene: ApiScenario) {
    let g = &scene.gateway;
    let carol = person(&g.service, "carol", &["reviewers"]).await;
    let taken = posts(g, &asked()).await.expect(202);
    votes(g, &g.alice, &taken, VoteVerdict::Approve).await.unwrap();
    let both = [votes(g, &g.bob, &taken, VoteVerdict::Approve), votes(g, &carol, &taken, VoteVerdict::Deny)];
    let done: Vec<_> = join_all(both).await;
    assert_eq!(done.iter().filter(|it| it.is_ok()).count(), 1, "{done:?}");
    let ends = events(g).await.into_iter().filter(|it| it.1["answer"].is_object()).count();
    assert_eq!(ends, 1);
    assert_eq!(answer(g, &taken).await.expect(200)["approved"], json!(done[0].is_ok()));
    scene.passes_an_audit().await;
}

async fn a_deadline_between_reading_and_voting_ends_it(scene: ApiScenario) {
    let g = &scene.gateway;
    let long = asked_with(json!({"expires_in": 90 * 24 * 3600}));
    let taken = posts(g, &long).await.expect(202);
    g.pass(Duration::from_secs(24 * 3600));
    let late = votes(g, &g.alice, &taken, VoteVerdict::Approve).await;
    assert!(matches!(refused(&late), VoteRejected::Expired), "the policy's own time is the longest: {late:?}");
    assert_eq!(answer(g, &taken).await.expect(200)["decision"], "expired");
}

async fn further_attempts_are_in_order_and_limited(scene: ApiScenario) {
    let g = &scene.gateway;
    let attempt = |number: u32| asked_with(json!({"attempt": number}));
    for early in [2, 3] {
        let answer = posts(g, &attempt(early)).await;
        assert_eq!((answer.status, answer.code()), (409, "earlier_attempt"));
    }
    for number in 1..=3 {
        let taken = posts(g, &attempt(number)).await.expect(202);
        assert_eq!(taken["attempt"], number);
        if number < 3 {
            assert_eq!(posts(g, &attempt(number + 1)).await.code(), "earlier_attempt", "people are still asked");
        }
        votes(g, &g.alice, &taken, VoteVerdict::Deny).await.unwrap();
    }
    let answer = posts(g, &attempt(4)).await;
    assert_eq!((answer.status, answer.code()), (422, "attempts_exhausted"));
    assert_eq!(posts(g, &attempt(0)).await.status, 400);
    scene.passes_an_audit().await;
}

async fn halted_flow_accepts_and_decides_no_interrupt(scene: ApiScenario) {
    let g = &scene.gateway;
    let taken = posts(g, &asked()).await.expect(202);
    let by = "tests".try_into().unwrap();
    let halt = |proposing| Halt { proposing, verifying: false, reason: "drill".to_owned() };
    for scope in [HaltScope::All, HaltScope::Flow("payments".try_into().unwrap())] {
        g.service.operations.set_halt(&by, &scope, &halt(true)).await.unwrap();
        let other = posts(g, &asked_with(json!({"transition_digest": "e".repeat(64)}))).await;
        assert_eq!((other.status, other.code()), (409, "halted"));
        assert_eq!(posts(g, &asked()).await.expect(202), taken, "what was asked is still known");
        let voted = votes(g, &g.alice, &taken, VoteVerdict::Approve).await;
        assert!(matches!(voted, Err(Error::Halted)), "{voted:?}");
        g.service.operations.set_halt(&by, &scope, &halt(false)).await.unwrap();
    }
    assert_eq!(votes(g, &g.alice, &taken, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    scene.passes_an_audit().await;
}

async fn interrupt_under_a_new_policy_asks_its_reviewers(scene: ApiScenario) {
    let g = &scene.gateway;
    let by: countersign_domain::primitives::id::PrincipalId = "tests".try_into().unwrap();
    let activate = async |policy: &str| {
        g.service.policy_changes.activate_policy(&by, None, source(policy), BTreeSet::new()).await.unwrap();
    };
    let kept = posts(g, &asked()).await.expect(202);
    // A policy that requires the same reviewers changes nothing.
    activate(&POLICY.replace("24h", "12h")).await;
    rejudge::run_once(&g.service).await.unwrap();
    assert_eq!(answer(g, &kept).await.expect(202)["status"], "open");
    let looked_at = posts(g, &asked_with(json!({"transition_digest": "e".repeat(64)}))).await.expect(202);
    activate(&POLICY.replace("need = 1", "need = 2")).await;
    for taken in [&kept, &looked_at] {
        let voted = votes(g, &g.alice, taken, VoteVerdict::Approve).await;
        assert!(matches!(refused(&voted), VoteRejected::PolicyChanged), "{voted:?}");
    }
    rejudge::run_once(&g.service).await.unwrap();
    for taken in [&kept, &looked_at] {
        let over = answer(g, taken).await.expect(200);
        assert_eq!((&over["approved"], &over["decision"]), (&json!(false), &json!("superseded")));
        assert_eq!(claims(g, &over).decision, InterruptDecision::Superseded);
    }
    let again = posts(g, &asked_with(json!({"attempt": 2}))).await.expect(202);
    assert_eq!(again["needed"], json!([{"groups": ["reviewers"], "need": 2}]));
    activate(&POLICY.replace("need = 1", "need = 1\ncomment = \"required\"")).await;
    assert_eq!(answer(g, &again).await.expect(200)["decision"], "superseded", "nobody waits for a worker");
    scene.passes_an_audit().await;
}

async fn interrupt_without_eligible_reviewers_is_refused(scene: ApiScenario) {
    let g = &scene.gateway;
    let answer = posts(g, &asked()).await;
    assert_eq!((answer.status, answer.code()), (422, "nobody_can_approve"));
    assert_eq!(events(g).await, []);
}

async fn detected_values_are_in_no_event(scene: ApiScenario) {
    let g = &scene.gateway;
    let secret = "eva@example.com";
    let body = asked_with(json!({
        "title": format!("pay {secret}"), "reason": format!("{secret} wrote"), "changed_keys": [format!("by {secret}")],
        "thread_ref": secret, "redacted_diff": {"to": secret},
    }));
    let taken = posts(g, &body).await.expect(202);
    let vote = Ballot { comment: Some(format!("{secret} called")), ..vote_of(&taken, VoteVerdict::Approve) };
    g.service.interrupts.vote_on_interrupt(&g.alice.id, &id(&taken), &vote, None).await.unwrap();
    assert_eq!(answer(g, &taken).await.expect(200)["comment"], "[email] called");
    let told = events(g).await;
    assert!(told.iter().any(|it| it.1["title"] == "pay [email]"), "{told:?}");
    assert!(!json!(told).to_string().contains(secret), "{told:?}");
    let (_, cookie) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let page = g.http.get(taken["url"].as_str().unwrap()).header("cookie", format!("countersign={cookie}"));
    let page = page.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("pay [email]") && !page.contains(secret), "{page}");
    scene.passes_an_audit().await;
}

async fn value_redacted_by_a_later_policy_is_not_shown(scene: ApiScenario) {
    let g = &scene.gateway;
    let words = json!({
        "redacted_diff": {"raw_text": "DE02120300000000202051"}, "title": "To DE02120300000000202051",
    });
    let taken = posts(g, &asked_with(words)).await.expect(202);
    let id = InterruptId::try_from(taken["id"].as_str().unwrap()).unwrap();
    let told = async || {
        let shown = g.service.interrupts.interrupt_view(&id).await.unwrap();
        let listed = g.service.inbox.interrupts_open(None, 10).await.unwrap().interrupts;
        [&shown, &listed[0]].map(|it| {
            let title = it.masked(it.interrupt.asserted.title.as_deref().unwrap());
            format!("{title} {:?}", it.leaves())
        })
    };
    for shown in told().await {
        assert_eq!(shown.matches("DE02120300000000202051").count(), 2, "{shown}");
    }
    // The new policy requires the same reviewers in the same way, so the interrupt stays open.
    let hides = policy_with("hide = [\"payment.card\"]", "hide = [\"payment.card\", \"raw_text\"]");
    activate(g, &hides, &[]).await;
    rejudge::run_once(&g.service).await.unwrap();
    for shown in told().await {
        assert!(shown.starts_with("To [hidden]") && !shown.contains("DE02120300000000202051"), "{shown}");
    }
    assert_eq!(votes(g, &g.alice, &taken, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    assert!(told_once_ended(g, &id).await.starts_with("To [hidden]"));
    scene.passes_an_audit().await;
}

/// A host's list of changes is no state. Its lines contain the paths of their values.
async fn line_about_a_redacted_path_is_not_shown(scene: ApiScenario) {
    let g = &scene.gateway;
    let number = "7654-3210-FEDC";
    let words = json!({
        "title": format!("Card {number}"),
        "redacted_diff": [
            {"pointer": "/payment/card", "before": null, "after": {"number": number}},
            {"pointer": "/target_user_id", "before": 17, "after": 42},
        ],
    });
    let taken = posts(g, &asked_with(words)).await.expect(202);
    let shown = g.service.interrupts.interrupt_view(&id(&taken)).await.unwrap();
    let leaves = format!("{:?}", shown.leaves());
    assert!(leaves.contains("/1/after") && !leaves.contains(number), "{leaves}");
    assert_eq!(shown.masked(shown.interrupt.asserted.title.as_deref().unwrap()), "Card [hidden]");
    let told = json!(events(g).await).to_string();
    assert!(told.contains("Card [hidden]") && !told.contains(number), "{told}");
    scene.passes_an_audit().await;
}

async fn told_once_ended(g: &TestGateway, id: &InterruptId) -> String {
    let shown = g.service.interrupts.interrupt_view(id).await.unwrap();
    shown.masked(shown.interrupt.asserted.title.as_deref().unwrap()).into_owned()
}

async fn typed_confirmation_is_required(scene: ApiScenario) {
    let g = &scene.gateway;
    let taken = posts(g, &asked()).await.expect(202);
    let voted = votes(g, &g.alice, &taken, VoteVerdict::Approve).await;
    assert!(matches!(refused(&voted), VoteRejected::NotTyped), "{voted:?}");
    let vote = vote_of(&taken, VoteVerdict::Approve);
    let typed = Ballot { typed: Some(vote.transition.to_type()), ..vote };
    let voted = g.service.interrupts.vote_on_interrupt(&g.alice.id, &id(&taken), &typed, None).await.unwrap();
    assert_eq!(voted, VoteOutcome::Approved);
    scene.passes_an_audit().await;
}

async fn required_passkey_is_enforced(scene: ApiScenario) {
    let g = &scene.gateway;
    let taken = posts(g, &asked()).await.expect(202);
    let voted = votes(g, &g.alice, &taken, VoteVerdict::Approve).await;
    assert!(matches!(refused(&voted), VoteRejected::PasskeyRequired), "{voted:?}");
    assert_eq!(answer(g, &taken).await.expect(202)["status"], "open");
}

#[tokio::test]
async fn malformed_interrupt_is_refused_with_its_path() {
    let g = crate::gateway::spawn_gateway().await;
    for (changes, pointer) in [
        (json!({"transition_digest": "short"}), "/transition_digest"),
        (json!({"transition_digest": "d d".repeat(10)}), "/transition_digest"),
        (json!({"interrupt_id": ""}), "/interrupt_id"),
        (json!({"changed_keys": ["x".repeat(501)]}), "/changed_keys"),
        (json!({"changed_keys": vec!["x"; 201]}), "/changed_keys"),
        (json!({"changed_keys": vec!["x".repeat(400); 170]}), "/changed_keys"),
        (json!({"redacted_diff": "x".repeat(64 * 1024)}), "/redacted_diff"),
        (json!({"redacted_diff": vec![1; 501]}), "/redacted_diff"),
        (json!({"title": "x".repeat(201)}), "/title"),
        (json!({"reason": ""}), "/reason"),
        (json!({"thread_ref": ""}), "/thread_ref"),
        (json!({"expires_in": 59}), "/expires_in"),
        (json!({"kind": "tool_approval"}), ""),
        (json!({"approved": true}), ""),
        (json!({"expires_in": -1}), ""),
    ] {
        let answer = posts(&g, &asked_with(changes.clone())).await;
        assert_eq!((answer.status, answer.code()), (400, "malformed"), "{changes}");
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{changes}");
    }
    posts(&g, &asked_with(json!({"redacted_diff": null}))).await.expect(202);
}

#[tokio::test]
async fn long_poll_returns_at_the_decision() {
    let g = crate::gateway::spawn_gateway().await;
    let taken = posts(&g, &asked()).await.expect(202);
    let url = format!("{}/v1/interrupts/{}", g.url, taken["id"].as_str().unwrap());
    let waits = async {
        let request = g.http.get(url).bearer_auth(&g.host).header("prefer", "wait=30");
        ApiResponse::of(request.send().await.unwrap()).await
    };
    let (answered, voted) = tokio::join!(waits, votes(&g, &g.alice, &taken, VoteVerdict::Approve));
    assert_eq!(voted.unwrap(), VoteOutcome::Approved);
    assert_eq!(answered.expect(200)["approved"], true);
}
