//! Asks the user of a client to open the page of a review, if the client can do so (URL elicitation).

use serde_json::{Map, Value, json};

use crate::approvals::Approval;

/// The first version of the protocol in which a server asks by an interim result.
const WITH_INTERIM_RESULTS: &str = "2026";

/// The beginning of the state that the guard sends with an interim result. The state has no authority: the repeated call
/// finds its request by its arguments, like any other call.
const STATE: &str = "countersign review, round ";

/// The most interim results in a row. Some clients give up after ten.
const ROUNDS_MAX: u32 = 8;

/// The error that asks a client to open pages before it repeats its request.
const PAGES_REQUIRED: i64 = -32042;

/// How the user of a client can be asked to open a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkSupport {
    /// The client cannot show links.
    No,
    /// By an error, since version 2025-11-25 of the protocol.
    Error,
    /// By an interim result, since version 2026-07-28. The client then sends the call again.
    InterimResult {
        /// The number of interim results before.
        round: u32,
        /// Whether the user did not want to open the page.
        is_declined: bool,
    },
}

/// The response that asks a client to open a page.
pub enum LinkRequest {
    Error(Value),
    Result(Value),
}

impl LinkSupport {
    /// Reads how a client supports links from a call. Earlier versions name it when a session begins.
    pub fn of_call(params: &Map<String, Value>) -> Self {
        let meta = |name: &str| params.get("_meta")?.get(format!("io.modelcontextprotocol/{name}"));
        let is_new = meta("protocolVersion").and_then(Value::as_str).is_some_and(|it| it >= WITH_INTERIM_RESULTS);
        if !is_new || !meta("clientCapabilities").is_some_and(opens_pages) {
            return Self::No;
        }
        let responses = params.get("inputResponses").and_then(Value::as_object);
        let is_declined = responses.is_some_and(|it| it.values().any(|it| it["action"] != "accept"));
        let round = params.get("requestState").and_then(Value::as_str).and_then(round_of);
        Self::InterimResult { round: round.unwrap_or_default(), is_declined: is_declined && round.is_some() }
    }

    /// Checks whether the user is asked at once, before the call waits for a decision.
    pub const fn asks_first(self, asked: &Approval) -> bool {
        match self {
            Self::No => false,
            Self::Error => asked.is_new,
            Self::InterimResult { round, is_declined } => is_declined || asked.is_new && round == 0,
        }
    }

    /// Checks whether the user is asked to open the page before the call becomes a task.
    pub const fn asks_user(self, asked: &Approval) -> bool {
        asked.page.is_some() && self.asks_first(asked) && !matches!(self, Self::InterimResult { is_declined: true, .. })
    }
}

/// Returns whether the state of a request is one of the guard, and not one of the server.
pub fn is_state(state: &str) -> bool {
    round_of(state).is_some()
}

/// Returns whether a session begins with this message, and its client can show links.
pub fn begins_with_links(message: &Value) -> bool {
    message["method"] == "initialize" && opens_pages(&message["params"]["capabilities"])
}

/// Returns the words about a call that waits for reviewers.
pub fn text_of(asked: &Approval) -> String {
    let at = asked.page.as_ref().map_or_else(String::new, |it| format!(" at {it}"));
    format!(
        "This call waits for the approval of a reviewer{at} and was not run. Call the same tool again with exactly the \
         same arguments to wait for the decision."
    )
}

/// Returns the error or the result that asks a client to open the page of a review, if the client can do so.
pub fn request_of(link: LinkSupport, tool: &str, asked: &Approval) -> Option<LinkRequest> {
    let message =
        format!("The call of `{tool}` waits for the approval of a reviewer. If you can decide it, open the page.");
    let mut page = json!({"mode": "url", "url": asked.page.as_ref()?, "message": message});
    match link {
        LinkSupport::Error => {
            page["elicitationId"] = json!(asked.id);
            let data = json!({"elicitations": [page]});
            Some(LinkRequest::Error(json!({"code": PAGES_REQUIRED, "message": text_of(asked), "data": data})))
        }
        LinkSupport::InterimResult { round, is_declined: false } if round < ROUNDS_MAX => {
            let mut result = json!({"resultType": "input_required", "requestState": format!("{STATE}{}", round + 1)});
            if round == 0 {
                result["inputRequests"] = json!({"review": {"method": "elicitation/create", "params": page}});
            }
            Some(LinkRequest::Result(result))
        }
        LinkSupport::InterimResult { .. } | LinkSupport::No => None,
    }
}

fn round_of(state: &str) -> Option<u32> {
    state.strip_prefix(STATE)?.parse().ok()
}

fn opens_pages(capabilities: &Value) -> bool {
    capabilities["elicitation"]["url"].is_object()
}
