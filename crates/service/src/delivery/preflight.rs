//! Requests that are sent only if a preflight request shows that the receiver waits for them.

use countersign_adapters::http_client::{BoundedResponse, HttpClient, HttpOutcome, OutboundRequest};
use countersign_domain::delivery::decision_payload::DecisionPayload;
use countersign_domain::delivery::delivery_record::AttemptOutcome;
use countersign_domain::delivery::langgraph;
use countersign_domain::delivery::preflight::{LOOK_BYTES_MAX, PreflightResult};
use countersign_domain::delivery::template::{PreflightTemplate, filled_address};
use url::Url;

use super::attempt_result::AttemptReport;
use crate::delivery::target::DeliveryTarget;

/// A request with its preflight request.
pub struct PreflightedRequest {
    look: Url,
    address: DeliveryTarget,
    then: PreflightFollowUp,
}

/// The request to send, and the condition for it.
enum PreflightFollowUp {
    /// A run, if the thread has interrupts that wait for this decision.
    LangGraph { runs: Url, assistant: String, decided: Box<DecisionPayload> },
    /// A request from a template. `None` if only the preflight request is tested.
    Template { look: PreflightTemplate, parcel: Option<OutboundRequest> },
}

impl PreflightedRequest {
    /// Returns the request for the thread of a LangGraph server, or `None` if the decision has no thread.
    pub(super) fn langgraph(address: &DeliveryTarget, assistant: &str, decided: DecisionPayload) -> Option<Self> {
        let thread = langgraph::thread_of(&decided)?;
        let look = langgraph::below(&address.url, &["threads", thread])?;
        let runs = langgraph::below(&address.url, &["threads", thread, "runs"])?;
        let then = PreflightFollowUp::LangGraph { runs, assistant: assistant.to_owned(), decided: Box::new(decided) };
        Some(Self { look, address: address.clone(), then })
    }

    /// Returns the request of a template, or `None` if its URL cannot be filled in.
    pub(super) fn template(
        address: &DeliveryTarget,
        template: &PreflightTemplate,
        decided: &DecisionPayload,
        parcel: Option<OutboundRequest>,
    ) -> Option<Self> {
        let look = filled_address(address.look.as_ref()?, decided)?;
        let then = PreflightFollowUp::Template { look: template.clone(), parcel };
        Some(Self { look, address: address.clone(), then })
    }

    /// Sends the preflight request, and then the request if the receiver waits for it.
    pub(super) async fn run(self, outgoing: &HttpClient) -> AttemptReport {
        let answer = match outgoing.get(&self.look, &self.address.headers, LOOK_BYTES_MAX).await {
            HttpOutcome::Answered(answer) => answer,
            failed @ HttpOutcome::Failed(_) => return failed.into(),
        };
        match self.then.parcel(&self.address, &answer) {
            Ok(parcel) => {
                let sent = AttemptReport::from(outgoing.post(&parcel).await);
                AttemptReport { took: answer.took + sent.took, ..sent }
            }
            Err(saw) => {
                let ended = AttemptOutcome::Looked { status: answer.status, saw };
                AttemptReport { ended, took: answer.took, retry_after: answer.retry_after }
            }
        }
    }
}

impl PreflightFollowUp {
    fn parcel(self, address: &DeliveryTarget, answer: &BoundedResponse) -> Result<OutboundRequest, PreflightResult> {
        match answer.status {
            // A truncated response may lack the value that shows whether the receiver waits.
            200..=299 if answer.cut => return Err(PreflightResult::Unclear),
            200..=299 => (),
            _ => return Err(PreflightResult::Refused),
        }
        match self {
            Self::LangGraph { runs, assistant, decided } => {
                let interrupts = langgraph::waiting(&answer.body, &decided)?;
                Ok(address.plain(runs, &langgraph::run(&assistant, &interrupts, &decided)))
            }
            Self::Template { look, parcel } => match (look.seen(&answer.body), parcel) {
                // A test has no request to send. Reaching the value is its success.
                (Ok(()) | Err(PreflightResult::NotWaiting), None) => Err(PreflightResult::There),
                (Ok(()), Some(parcel)) => Ok(parcel),
                (Err(saw), _) => Err(saw),
            },
        }
    }
}
