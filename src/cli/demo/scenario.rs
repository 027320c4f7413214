//! The scenario: a harmless change, a prompt injection, and a change that requires approval; then three attacks.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_domain::json::canonical::canonical;
use serde_json::{Value, json};

use super::DemoSetup;
use super::accounts::DemoMachines;
use super::client::{DemoHttpResponse, DemoMachine, DemoRequest};
use super::export_files;
use super::target_database::DemoTarget;
use crate::cli::CliError;

const THREAD: &str = "order-17";
const SECOND_THREAD: &str = "payout-9";

/// The length of one wait for a decision. The wait is repeated.
const WAIT_SECS: u64 = 20;

/// Runs the scenario. Two reviews are pending at the same time. The second expires if no reviewer decides it.
pub(super) async fn tell(cast: &DemoMachines, stage: &DemoSetup) -> Result<(), CliError> {
    let ledger = DemoTarget::make(&stage.data)?;
    stage.pause().await;
    stage.voice.say("\n— The host starts a thread with the authority that its job has.");
    let made = cast.host.ask(create("payments", THREAD)).await?.must_be(201)?;
    stage.pause().await;
    stage.voice.say("\n— A harmless change commits by itself.");
    let patch = json!({"requested_action": "refund"});
    let committed = propose(&cast.agent, THREAD, made.text("transition"), patch).await?.must_be(201)?;
    let head = committed.text("transition").to_owned();
    stage.pause().await;
    stage.voice.say("\n— An injected is_admin is rejected: the node may not write it, whatever the text in front of the model said.");
    propose(&cast.agent, THREAD, &head, json!({"requested_action": "refund", "is_admin": true})).await?.must_be(422)?;
    stage.pause().await;
    stage.voice.say("\n— A new target_user_id is held for approval. One person is needed.");
    let held = propose(&cast.agent, THREAD, &head, json!({"target_user_id": 42})).await?.must_be(202)?;
    stage.pause().await;
    let second = open_second(cast, stage).await?;
    stage.pause().await;
    stage.voice.say("\n— The agent waits for the decision, as long as it takes.");
    let first = async {
        let decision = wait(&cast.agent, stage, "first", held.text("transition")).await?;
        after_decision(cast, stage, &ledger, &decision).await
    };
    let second = async {
        let decision = wait(&cast.second_agent, stage, "second", second.text("transition")).await?;
        second_decided(stage, &decision);
        Ok::<(), CliError>(())
    };
    // Both waits run at the same time, because reviewers may decide in any order.
    tokio::try_join!(first, second)?;
    stage.voice.say("\nThe scenario has ended. The gateway runs until ctrl-c, so you can explore it in the browser.");
    Ok(())
}

pub(super) fn create(flow: &str, thread: &str) -> DemoRequest {
    let state = json!({
        "raw_text": "Please refund Eva's 40 EUR.", "requested_action": "none", "target_user_id": 17,
        "payment": {"amount": 40, "currency": "EUR", "card": "4000 0000 0000 0002"},
    });
    let context = json!({"title": format!("{flow}: refund 40 EUR to customer 17"), "on_behalf_of": "Eva Example"});
    DemoRequest::Post(
        "/v1/threads".to_owned(),
        json!({"flow": flow, "thread": thread, "state": state, "context": context}),
    )
}

pub(super) async fn propose(
    agent: &DemoMachine,
    thread: &str,
    parent: &str,
    patch: Value,
) -> Result<DemoHttpResponse, CliError> {
    let body = json!({"node": "planner", "parent": parent, "patch": patch, "rationale": "The message asks for it."});
    agent.ask(DemoRequest::Post(format!("/v1/threads/{thread}/transitions"), body)).await
}

async fn open_second(cast: &DemoMachines, stage: &DemoSetup) -> Result<DemoHttpResponse, CliError> {
    stage.voice.say("\n— In another flow the same change needs two people.");
    let made = cast.second_host.ask(create("payouts", SECOND_THREAD)).await?.must_be(201)?;
    let patch = json!({"target_user_id": 99});
    let held = propose(&cast.second_agent, SECOND_THREAD, made.text("transition"), patch).await?.must_be(202)?;
    let until = held.body["review"]["expires_at"].as_str().unwrap_or_default();
    stage.voice.say(&format!("\n  Two people are needed, until {until}. Without their decision, it expires."));
    Ok(held)
}

/// Waits for a decision. Only the first request is printed.
async fn wait(agent: &DemoMachine, stage: &DemoSetup, which: &str, digest: &str) -> Result<DemoHttpResponse, CliError> {
    let ask = || DemoRequest::Wait(format!("/v1/transitions/{digest}/decision"), WAIT_SECS);
    let mut answer = agent.ask(ask()).await?;
    let mut waited = false;
    while answer.status == 202 {
        stage.voice.say(&format!("         … the {which} review is still open"));
        answer = agent.ask_quietly(ask()).await?;
        waited = true;
    }
    if waited {
        agent.say(&answer);
    }
    answer.must_be(200)
}

fn second_decided(stage: &DemoSetup, decision: &DemoHttpResponse) {
    stage.voice.say(&match decision.text("decision") {
        "approved" => "\n— The second review: approved, by two people.".to_owned(),
        "expired" => {
            "\n— The second review EXPIRED: no reviewer decided in time, so nothing was committed. A time-out is never \
                      a person's refusal."
                .to_owned()
        }
        other => format!("\n— The second review: {other}. Nothing was committed."),
    });
}

async fn after_decision(
    cast: &DemoMachines,
    stage: &DemoSetup,
    ledger: &DemoTarget,
    decision: &DemoHttpResponse,
) -> Result<(), CliError> {
    stage.voice.say(&format!("\n— The first review is decided: {}.", decision.text("decision")));
    // Only this member permits a write: a denial, an expiry and a cancellation all leave it false.
    if decision.body["approved"] != json!(true) {
        show_rows(stage, ledger, "Nothing was approved, so nothing is written")?;
        stage.voice.say(&format!("\nReplay everything that was stored:\n{}", export_files::audit_line(stage)));
        return Ok(());
    }
    write(cast, stage, ledger, decision).await?;
    cheat(cast, stage, ledger, decision).await?;
    let line = export_files::keep(&cast.host, stage, THREAD, &decision.body).await?;
    stage.voice.say(&format!(
        "\n— Verify it yourself: check the receipt offline, and replay everything that was stored. Copy these lines:\n{line}\n{}",
        export_files::audit_line(stage)
    ));
    Ok(())
}

fn verify(transition: &str, receipt: &str, write_id: &str) -> DemoRequest {
    let body = json!({"thread": THREAD, "transition": transition, "receipt": receipt, "write_id": write_id});
    DemoRequest::Post("/v1/verify".to_owned(), body)
}

async fn write(
    cast: &DemoMachines,
    stage: &DemoSetup,
    ledger: &DemoTarget,
    decision: &DemoHttpResponse,
) -> Result<(), CliError> {
    stage.pause().await;
    stage.voice.say("\n— The writer verifies, writes a row of its own table, and confirms.");
    let ask = verify(decision.text("transition_digest"), decision.text("receipt"), "write-1");
    let allowed = cast.writer.ask(ask).await?.must_be(200)?;
    ledger.write(THREAD, &allowed.body)?;
    show_rows(stage, ledger, "The row is written")?;
    let result = json!({"result": {"result_ref": "write-1"}});
    cast.writer.ask(DemoRequest::Post("/v1/writes/write-1/confirm".to_owned(), result)).await?.must_be(200)?;
    Ok(())
}

async fn cheat(
    cast: &DemoMachines,
    stage: &DemoSetup,
    ledger: &DemoTarget,
    decision: &DemoHttpResponse,
) -> Result<(), CliError> {
    let (transition, receipt) = (decision.text("transition_digest"), decision.text("receipt"));
    stage.pause().await;
    stage.voice.say("\n— A replay attack: the same call again.");
    denied(cast, stage, ledger, verify(transition, receipt, "write-1")).await?;
    stage.voice.say("\n— A stale receipt: a harmless change was committed since, and the old receipt is used for it.");
    // A proposal needs the current head as its parent.
    let now = cast.writer.ask_quietly(DemoRequest::Get(format!("/v1/threads/{THREAD}"))).await?.must_be(200)?;
    let patch = json!({"requested_action": "payout"});
    let moved = propose(&cast.agent, THREAD, now.text("transition"), patch).await?.must_be(201)?;
    denied(cast, stage, ledger, verify(moved.text("transition"), receipt, "write-2")).await?;
    stage.voice.say("\n— A forged receipt: the claims say the new head, the signature is the old one.");
    let forged = forge(receipt, &moved)?;
    denied(cast, stage, ledger, verify(moved.text("transition"), &forged, "write-3")).await
}

async fn denied(cast: &DemoMachines, stage: &DemoSetup, ledger: &DemoTarget, ask: DemoRequest) -> Result<(), CliError> {
    let answer = cast.writer.ask(ask).await?.must_be(403)?;
    show_rows(stage, ledger, &format!("403 {}: the table is unchanged", answer.text("code")))?;
    stage.pause().await;
    Ok(())
}

/// Forges a receipt as an attacker would: other claims, the same key ID and the old signature.
fn forge(receipt: &str, head: &DemoHttpResponse) -> Result<String, CliError> {
    let broken = || CliError::Demo("the receipt cannot be parsed".to_owned());
    let mut parts = receipt.split('.');
    let (Some(header), Some(claims), Some(signature)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(broken());
    };
    let claims = URL_SAFE_NO_PAD.decode(claims).map_err(|_| broken())?;
    let mut claims: Value = serde_json::from_slice(&claims).map_err(|_| broken())?;
    claims["version"] = head.body["version"].clone();
    claims["transition"] = head.body["transition"].clone();
    // The old signature covers other claims, so `verify` must deny this receipt.
    Ok(format!("{header}.{}.{signature}", URL_SAFE_NO_PAD.encode(canonical(&claims))))
}

fn show_rows(stage: &DemoSetup, ledger: &DemoTarget, words: &str) -> Result<(), CliError> {
    let rows = ledger.rows()?;
    let rows = if rows.is_empty() { "  (no row)".to_owned() } else { format!("  {}", rows.join("\n  ")) };
    stage.voice.say(&format!("\n  {words}. The table `payments`:\n{rows}"));
    Ok(())
}
