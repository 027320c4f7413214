//! `mcp guard`: forwards messages between an MCP client and its server, on standard input and output.
//!
//! Each `tools/call` is an approval request at the gateway. It reaches the server only after the approval was used, with
//! exactly the approved arguments, and its result is reported as the outcome. All other messages pass unchanged.

mod approvals;
mod call;
mod open_calls;
mod open_requests;
mod session;
mod tool_list;
mod upstream;

use std::time::Duration;

use approvals::Approvals;
use open_requests::OpenRequests;
use session::GuardSession;
use tool_list::ToolPins;
use upstream::Upstream;

use crate::cli::args::McpGuardArgs;
use crate::cli::{CliError, CommandExit};

/// Runs until the client or the server ends.
pub fn run(args: &McpGuardArgs) -> Result<CommandExit, CliError> {
    let token = super::token_of(args.gateway.token_file.as_deref())?;
    let address = super::address_of(&args.gateway.gateway, "/aap/v1")?;
    let tools = super::address_of(&args.gateway.gateway, "/v1/callable-tools")?;
    let approvals = Approvals::new(address, tools, &token)?;
    let open = OpenRequests::new(args.state.clone(), &token, args.name.as_deref());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let pins = ToolPins::open(args.state.clone())
        .map_err(|source| CliError::Read { what: "the pinned tools in --state".to_owned(), source })?;
    let wait = Duration::from_secs(args.wait);
    let done = runtime.block_on(async {
        let upstream = Upstream::start(&args.command)?;
        let session = GuardSession::new(approvals, open, pins, args.name.clone(), wait);
        session.run(upstream).await.map_err(CliError::Output)
    });
    // The thread that reads standard input can be blocked in a read that never ends.
    runtime.shutdown_background();
    done
}
