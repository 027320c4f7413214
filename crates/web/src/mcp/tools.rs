//! The MCP tools. Each calls the same code as the API route with the same effect, with the same checks of the token.

use std::sync::Arc;
use std::time::Duration;

use countersign_service::error::{Error, Result};
use countersign_service::operations::Operations;
use countersign_service::platform::trace_context;
use countersign_service::proposals::Proposals;
use http::request::Parts;
use rmcp::handler::server::ServerHandler;
use rmcp::handler::server::common::schema_for_type;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::schemars::JsonSchema;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::McpCaller;
use super::errors;
use super::inputs::{LookAtHoldInput, ProposeInput, ReadViewInput, TakeBackInput, WaitForDecisionInput};
use crate::api::long_poll::LongPoll;
use crate::api::transitions::view::{self, TransitionCapabilities};
use crate::api::{json_body, threads, transitions};
use crate::state::{AppState, Capability, EdgeConfig, FromState, capabilities};

/// The default wait for a decision. It is shorter than the tool time limits of common clients.
const WAIT_DEFAULT_SECS: u32 = 30;

/// The server instructions for models.
const INSTRUCTIONS: &str = "Countersign is an approval gateway for shared state. Read your view of a thread and \
    propose a change. The flow's policy commits it, rejects it, or holds it for approval. No tool approves a change: \
    only reviewers do, in a browser. When a change is held, give your user the review's URL, and call \
    wait_for_decision until the review ends. If a call fails, follow its `next_step`. Do not try to avoid a \
    rejection with another change.";

capabilities! {
    struct McpToolCapabilities {
        edge: Capability<EdgeConfig>,
        operations: Capability<Operations>,
        proposals: Capability<Proposals>,
        transitions: TransitionCapabilities,
        waiting: LongPoll,
    }
}

/// The tools of one gateway.
#[derive(Clone)]
pub struct McpTools {
    app: McpToolCapabilities,
    listed: Arc<[Tool]>,
}

impl FromState for McpTools {
    fn from_state(app: &AppState) -> Self {
        // The list is built once, because it is the same for every caller.
        Self { app: McpToolCapabilities::from_state(app), listed: listed().into() }
    }
}

impl McpTools {
    async fn call(&self, asker: &McpCaller, name: &str, arguments: Map<String, Value>) -> Result<Value> {
        match name {
            "read_view" => self.read_view(asker, self.read(arguments)?).await,
            "propose" => self.propose(asker, self.read(arguments)?).await,
            "look_at_hold" => self.look_at_hold(asker, self.read(arguments)?).await,
            "wait_for_decision" => self.wait_for_decision(asker, self.read(arguments)?).await,
            "take_back" => self.take_back(asker, self.read(arguments)?).await,
            // An unknown tool gets a tool result with a next step, so that the model can correct itself.
            _ => Err(Error::NotFound("tool")),
        }
    }

    /// Converts arguments to a tool's input. They pass through the strict parser, which also normalizes them.
    fn read<T: DeserializeOwned>(&self, arguments: Map<String, Value>) -> Result<T> {
        json_body::shaped(json_body::strict(&self.app.edge, Value::Object(arguments).to_string().as_bytes())?)
    }

    async fn read_view(&self, asker: &McpCaller, ask: ReadViewInput) -> Result<Value> {
        threads::state_for_node(&self.app.transitions.threads, &asker.machine, &ask.thread, &ask.node, ask.version)
            .await
    }

    async fn propose(&self, asker: &McpCaller, ask: ProposeInput) -> Result<Value> {
        let ProposeInput { thread, node, parent, patch, format, reaffirm, attempt, tool, usage, rationale, step } = ask;
        let ask = transitions::ProposeRequest {
            node,
            parent,
            patch,
            format,
            reaffirm,
            attempt,
            tool,
            usage,
            rationale,
            step,
        };
        // The HTTP API uses the same conversion, so both interfaces apply the same rules.
        let proposal = transitions::read_proposal(thread, ask)?;
        let answer = self.app.proposals.propose(&asker.machine.0, &proposal).await?;
        let told = view::answer(&self.app.transitions.core, &answer)?;
        Ok(serde_json::from_str(told.body.expose()).expect("an answer is JSON"))
    }

    async fn look_at_hold(&self, asker: &McpCaller, ask: LookAtHoldInput) -> Result<Value> {
        view::transition_json(&self.app.transitions, &asker.machine, ask.transition).await
    }

    async fn wait_for_decision(&self, asker: &McpCaller, ask: WaitForDecisionInput) -> Result<Value> {
        let wished = Duration::from_secs(ask.seconds.unwrap_or(WAIT_DEFAULT_SECS).into());
        let decided =
            transitions::decided(&self.app.transitions, &self.app.waiting, &asker.machine, ask.transition, wished)
                .await?;
        // No decision yet is no error, because the model only has to call the tool again.
        Ok(decided.map_or_else(transitions::still_held, |it| json!(it)))
    }

    async fn take_back(&self, asker: &McpCaller, ask: TakeBackInput) -> Result<Value> {
        self.app.transitions.threads.cancel(&asker.machine.0, ask.transition, &ask.reason).await?;
        Ok(json!({"transition": ask.transition, "status": "cancelled"}))
    }
}

impl ServerHandler for McpTools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("countersign", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.listed.to_vec()))
    }

    /// Accepts every level. The gateway sends no log messages to clients.
    #[expect(deprecated, reason = "clients of earlier protocol versions still set a level")]
    async fn set_level(
        &self,
        _: rmcp::model::SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<(), ErrorData> {
        Ok(())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.listed.iter().find(|it| it.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        let asker = context.extensions.get::<Parts>().and_then(|it| it.extensions.get::<McpCaller>());
        // Every message gets a caller before the SDK sees it, so a missing one is a fault of the gateway.
        let asker = asker.ok_or_else(|| ErrorData::internal_error("the message has no caller", None))?;
        let work = self.call(asker, &request.name, request.arguments.unwrap_or_default());
        // The SDK answers in its own task, so the trace context is set again.
        let done = trace_context::within(asker.trace.clone(), work).await;
        Ok(done
            .map_or_else(|error| errors::told(&self.app.operations, asker, &error), CallToolResult::structured)
            .into())
    }
}

fn listed() -> Vec<Tool> {
    vec![
        tool::<ReadViewInput>(
            "read_view",
            "Read your node's view of a thread's state. Returns `state`, `version` and `transition`. A proposal \
             names that `transition` as its `parent`.",
        )
        .with_annotations(looks()),
        tool::<ProposeInput>(
            "propose",
            "Propose a change to a thread's state. Returns the `outcome`: `committed`, or `held` with the `review` \
             in which reviewers decide. Repeating the same call returns the same result and has no second effect.",
        )
        // A repeated call has no second effect, so clients may repeat it.
        .with_annotations(ToolAnnotations::new().destructive(false).idempotent(true).open_world(false)),
        tool::<LookAtHoldInput>(
            "look_at_hold",
            "Read a transition that you proposed: its `status`, the changes that you may see, and the review in which \
             reviewers decide.",
        )
        .with_annotations(looks()),
        tool::<WaitForDecisionInput>(
            "wait_for_decision",
            "Wait until reviewers have decided on a held transition. Returns the decision and, if it is approved, the \
             receipt that a writer needs. Returns `status: held` if there is no decision yet: then call it again.",
        )
        .with_annotations(looks()),
        tool::<TakeBackInput>(
            "take_back",
            "Cancel a held transition that you proposed, so that the thread can continue.",
        )
        // A cancelled proposal is lost, so clients may ask their user before the call.
        .with_annotations(ToolAnnotations::new().destructive(true).idempotent(false).open_world(false)),
    ]
}

fn tool<T: JsonSchema + 'static>(name: &'static str, description: &'static str) -> Tool {
    let mut schema = Map::clone(&schema_for_type::<T>());
    let members = schema.get_mut("properties").and_then(Value::as_object_mut);
    members.into_iter().flat_map(|it| it.values_mut()).for_each(name_one_type);
    Tool::new(name, description, schema)
}

/// Removes null from the types of an optional member. Some clients translate schemas for models that know one type for
/// each member.
fn name_one_type(member: &mut Value) {
    let Some(Value::Array(types)) = member.get_mut("type") else { return };
    types.retain(|it| it != "null");
    if let [only] = types.as_slice() {
        member["type"] = only.clone();
    }
}

fn looks() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).open_world(false)
}
