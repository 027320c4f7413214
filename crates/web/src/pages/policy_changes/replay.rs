//! `GET` and `POST /replays`: replays the recorded proposals of a flow under another policy, without effect.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::policy::{HypotheticalOutcome, PolicySource, ReplayComparison, ReplayOutcome};
use countersign_domain::primitives::id::FlowId;
use countersign_domain::primitives::time::Timestamp;
use countersign_service::error::{Error, Result};
use countersign_service::policies::Policies;
use countersign_service::policy_changes::PolicyChanges;
use countersign_service::policy_changes::replay::{ReplayCursor, ReplayResult, ReplayedProposal};
use serde::Deserialize;

use super::replay_view::{ReplayResultView, ReplayRow, ReplaySummary, ReplaysPage};
use crate::pages::policies::what_if_view::{FlowChoice, WhatIfOptionState};
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{error_row, html, lines, moment};
use crate::pages::shared::layout::Tone;
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

/// Proposals that one page judges. Proposals with the same outcome are only counted.
const PROPOSALS_MAX: u32 = 200;

const ERRORS_SHOWN: usize = 6;

/// `?flow=`: the flow whose active policy fills the form.
#[derive(Deserialize)]
pub struct ReplayQuery {
    flow: Option<String>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default)]
pub struct ReplayFields {
    flow: String,
    policy: String,
    after: String,
}

/// `GET /replays`.
pub async fn show(
    policies: Capability<Policies>,
    visitor: Visitor,
    query: web::Query<ReplayQuery>,
) -> Result<ReplaysPage> {
    let mut fields = ReplayFields::default();
    if let Some(flow) = &query.flow {
        let flow = FlowId::try_from(flow.as_str()).map_err(|_| Error::NotFound("flow"))?;
        // A new policy is usually a change of the active one, so the form begins with its text.
        fields.policy = policies.active_policy(&flow).await?.source().text.clone();
        fields.flow = flow.to_string();
    }
    page(&policies, &visitor, &fields, Ok(None)).await
}

/// `POST /replays`.
pub async fn submit(
    policies: Capability<Policies>,
    policy_changes: Capability<PolicyChanges>,
    sent: SignedInForm<ReplayFields>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let replayed = replayed(&policies, &policy_changes, &visitor, &form).await?;
    let status = if replayed.is_ok() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let page = page(&policies, &visitor, &form, replayed.map(Some)).await?;
    Ok(html(status, page.render()))
}

/// Runs the replay, or returns the error of the form.
async fn replayed(
    policies: &Policies,
    policy_changes: &PolicyChanges,
    visitor: &Visitor,
    form: &ReplayFields,
) -> Result<std::result::Result<ReplayResult, String>> {
    let Ok(flow) = FlowId::try_from(form.flow.as_str()) else { return Ok(Err("Choose a flow.".to_owned())) };
    let after = match form.after.as_str() {
        "" => None,
        // Only the page itself writes this field, so an invalid one has no page to continue from.
        token => Some(ReplayCursor::read(token).ok_or(Error::NotFound("page"))?),
    };
    let active = policies.active_policy(&flow).await?;
    // Forms end lines with CR LF, but a policy file uses LF.
    let source = PolicySource { text: form.policy.replace("\r\n", "\n"), schemas: active.source().schemas.clone() };
    match policy_changes.replay(visitor.account().id.as_str(), &flow, &source, after.as_ref(), PROPOSALS_MAX).await {
        Ok(replay) => Ok(Ok(replay)),
        Err(Error::Policy(error)) => {
            Ok(Err(format!("The policy is not valid. Line {}: {}.", error.line, error.message)))
        }
        Err(Error::Invalid { .. }) => Ok(Err("The policy is for another flow than the selected one.".to_owned())),
        Err(error) => Err(error),
    }
}

async fn page(
    policies: &Policies,
    visitor: &Visitor,
    form: &ReplayFields,
    replayed: std::result::Result<Option<ReplayResult>, String>,
) -> Result<ReplaysPage> {
    let choice = |flow: &FlowId| FlowChoice {
        name: SafeLine::new(flow.as_str()),
        chosen: if flow.as_str() == form.flow { WhatIfOptionState::Yes } else { WhatIfOptionState::No },
    };
    let flows = policies.flows().await?;
    let (told, problem) = match replayed {
        Ok(replay) => (replay.map(|it| in_words(&it, visitor.now())), None),
        Err(problem) => (None, Some(problem)),
    };
    Ok(ReplaysPage {
        shell: visitor.shell(None).await?,
        flows: flows.iter().map(choice).collect(),
        policy: form.policy.clone(),
        problem,
        told,
        csrf: visitor.0.csrf.shown(),
    })
}

fn in_words(replay: &ReplayResult, now: Timestamp) -> ReplaySummary {
    let count = |is: fn(&ReplayComparison) -> bool| replay.rows.iter().filter(|it| is(&it.compared)).count();
    let differs = count(|it| matches!(it, ReplayComparison::Differs { .. }));
    let unknown = count(|it| matches!(it, ReplayComparison::Unknown { .. }));
    let all = match replay.rows.len() {
        1 => "1 proposal".to_owned(),
        many => format!("{many} proposals"),
    };
    let untold = if unknown == 0 { String::new() } else { format!(". {unknown} cannot be evaluated") };
    let (tone, otherwise) = match (differs, unknown) {
        (0, 0) => (Tone::Good, "none would".to_owned()),
        // Proposals that cannot be evaluated could still end differently, so this is no good news.
        (0, _) => (Tone::Plain, "none would".to_owned()),
        (some, _) => (Tone::Care, format!("{some} would")),
    };
    let nothing = replay.rows.is_empty() && replay.next.is_none();
    let words = format!("{all}: {otherwise} end differently{untold}.");
    ReplaySummary {
        tone: if nothing { Tone::Plain } else { tone },
        words: if nothing { "This flow has no more recorded proposals.".to_owned() } else { words },
        rows: replay.rows.iter().filter_map(|it| row(it, now)).collect(),
        next: replay.next.as_ref().map(|it| SafeLine::new(it.token())),
    }
}

/// Builds the row of a proposal. A proposal with the same outcome has none.
fn row(replayed: &ReplayedProposal, now: Timestamp) -> Option<ReplayRow> {
    let would_be = match &replayed.compared {
        // A person looks for the effect of the new policy, so equal outcomes are only counted.
        ReplayComparison::Same { .. } => return None,
        ReplayComparison::Differs { would_be } => would(would_be),
        ReplayComparison::Unknown { why } => ReplayResultView::Unknown(why.detail()),
    };
    let was = match replayed.was.outcome {
        ReplayOutcome::Commit => "was committed",
        ReplayOutcome::Observe => "was committed and marked",
        ReplayOutcome::Hold => "was held",
        ReplayOutcome::Reject => "was rejected",
    };
    Some(ReplayRow {
        node: SafeLine::new(replayed.node.as_str()),
        thread: SafeLine::new(replayed.thread.as_str()),
        thread_url: format!("/threads/{}", replayed.thread),
        version: replayed.on_version,
        was,
        was_codes: lines(replayed.was.codes.iter().map(String::as_str)),
        would_be,
        at: moment(replayed.at, now),
    })
}

fn would(it: &HypotheticalOutcome) -> ReplayResultView {
    let (tone, words) = match it.outcome {
        ReplayOutcome::Commit => (Tone::Good, "Would be committed"),
        ReplayOutcome::Observe => (Tone::Care, "Would be committed and marked"),
        ReplayOutcome::Hold => (Tone::Care, "Would be held"),
        ReplayOutcome::Reject => (Tone::Bad, "Would be rejected"),
    };
    let errors = it.errors.iter().take(ERRORS_SHOWN);
    ReplayResultView::Be {
        tone,
        words,
        reasons: lines(it.reasons.iter().map(String::as_str)),
        errors: errors.map(|it| error_row(it.code.as_str(), it.pointer.as_str(), &it.detail)).collect(),
        more: it.errors.len().saturating_sub(ERRORS_SHOWN),
    }
}
