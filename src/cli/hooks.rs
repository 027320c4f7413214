//! `hooks`: prints settings for coding agents, so that their tool calls require approval.

use serde_json::{Value, json};

use super::args::{ClaudeCodeHooks, HooksCommand};
use super::output::CommandOutput;
use super::{CliError, CommandExit, mcp};

/// The path that answers the hooks of Claude Code.
const CLAUDE_CODE: &str = "/v1/hooks/claude-code";

/// The time for the answer itself, in addition to the wait.
const ANSWER_SECS: u64 = 30;

pub fn run(command: &HooksCommand, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    let HooksCommand::ClaudeCode(args) = command;
    let settings = claude_code(args)?;
    let text = serde_json::to_string_pretty(&settings).expect("settings are made of texts, numbers and lists");
    out.answer(text, || settings)?;
    Ok(CommandExit::Yes)
}

/// Returns the settings of Claude Code. Each tool call is blocked if the hook before it fails.
fn claude_code(args: &ClaudeCodeHooks) -> Result<Value, CliError> {
    let after = mcp::address_of(&args.gateway, CLAUDE_CODE)?;
    let mut before = after.clone();
    before.set_query(Some(&format!("wait={}s", args.wait)));
    let hook = |url: &url::Url, timeout: u64| {
        json!({
            "type": "http",
            "url": url,
            "timeout": timeout,
            "headers": {"Authorization": format!("Bearer ${}", args.token_variable)},
            "allowedEnvVars": [args.token_variable],
        })
    };
    let mut asking = hook(&before, args.wait + ANSWER_SECS);
    asking["onFailure"] = json!("block");
    asking["statusMessage"] = json!("Waiting for approval (Countersign)");
    let reporting = json!([{"hooks": [hook(&after, ANSWER_SECS)]}]);
    Ok(json!({"hooks": {
        "PreToolUse": [{"hooks": [asking]}],
        "PostToolUse": reporting,
        "PostToolUseFailure": reporting,
    }}))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::args::{Args, Command};
    use super::*;

    fn settings(args: &[&str]) -> Result<Value, String> {
        let all = ["countersign", "hooks", "claude-code"].iter().chain(args);
        let parsed = Args::try_parse_from(all).map_err(|it| it.to_string())?;
        let Command::Hooks(HooksCommand::ClaudeCode(args)) = &parsed.command else { return Err("another".to_owned()) };
        claude_code(args).map_err(|it| it.to_string())
    }

    #[test]
    fn call_is_blocked_if_its_hook_fails() {
        let told = settings(&["--gateway", "https://gate.example/below", "--wait", "60"]).unwrap();
        let hook = &told["hooks"]["PreToolUse"][0]["hooks"][0];
        assert_eq!(told["hooks"]["PreToolUse"][0].get("matcher"), None, "every tool");
        assert_eq!(hook["onFailure"], "block");
        assert_eq!(hook["url"], "https://gate.example/below/v1/hooks/claude-code?wait=60s");
        assert_eq!(hook["headers"]["Authorization"], "Bearer $COUNTERSIGN_TOKEN");
        assert_eq!(hook["allowedEnvVars"], json!(["COUNTERSIGN_TOKEN"]));
        assert!(hook["timeout"].as_u64() > Some(60), "the gateway answers before the hook is cancelled");
        let after = &told["hooks"]["PostToolUse"][0]["hooks"][0];
        assert_eq!(after["url"], "https://gate.example/below/v1/hooks/claude-code");
        assert_eq!(told["hooks"]["PostToolUse"], told["hooks"]["PostToolUseFailure"]);
    }

    #[test]
    fn guide_shows_the_settings() {
        let guide = include_str!("../../docs/guides/coding-agents.md");
        let told = serde_json::to_string_pretty(&settings(&[]).unwrap()).unwrap();
        assert!(guide.contains(&told), "{told}");
    }

    #[test]
    fn token_is_a_variable_and_never_crosses_the_network_unencrypted() {
        assert!(settings(&["--gateway", "http://gate.example"]).unwrap_err().contains("https://"));
        assert!(settings(&["--token-variable", "$(id)"]).is_err());
        assert!(settings(&["--wait", "601"]).is_err());
        let told = settings(&["--token-variable", "GATE_TOKEN"]).unwrap();
        assert_eq!(told["hooks"]["PostToolUse"][0]["hooks"][0]["headers"]["Authorization"], "Bearer $GATE_TOKEN");
    }
}
