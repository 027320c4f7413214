//! The context boundary: counts every refused envelope and records it for auditors without values of the state.

use std::sync::PoisonError;

use countersign_domain::context::{EnvelopeCode, EnvelopeRefusalKind, RefusalCounts};
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{FlowId, NodeId, PrincipalId, ThreadId};
use countersign_domain::threads::thread::Checkpoint;
use countersign_store::change::Draft;
use serde_json::{Value, json};

use crate::episodes::Episodes;
use crate::error::{Error, Result};
use crate::platform::event_recorder;

/// Thread and node of the refused view. `None` if the envelope is not known to be from this gateway.
pub(crate) type RejectedView<'a> = Option<(&'a ThreadId, &'a NodeId)>;

impl Episodes {
    /// Counts and records a refusal. If the refusal cannot be recorded, that is the error.
    pub(crate) async fn at_boundary<T>(&self, by: &PrincipalId, view: RejectedView<'_>, asked: Result<T>) -> Result<T> {
        if let Err(error) = &asked
            && let Some((code, checkpoint)) = refusal(error)
        {
            // The metric counts each refusal, even if the audit log records only the first of many.
            self.core.metrics.boundary_refused(code.as_str());
            self.write_refusal(by, view, code, checkpoint).await?;
        }
        asked
    }

    async fn write_refusal(
        &self,
        by: &PrincipalId,
        view: RejectedView<'_>,
        code: EnvelopeCode,
        checkpoint: Option<Checkpoint>,
    ) -> Result<()> {
        let (thread, node) = view.unzip();
        let kind = EnvelopeRefusalKind { code, thread: thread.cloned(), node: node.cloned() };
        let now = self.core.now();
        let noted = self.boundary.0.lock().unwrap_or_else(PoisonError::into_inner).note(by, kind.clone(), now);
        // Repeated refusals of one caller are only counted, so that they cannot flood the audit log.
        let Some(told) = noted else { return Ok(()) };
        let written = self.refusal_written(by, &kind, told, checkpoint).await;
        // The refusal counts as not recorded, so that the next one is recorded.
        if written.is_err() {
            self.boundary.0.lock().unwrap_or_else(PoisonError::into_inner).untold(by, &kind);
        }
        written
    }

    async fn refusal_written(
        &self,
        by: &PrincipalId,
        kind: &EnvelopeRefusalKind,
        told: RefusalCounts,
        checkpoint: Option<Checkpoint>,
    ) -> Result<()> {
        let flow: Option<FlowId> = match &kind.thread {
            Some(thread) => Some(self.threads.flow_of(thread).await?),
            None => None,
        };
        let (keys, now) = (self.core.keys()?, self.core.now());
        let mut draft = Draft::new(keys.row(), now);
        let data = event_data(by, kind, told, checkpoint);
        event_recorder::outside(&mut draft, flow.as_ref(), now, EventType::EnvelopeRefused, data)?;
        self.core.commit(draft.finish()).await?;
        Ok(())
    }
}

fn event_data(
    by: &PrincipalId,
    kind: &EnvelopeRefusalKind,
    told: RefusalCounts,
    checkpoint: Option<Checkpoint>,
) -> Value {
    json!({
        "by": by, "code": kind.code.as_str(), "thread": kind.thread, "node": kind.node,
        "version": checkpoint.map(|it| it.version), "times": told.times, "others": told.others,
    })
}

/// Returns the code and the head of a refusal, or `None` for another error.
fn refusal(error: &Error) -> Option<(EnvelopeCode, Option<Checkpoint>)> {
    match error {
        Error::NotSealed(why) => Some((why.why.code(), Some(why.checkpoint))),
        Error::Envelope(why) => Some((why.code, why.checkpoint)),
        _ => None,
    }
}
