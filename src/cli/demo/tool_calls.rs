//! A support agent calls tools of the MCP server behind the gateway. A lookup runs at once, and a refund is held.

use serde_json::{Value, json};

use super::DemoSetup;
use super::accounts::DemoMachines;
use super::client::{DemoMachine, DemoRequest};
use super::mcp_server::SERVER;
use crate::cli::CliError;

/// The start of the answer to a call that waits longer than the gateway does.
const PENDING: &str = "This call waits for the approval";

/// Plays the part of the agent until its refund is decided.
pub(super) async fn tell(cast: &DemoMachines, stage: &DemoSetup) -> Result<(), CliError> {
    stage.pause().await;
    stage.voice.say("\n— A support agent calls tools of an MCP server behind the gateway. A lookup runs at once.");
    call(&cast.support, stage, "look_up_order", json!({"order": "B-77"})).await?;
    stage.voice.say("\n— A refund is held for approval. Its reviewer sees the tool with its arguments.");
    refund(cast, stage, "B-77").await
}

/// Calls the held tool, and waits for the decision as a model does: it calls again with the same arguments.
pub(super) async fn refund(cast: &DemoMachines, stage: &DemoSetup, order: &str) -> Result<(), CliError> {
    let arguments = json!({"order": order, "customer": "C-17", "amount": 40});
    let mut text = call(&cast.support, stage, "issue_refund", arguments.clone()).await?;
    while text.starts_with(PENDING) {
        text = ask(&cast.support, "issue_refund", &arguments).await?;
    }
    stage.voice.say(&format!("\n— The refund of order {order} has ended. The agent got: {text}"));
    Ok(())
}

async fn call(agent: &DemoMachine, stage: &DemoSetup, tool: &str, arguments: Value) -> Result<String, CliError> {
    stage.voice.say(&format!("\n support ▸ tools/call {tool} {arguments}"));
    let text = ask(agent, tool, &arguments).await?;
    stage.voice.say(&format!(" support ◂ {text}"));
    Ok(text)
}

/// Returns the text of the tool's result.
async fn ask(agent: &DemoMachine, tool: &str, arguments: &Value) -> Result<String, CliError> {
    let params = json!({"name": tool, "arguments": arguments});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let answer =
        agent.ask_quietly(DemoRequest::Post(format!("/mcp/upstreams/{SERVER}"), message)).await?.must_be(200)?;
    let text = answer.body["result"]["content"][0]["text"].as_str();
    text.map(str::to_owned).ok_or_else(|| CliError::Demo(format!("the tool returned {}", answer.body)))
}
