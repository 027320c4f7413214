//! Seeds an episode: the events that the agents of the third flow report, and the exported folder.

use std::path::{Path, PathBuf};

use countersign_domain::episode::agent_event::Phase;
use countersign_domain::identity::party::Party;
use countersign_domain::primitives::id::{EventId, ThreadId};
use countersign_domain::reviews::VoteVerdict;
use countersign_service::episodes::record::NewEvent;
use countersign_service::error::{Error, Result};
use serde_json::{Value, json};

use super::seed_history::{DemoHistoryActors, name};
use crate::cli::CliError;
use crate::cli::episode::{read, written};
use crate::cli::open_service::principal;

const THREAD: &str = "refund-109";

impl DemoHistoryActors {
    /// Runs a refund from plan to write, and exports its folder. The folder is then imported, as one from another
    /// gateway would be.
    pub(super) async fn leaves_a_run(&self, data: &Path) -> std::result::Result<PathBuf, CliError> {
        self.runs().await?;
        let folder = data.join("episode");
        written(
            &folder,
            &self.service.episodes.files_of_run("demo", &Party::Receiver, &name::<ThreadId>(THREAD)?).await?,
        )?;
        let brought = read(&folder)?;
        self.service.episodes.import_episode(&principal(), &brought, None).await?;
        Ok(folder)
    }

    async fn runs(&self) -> Result<()> {
        let terms = json!({
            "goal": {"task": "Refund the order of customer 19", "type": "refund"}, "tags": {"team": "refunds"},
            "using": "refund-agent",
        });
        let terms = serde_json::from_value(terms).map_err(|_| Error::NotFound("terms"))?;
        self.begin(THREAD, Some(terms)).await?;
        let saw = self.tells(Phase::Observe, json!({"message": "The customer asks for a refund."}), None).await?;
        let plan = json!({"rationale": "The owner of the order has to be approved.", "step_records": [
            {"id": "look-up", "kind": "detect", "description": "Look up whose order it is", "status": "done"},
            {"id": "approval", "kind": "review", "description": "Get approval for the other customer"},
            {"id": "refund", "kind": "act", "description": "Refund the order"},
        ]});
        let planned = self.tells(Phase::Plan, plan, Some(saw)).await?;
        let held = self.ask(THREAD, json!({"target_user_id": 19})).await?;
        self.say(&self.cleo, &held, VoteVerdict::Approve, Some("Order 4712 is theirs.")).await?;
        let asked = json!({"step_id": "approval", "step_status": "done", "tool": "countersign", "outcome": "ok",
            "input_excerpt": "target_user_id 19"});
        self.tells(Phase::Act, asked, Some(planned.clone())).await?;
        let write = self.verify(THREAD, Some(held.transition), "refund-write-3").await?;
        self.service.writes.confirm(&self.writer, &write, &json!({"result_ref": "refund-write-3"})).await?;
        let done = json!({"step_id": "refund", "step_status": "done", "tool": "ledger", "outcome": "ok",
            "input_excerpt": "40 EUR to customer 19", "result_artifacts": [{"type": "row", "uri": "refund-write-3"}]});
        self.tells(Phase::Act, done, Some(planned)).await?;
        self.tells(Phase::Learn, json!({"proposal": ["Ask for the order's number first."], "applied": false}), None)
            .await?;
        self.tells(Phase::Terminate, json!({"status": "ok", "message": "Refunded."}), None).await.map(drop)
    }

    async fn tells(&self, phase: Phase, payload: Value, caused_by: Option<EventId>) -> Result<EventId> {
        let Value::Object(payload) = payload else { return Err(Error::NotFound("payload")) };
        let (thread, node) = (name(THREAD)?, name("planner")?);
        let new = NewEvent { thread, node, phase, payload, caused_by, evidence_ids: Vec::new() };
        Ok(self.service.episodes.add_episode_event(&self.agent, &new).await?.id)
    }
}
