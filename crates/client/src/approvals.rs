//! Approval requests: approvals of single tool calls.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_domain::chain::receipt::Verification;
use countersign_domain::json::canonical::canonical;
use countersign_domain::keys::PublicKeys;
use countersign_domain::threads::approval_request::{self, CallStatus};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::client::{Client, now};
use crate::error::ClientError;
use crate::exchange::{GatewayAnswer, GatewayRequest, Patience};
use crate::mismatch::{AnswerMismatch, claims_of, must};

/// The path of the approval requests.
const REQUESTS: &str = "/aap/v1/requests";

/// The longest wait of one request. The gateway limits it too.
const WAIT_SECS_MAX: u64 = 25;

/// A call that needs an approval.
#[derive(Clone, Debug)]
pub struct CallToApprove<'a> {
    pub tool: &'a str,
    pub server: Option<&'a str>,
    pub arguments: &'a Map<String, Value>,
    /// The time for the decision, such as `10m`.
    pub timeout: &'a str,
    /// The reason, for reviewers.
    pub reasoning: Option<&'a str>,
    pub definition: ToolState,
}

/// Whether the server has changed the definition of a tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToolState {
    Unchanged,
    Changed,
}

/// Whether equal calls share a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestSharing {
    /// The key names the request.
    ByKey,
    /// Equal calls of the instance find the request, also without its key.
    ByCall,
}

/// An approval request.
#[derive(Clone, Debug, Deserialize)]
pub struct ToolApproval {
    pub id: String,
    pub tool: String,
    pub server: Option<String>,
    pub status: ToolApprovalStatus,
    pub arguments: Map<String, Value>,
    pub agent_reasoning: Option<String>,
    pub created_at: String,
    pub decision: Option<Decision>,
    pub consumption: Option<Consumption>,
    /// The page of the pending review.
    #[serde(skip)]
    pub page: Option<String>,
    /// The receipt of an approval by reviewers.
    #[serde(skip)]
    pub receipt: Option<String>,
    /// Whether the lease of a used approval has ended without an outcome.
    #[serde(skip)]
    pub outcome_is_unknown: bool,
    /// Whether the request says that the server has changed the tool's definition.
    #[serde(skip)]
    pub tool_has_changed: bool,
    /// Whether this answer created the request.
    #[serde(skip)]
    pub is_new: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolApprovalStatus {
    Pending,
    Approved,
    Denied,
    Expired,
    Cancelled,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Decision {
    /// The reason, from a reviewer or the policy.
    pub note: Option<String>,
    pub decided_at: String,
}

/// The use of an approval.
#[derive(Clone, Debug, Deserialize)]
pub struct Consumption {
    pub consumed_at: String,
    pub outcome: Option<ReportedOutcome>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ReportedOutcome {
    pub status: CallStatus,
    pub note: Option<String>,
    pub reported_at: String,
}

/// A used approval. Run the call once, now, with exactly the arguments of the request.
#[derive(Clone, Debug)]
pub struct ConsumedApproval {
    pub request: ToolApproval,
    pub claims: Verification,
    /// The signed reservation.
    pub verification: String,
}

/// The tools that the policy allows.
#[derive(Clone, Debug, Deserialize)]
pub struct AllowedToolNames {
    pub callable: BTreeSet<String>,
    /// The tools of the same servers that the policy names and the request does not.
    pub missing: Vec<String>,
    /// The effect of a call of a tool whose definition has changed: `refuse` or `hold`.
    pub changed: String,
}

impl ConsumedApproval {
    /// Returns how long the call may run.
    pub fn lease(&self) -> Duration {
        let secs = self.claims.exp.saturating_sub(self.claims.iat);
        Duration::from_secs(secs.try_into().unwrap_or_default())
    }
}

impl Client {
    /// Asks for the approval of a call. The same key again returns the same request. The policy may decide at once.
    pub async fn ask(
        &self,
        key: &str,
        call: &CallToApprove<'_>,
        sharing: RequestSharing,
    ) -> Result<ToolApproval, ClientError> {
        let mut body = json!({"tool": call.tool, "arguments": call.arguments, "timeout": call.timeout});
        if let Some(server) = call.server {
            body["server"] = json!(server);
        }
        if let Some(reasoning) = call.reasoning {
            body["agent_reasoning"] = json!(reasoning);
        }
        if call.definition == ToolState::Changed {
            body["tool_has_changed"] = json!(true);
        }
        let path = match sharing {
            RequestSharing::ByKey => REQUESTS.to_owned(),
            RequestSharing::ByCall => format!("{REQUESTS}?share=true"),
        };
        let request = GatewayRequest::new(Method::POST, path).key(key).body(body);
        let found = read(&self.exchange(&request, Patience::Short).await?)?;
        check_call(&found, call)?;
        Ok(found)
    }

    /// Reads a request, and waits up to that time for its decision. Without a wait it returns at once.
    pub async fn request(&self, id: &str, wait: Duration) -> Result<ToolApproval, ClientError> {
        let path = match wait.is_zero() {
            true => path_of(id)?,
            false => format!("{}?wait={}s", path_of(id)?, wait.as_secs().clamp(1, WAIT_SECS_MAX)),
        };
        self.about(id, GatewayRequest::new(Method::GET, path), Patience::Long).await
    }

    /// Cancels a pending request.
    pub async fn cancel(&self, id: &str) -> Result<ToolApproval, ClientError> {
        let cancelled = self.about(id, GatewayRequest::new(Method::DELETE, path_of(id)?), Patience::Short).await;
        match cancelled {
            // An earlier attempt, whose answer was lost, may have cancelled it.
            Err(refused) if refused.code() == "already_terminal" => {
                let found = self.request(id, Duration::ZERO).await?;
                if found.status == ToolApprovalStatus::Cancelled { Ok(found) } else { Err(refused) }
            }
            other => other,
        }
    }

    /// Uses the approval of a call, right before the call. If this fails, do not run the call. The same key again gets the
    /// same answer while the lease is valid. With keys, the use of the request by this key must be signed. TLS alone
    /// protects the arguments of the answer, so they are compared with those of the call.
    pub async fn consume(
        &self,
        id: &str,
        call: &CallToApprove<'_>,
        key: &str,
        keys: Option<&PublicKeys>,
    ) -> Result<ConsumedApproval, ClientError> {
        let request = GatewayRequest::new(Method::POST, format!("{}/consume", path_of(id)?)).key(key);
        let answer = self.exchange(&request, Patience::Short).await?;
        let verification = answer.header("countersign-verification").unwrap_or_default();
        let used = ConsumedBy { id, call, key };
        Ok(used.bound(read(&answer)?, verification, keys)?)
    }

    /// Reports the outcome of a call. Repeats the report for a while.
    pub async fn report(&self, id: &str, status: CallStatus, note: Option<&str>) -> Result<ToolApproval, ClientError> {
        let name = if status == CallStatus::Succeeded { "succeeded" } else { "failed" };
        let mut body = json!({"status": name});
        if let Some(note) = note {
            body["note"] = json!(note);
        }
        let request = GatewayRequest::new(Method::POST, format!("{}/outcome", path_of(id)?)).body(body);
        self.about(id, request, Patience::Long).await
    }

    /// Returns those of the named tools that the policy allows.
    pub async fn callable_tools(&self, tools: &[String]) -> Result<AllowedToolNames, ClientError> {
        let request = GatewayRequest::new(Method::POST, "/v1/callable-tools").body(json!({"tools": tools}));
        self.exchange(&request, Patience::Short).await?.read()
    }

    async fn about(&self, id: &str, request: GatewayRequest, patience: Patience) -> Result<ToolApproval, ClientError> {
        let found = read(&self.exchange(&request, patience).await?)?;
        must(found.id == id, AnswerMismatch::Request)?;
        Ok(found)
    }
}

/// The use of a request by a key.
struct ConsumedBy<'a> {
    id: &'a str,
    call: &'a CallToApprove<'a>,
    key: &'a str,
}

impl ConsumedBy<'_> {
    /// Returns the used approval, if the answer is the one to this use.
    fn bound(
        &self,
        request: ToolApproval,
        verification: &str,
        keys: Option<&PublicKeys>,
    ) -> Result<ConsumedApproval, AnswerMismatch> {
        must(request.id == self.id, AnswerMismatch::Request)?;
        check_call(&request, self.call)?;
        must(request.status == ToolApprovalStatus::Approved && request.consumption.is_some(), AnswerMismatch::Unused)?;
        let claims = claims_of(verification, &format!("request:{}", self.id), keys)?;
        // A recorded answer to an earlier use is refused.
        must(claims.write_id.as_str() == reservation_of(self.id, self.key), AnswerMismatch::Write)?;
        // `exp` has whole seconds, so the last second counts.
        must(now().seconds() <= claims.exp, AnswerMismatch::Expired)?;
        Ok(ConsumedApproval { request, claims, verification: verification.to_owned() })
    }
}

/// Returns the path of a request. Another form of an id could name another path.
fn path_of(id: &str) -> Result<String, ClientError> {
    match approval_request::thread_of(id) {
        Some(_) => Ok(format!("{REQUESTS}/{id}")),
        None => Err(ClientError::SetUp("an approval request has a UUID as its id")),
    }
}

/// Checks that a request is about this call.
fn check_call(request: &ToolApproval, call: &CallToApprove<'_>) -> Result<(), AnswerMismatch> {
    must(request.tool == call.tool && request.server.as_deref() == call.server, AnswerMismatch::Tool)?;
    // The gateway spells numbers in one way.
    let canonical_of = |it: &Map<String, Value>| canonical(&Value::Object(it.clone()));
    must(canonical_of(&request.arguments) == canonical_of(call.arguments), AnswerMismatch::Arguments)
}

/// Returns the name of the reservation that uses a request by a key.
fn reservation_of(id: &str, key: &str) -> String {
    let hash = Sha256::new().chain_update(id).chain_update([0]).chain_update(key).finalize();
    format!("call-{}", URL_SAFE_NO_PAD.encode(hash))
}

fn read(answer: &GatewayAnswer) -> Result<ToolApproval, ClientError> {
    let header = |name| answer.header(name).map(str::to_owned);
    Ok(ToolApproval {
        page: header("countersign-review"),
        receipt: header("countersign-receipt"),
        outcome_is_unknown: answer.header("countersign-outcome") == Some("unknown"),
        tool_has_changed: answer.header("countersign-tool") == Some("changed"),
        is_new: answer.status == 201,
        ..answer.read()?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(arguments: &Value) -> ToolApproval {
        let request = json!({"id": "0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47", "tool": "refund", "status": "approved",
            "arguments": arguments, "created_at": "2026-11-27T00:00:00.000Z"});
        serde_json::from_value(request).unwrap()
    }

    fn call(arguments: &Map<String, Value>) -> CallToApprove<'_> {
        CallToApprove {
            tool: "refund",
            server: None,
            arguments,
            timeout: "10m",
            reasoning: None,
            definition: ToolState::Unchanged,
        }
    }

    #[test]
    fn answer_about_another_call_is_refused() {
        let arguments = json!({"amount": 40.0, "to": ["a"]}).as_object().unwrap().clone();
        let call = call(&arguments);
        assert_eq!(check_call(&request(&json!({"to": ["a"], "amount": 40})), &call), Ok(()));
        for other in [json!({"amount": "40", "to": ["a"]}), json!({"amount": 40}), json!({"amount": 40, "to": ["b"]})] {
            assert_eq!(check_call(&request(&other), &call), Err(AnswerMismatch::Arguments));
        }
        let same = request(&json!(arguments));
        assert_eq!(check_call(&same, &CallToApprove { tool: "delete", ..call.clone() }), Err(AnswerMismatch::Tool));
        assert_eq!(check_call(&same, &CallToApprove { server: Some("crm"), ..call }), Err(AnswerMismatch::Tool));
    }

    #[test]
    fn recorded_answer_of_an_earlier_use_is_refused() {
        let (keys, arguments) = (crate::signed::keys(1), Map::new());
        let call = call(&arguments);
        let mut answer = request(&json!({}));
        let id = answer.id.clone();
        let unused = answer.clone();
        answer.consumption = Some(Consumption { consumed_at: answer.created_at.clone(), outcome: None });
        let signed = |key: &str| {
            let thread = format!("request:{id}");
            crate::signed::reservation(&keys, &thread, &reservation_of(&id, key), now().plus(Duration::from_secs(30)))
        };
        let code = |request: &ToolApproval, verification: &str| {
            let used = ConsumedBy { id: &id, call: &call, key: "c1" };
            used.bound(request.clone(), verification, Some(keys.trusted()))
                .map_or_else(AnswerMismatch::code, |_| "bound")
        };
        assert_eq!(code(&answer, &signed("c1")), "bound");
        assert_eq!(code(&answer, &signed("c0")), "write_mismatch");
        assert_eq!(code(&unused, &signed("c1")), "approval_unused");
        assert_eq!(code(&answer, ""), "receipt_malformed");
        let other = ToolApproval { id: "another".to_owned(), ..answer };
        assert_eq!(code(&other, &signed("c1")), "request_mismatch");
    }

    #[test]
    fn only_the_id_of_a_request_is_a_part_of_a_path() {
        for id in ["../../v1/halts", "a/b", "", "x?share=true"] {
            assert!(path_of(id).is_err(), "{id}");
        }
        assert!(path_of("0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47").is_ok());
    }
}
