//! Stops: proposing and verifying, of one flow or of all.

use serde_json::json;

use super::error::Result;
use super::{Service, recorder, retrying};
use crate::domain::event::EventType;
use crate::domain::flow::{Flow, Gateway, Halt};
use crate::domain::id::{FlowId, PrincipalId};
use crate::store::change::Draft;

/// What is stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Everything.
    All,
    /// One flow.
    Flow(FlowId),
}

impl Service {
    /// Sets the stops of a scope as they shall be. What is in progress is not undone, but asking again is refused.
    pub async fn set_halt(&self, by: &PrincipalId, scope: &Scope, halt: &Halt) -> Result<()> {
        retrying!(self.set_halt_once(by, scope, halt))
    }

    async fn set_halt_once(&self, by: &PrincipalId, scope: &Scope, halt: &Halt) -> Result<()> {
        let (keys, now) = (self.keys()?, self.now());
        let mut draft = Draft::new(keys.row(), now);
        let (flow, revision) = match scope {
            Scope::All => {
                let stored = self.gateway(&keys).await?;
                draft.replace(&stored, &Gateway { halt: halt.clone(), ..stored.record.clone() })?;
                (None, stored.revision + 1)
            }
            Scope::Flow(id) => {
                let stored = self.flow(&keys, id).await?;
                draft.replace(&stored, &Flow { halt: halt.clone(), ..stored.record.clone() })?;
                (Some(id), stored.revision + 1)
            }
        };
        let kind = if halt.proposing || halt.verifying { EventType::Halted } else { EventType::HaltLifted };
        // Which revision of its row it made: an audit sees by it that a lifted halt was not put back, or the reverse.
        let data = json!({
            "by": by, "proposing": halt.proposing, "verifying": halt.verifying, "reason": halt.reason, "revision": revision,
        });
        recorder::outside(&mut draft, flow, now, kind, data)?;
        self.commit(draft.finish()).await
    }
}
