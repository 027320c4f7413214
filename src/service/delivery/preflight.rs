//! Requests that are only sent where a look says that they are waited for.

use url::Url;

use super::Address;
use super::attempt_result::Report;
use crate::domain::delivery::decision_payload::Decided;
use crate::domain::delivery::delivery::Ended;
use crate::domain::delivery::langgraph;
use crate::domain::delivery::preflight::{LOOK_BYTES_MAX, Saw};
use crate::domain::delivery::template::{LookTemplate, filled_address};
use crate::http_client::{Answer, Outcome, Outgoing, Parcel};

/// A request, and the look before it.
pub struct LookFirst {
    look: Url,
    address: Address,
    then: Then,
}

/// What is sent then, and what has to be seen for it.
enum Then {
    /// A run, where the thread has interrupts that wait for this decision.
    LangGraph { runs: Url, assistant: String, decided: Box<Decided> },
    /// A request that an administrator wrote; none where it is only tried out.
    Template { look: LookTemplate, parcel: Option<Parcel> },
}

impl LookFirst {
    /// Of a LangGraph server's thread; nothing if the decision has none.
    pub(super) fn langgraph(address: &Address, assistant: &str, decided: Decided) -> Option<Self> {
        let thread = langgraph::thread_of(&decided)?;
        let look = langgraph::below(&address.url, &["threads", thread])?;
        let runs = langgraph::below(&address.url, &["threads", thread, "runs"])?;
        let then = Then::LangGraph { runs, assistant: assistant.to_owned(), decided: Box::new(decided) };
        Some(Self { look, address: address.clone(), then })
    }

    /// Of a template; nothing if its address cannot be filled.
    pub(super) fn template(
        address: &Address,
        template: &LookTemplate,
        (decided, parcel): (&Decided, Option<Parcel>),
    ) -> Option<Self> {
        let look = filled_address(address.look.as_ref()?, decided)?;
        let then = Then::Template { look: template.clone(), parcel };
        Some(Self { look, address: address.clone(), then })
    }

    /// Looks, and sends if that is what was seen.
    pub(super) async fn run(self, outgoing: &Outgoing) -> Report {
        let answer = match outgoing.get(&self.look, &self.address.headers, LOOK_BYTES_MAX).await {
            Outcome::Answered(answer) => answer,
            failed @ Outcome::Failed(_) => return failed.into(),
        };
        match self.then.parcel(&self.address, &answer) {
            Ok(parcel) => {
                let sent = Report::from(outgoing.post(&parcel).await);
                Report { took: answer.took + sent.took, ..sent }
            }
            Err(saw) => {
                let ended = Ended::Looked { status: answer.status, saw };
                Report { ended, took: answer.took, retry_after: answer.retry_after }
            }
        }
    }
}

impl Then {
    fn parcel(self, address: &Address, answer: &Answer) -> Result<Parcel, Saw> {
        match answer.status {
            200..=299 if answer.cut => return Err(Saw::Unclear),
            200..=299 => (),
            _ => return Err(Saw::Refused),
        }
        match self {
            Self::LangGraph { runs, assistant, decided } => {
                let interrupts = langgraph::waiting(&answer.body, &decided)?;
                Ok(address.plain(runs, &langgraph::run(&assistant, &interrupts, &decided)))
            }
            Self::Template { look, parcel } => match (look.seen(&answer.body), parcel) {
                (Ok(()) | Err(Saw::NotWaiting), None) => Err(Saw::There),
                (Ok(()), Some(parcel)) => Ok(parcel),
                (Err(saw), _) => Err(saw),
            },
        }
    }
}
