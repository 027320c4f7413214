//! The guard in front of an MCP server: a tool call reaches the server once, after its approval.
//!
//! Each `tools/call` is an approval request at the gateway. The guard forwards exactly the approved arguments, after the
//! approval was used, and reports the result as the outcome. A call that waits for reviewers can be a task, which the
//! client polls. Lists of tools have only the tools that the policy allows. All other messages pass unchanged. A session
//! on standard input and output is a part of the command.

pub mod approvals;
pub mod continuations;
pub mod exchange;
pub mod forward;
pub mod headers;
pub mod json_rpc;
pub mod message;
pub mod metadata;
pub mod mirrored;
pub mod not_run;
pub mod open_calls;
pub mod relay;
pub mod review_link;
pub mod server_message;
pub mod sse;
pub mod task_exchange;
pub mod task_guard;
pub mod task_request;
pub mod task_runs;
pub mod task_state;
pub mod tool_guard;
pub mod tool_list;
pub mod upstream;
