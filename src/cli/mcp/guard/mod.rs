//! `mcp guard`: forwards messages between an MCP client, on standard input and output, and its server.

mod approvals;
mod session;
mod upstream;

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use countersign_client::Client;
use countersign_domain::primitives::sanitize;
use countersign_mcp_guard::approvals::ApprovalFailure;
use countersign_mcp_guard::tool_guard::ToolGuard;
use countersign_mcp_guard::tool_list::ToolPins;

use url::Url;

use approvals::GatewayApprovals;
use session::GuardSession;
use upstream::{child, remote};

use crate::cli::args::McpGuardArgs;
use crate::cli::{CliError, CommandExit};

/// Runs until the client or the server ends.
pub fn run(args: &McpGuardArgs) -> Result<CommandExit, CliError> {
    let token = super::token_of(args.gateway.token_file.as_deref())?;
    let client = Client::new(&super::address_of(&args.gateway.gateway, "")?, &token);
    let approvals = GatewayApprovals(client.map_err(|error| CliError::Given(error.to_string()))?);
    let pins = ToolPins::open(args.state.clone())
        .map_err(|source| CliError::Read { what: "the pinned tools in --state".to_owned(), source })?;
    let pins = Arc::new(pins);
    let guard = ToolGuard {
        approvals: approvals.clone(),
        pins: Arc::clone(&pins),
        continuations: Arc::default(),
        tasks: Arc::default(),
        server: args.name.clone(),
        // A guard has one caller.
        caller: String::new(),
        wait: Duration::from_secs(args.wait),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let done = runtime.block_on(async {
        tokio::spawn(warn_without_gateway(approvals, args.gateway.gateway.clone()));
        let upstream = match &args.upstream {
            Some(url) => {
                let secret = args.upstream_token_file.as_deref().map(super::read_token).transpose()?;
                remote::start(url.clone(), secret, pins)?
            }
            None => child::start(&args.command)?,
        };
        GuardSession::new(guard).run(upstream).await.map_err(CliError::Output)
    });
    // The thread that reads standard input can be blocked in a read that never ends.
    runtime.shutdown_background();
    done
}

/// Warns on standard error if no call can run. The client can start before the gateway, so the guard goes on.
async fn warn_without_gateway(approvals: GatewayApprovals, gateway: Url) {
    let why = match approvals.check().await {
        Ok(()) => return,
        Err(ApprovalFailure::Unavailable) => "it cannot be reached. Start it, or set --gateway to its URL".to_owned(),
        Err(ApprovalFailure::Refused { message, .. }) => sanitize::printed(&message),
    };
    // The error is ignored: standard error is the only output for people.
    let _ = writeln!(io::stderr(), "countersign: no tool call can run by the gateway at {gateway}: {why}");
}
