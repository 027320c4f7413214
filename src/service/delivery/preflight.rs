//! Requests that are only sent where a look says that they are waited for.

use url::Url;

use super::DeliveryTarget;
use super::attempt_result::AttemptReport;
use crate::domain::delivery::decision_payload::DecisionPayload;
use crate::domain::delivery::delivery::AttemptOutcome;
use crate::domain::delivery::langgraph;
use crate::domain::delivery::preflight::{LOOK_BYTES_MAX, PreflightResult};
use crate::domain::delivery::template::{PreflightTemplate, filled_address};
use crate::http_client::{BoundedResponse, HttpClient, HttpOutcome, OutboundRequest};

/// A request, and the look before it.
pub struct PreflightedRequest {
    look: Url,
    address: DeliveryTarget,
    then: PreflightFollowUp,
}

/// What is sent then, and what has to be seen for it.
enum PreflightFollowUp {
    /// A run, where the thread has interrupts that wait for this decision.
    LangGraph { runs: Url, assistant: String, decided: Box<DecisionPayload> },
    /// A request that an administrator wrote; none where it is only tried out.
    Template { look: PreflightTemplate, parcel: Option<OutboundRequest> },
}

impl PreflightedRequest {
    /// Of a LangGraph server's thread; nothing if the decision has none.
    pub(super) fn langgraph(address: &DeliveryTarget, assistant: &str, decided: DecisionPayload) -> Option<Self> {
        let thread = langgraph::thread_of(&decided)?;
        let look = langgraph::below(&address.url, &["threads", thread])?;
        let runs = langgraph::below(&address.url, &["threads", thread, "runs"])?;
        let then = PreflightFollowUp::LangGraph { runs, assistant: assistant.to_owned(), decided: Box::new(decided) };
        Some(Self { look, address: address.clone(), then })
    }

    /// Of a template; nothing if its address cannot be filled.
    pub(super) fn template(
        address: &DeliveryTarget,
        template: &PreflightTemplate,
        (decided, parcel): (&DecisionPayload, Option<OutboundRequest>),
    ) -> Option<Self> {
        let look = filled_address(address.look.as_ref()?, decided)?;
        let then = PreflightFollowUp::Template { look: template.clone(), parcel };
        Some(Self { look, address: address.clone(), then })
    }

    /// Looks, and sends if that is what was seen.
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
                (Ok(()) | Err(PreflightResult::NotWaiting), None) => Err(PreflightResult::There),
                (Ok(()), Some(parcel)) => Ok(parcel),
                (Err(saw), _) => Err(saw),
            },
        }
    }
}
