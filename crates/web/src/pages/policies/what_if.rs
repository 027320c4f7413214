//! `GET` and `POST /what-if`: dry run of a flow's policy on a patch.

use actix_web::HttpResponse;
use actix_web::http::{Method, StatusCode};
use askama::Template as _;
use countersign_domain::json::canonical::canonical;
use countersign_domain::json::parse::{ParseLimits, parse};
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::policy::{HypotheticalContext, JudgedOutcome, RedactedChange, WhatIf};
use countersign_domain::primitives::id::{FlowId, NodeId};
use countersign_domain::threads::usage::InvalidUsage;
use countersign_service::error::{Error, Result};
use countersign_service::policies::Policies;
use countersign_service::policy_changes::PolicyChanges;
use countersign_service::policy_changes::dry_run::DryRun;
use serde::Deserialize;
use serde_json::Value;

use super::what_if_view::{
    ChangeRow, FlowChoice, JudgementView, WhatIfInputView, WhatIfOptionState, WhatIfPage, WhatIfSideView,
};
use crate::auth::permissions;
use crate::auth::permissions::CallerRole;
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{error_row, html};
use crate::pages::shared::layout::Tone;
use crate::pages::shared::safe_text::{SafeJson, SafeLine, SafePath};
use crate::pages::shared::visitor::Visitor;
use crate::state::{Capability, EdgeConfig};

const CHANGES_SHOWN: usize = 200;

#[derive(Deserialize, Default, Clone)]
#[serde(default)]
pub struct WhatIfFields {
    flow: String,
    node: String,
    format: String,
    state: String,
    patch: String,
    around: String,
}

/// `GET /what-if`.
pub async fn show(policies: Capability<Policies>, visitor: Visitor) -> Result<WhatIfPage> {
    let fields = WhatIfFields { format: PatchFormat::Merge.as_str().to_owned(), ..WhatIfFields::default() };
    page(&policies, &visitor, &fields, Ok(None)).await
}

/// `POST /what-if`.
pub async fn submit(
    edge: Capability<EdgeConfig>,
    policies: Capability<Policies>,
    policy_changes: Capability<PolicyChanges>,
    sent: SignedInForm<WhatIfFields>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let judged = judged(&edge, &policy_changes, &visitor, &form).await?;
    // The page is the same for both, so the status distinguishes a form with a mistake.
    let status = if judged.is_ok() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let page = page(&policies, &visitor, &form, judged.map(Some)).await?;
    Ok(html(status, page.render()))
}

/// Returns the judgement, or the error in the form as a sentence.
async fn judged(
    edge: &EdgeConfig,
    policy_changes: &PolicyChanges,
    visitor: &Visitor,
    form: &WhatIfFields,
) -> Result<std::result::Result<WhatIf, String>> {
    let (flow, dry_run) = match read(edge, form) {
        Ok(asked) => asked,
        Err(problem) => return Ok(Err(problem)),
    };
    match policy_changes.what_if(visitor.account().id.as_str(), &flow, None, dry_run).await {
        Ok(told) => Ok(Ok(told)),
        // A mistake in the form is shown beside the form, so that the person does not lose the typed text.
        Err(Error::NotFound(_)) => Ok(Err("This flow no longer exists. Choose another flow.".to_owned())),
        Err(Error::Invalid { .. }) => Ok(Err("The state must be a JSON object.".to_owned())),
        Err(error) => Err(error),
    }
}

fn read(edge: &EdgeConfig, form: &WhatIfFields) -> std::result::Result<(FlowId, DryRun), String> {
    // The same limits as for proposals, so that the dry run accepts what the API accepts.
    let limits = ParseLimits { bytes_max: edge.body_bytes_max, depth_max: edge.depth_max };
    let json = |what: &str, text: &str| {
        parse(text.as_bytes(), &limits).map_err(|error| format!("The {what} is not valid JSON: {error}."))
    };
    let formats = [PatchFormat::Merge, PatchFormat::MergePatch, PatchFormat::JsonPatch];
    let flow = FlowId::try_from(form.flow.as_str()).map_err(|_| "Choose a flow.".to_owned())?;
    let dry_run = DryRun {
        node: NodeId::try_from(form.node.trim())
            .map_err(|_| "Enter the name of the node that proposes the patch.".to_owned())?,
        format: formats.into_iter().find(|it| it.as_str() == form.format).ok_or("Choose a patch format.")?,
        state: json("state", &form.state)?,
        patch: json("patch", &form.patch)?,
        around: match form.around.trim() {
            "" => HypotheticalContext::default(),
            text => HypotheticalContext::read(&json("context", text)?)
                .map_err(|it| format!("Invalid context: {}.", sentence(&it)))?,
        },
    };
    Ok((flow, dry_run))
}

/// Formats an input error, with its path if it has one.
fn sentence(wrong: &InvalidUsage) -> String {
    match wrong.pointer.as_str() {
        "" => wrong.detail.to_owned(),
        at => format!("at {at}: {}", wrong.detail),
    }
}

async fn page(
    policies: &Policies,
    visitor: &Visitor,
    form: &WhatIfFields,
    judged: std::result::Result<Option<WhatIf>, String>,
) -> Result<WhatIfPage> {
    let choice = |flow: &FlowId| FlowChoice {
        name: SafeLine::new(flow.as_str()),
        chosen: if flow.as_str() == form.flow { WhatIfOptionState::Yes } else { WhatIfOptionState::No },
    };
    let flows = policies.flows().await?;
    let (told, problem) = match judged {
        Ok(told) => (told.as_ref().map(in_words), None),
        Err(problem) => (None, Some(problem)),
    };
    Ok(WhatIfPage {
        shell: visitor.shell(None).await?,
        // The permission table decides, so that the page never links to one that refuses the visitor.
        replays_url: may_replay(visitor).then_some("/replays"),
        flows: flows.iter().map(choice).collect(),
        typed: WhatIfInputView {
            node: form.node.clone(),
            format: form.format.clone(),
            state: form.state.clone(),
            patch: form.patch.clone(),
            around: form.around.clone(),
        },
        problem,
        told,
        csrf: visitor.0.csrf.shown(),
    })
}

fn may_replay(visitor: &Visitor) -> bool {
    permissions::may(CallerRole::Person(visitor.account().role), &Method::GET, "/replays")
}

fn in_words(told: &WhatIf) -> JudgementView {
    let (tone, words) = match told.outcome {
        JudgedOutcome::Commit => (Tone::Good, "The policy would commit it without approval."),
        JudgedOutcome::Hold => (Tone::Care, "The policy would hold it for approval."),
        JudgedOutcome::Reject => (Tone::Bad, "The policy would reject it."),
    };
    JudgementView {
        tone,
        words,
        reasons: told.reasons.iter().map(|it| SafeLine::new(it.text.as_str())).collect(),
        warnings: told.warnings.iter().map(|it| error_row("warning", &it.pointer.to_string(), &it.detail)).collect(),
        errors: told.errors.iter().map(|it| error_row(it.code.as_str(), &it.pointer.to_string(), &it.detail)).collect(),
        // A patch can change thousands of values, and a page with all of them would be unreadable.
        changes: told.diff.iter().take(CHANGES_SHOWN).map(change_row).collect(),
        more_changes: told.diff.len().saturating_sub(CHANGES_SHOWN),
    }
}

fn change_row(change: &RedactedChange) -> ChangeRow {
    let side = |value: &Option<Value>| {
        value.as_ref().map_or(WhatIfSideView::Nothing, |it| WhatIfSideView::Value(SafeJson::new(canonical(it))))
    };
    match change {
        RedactedChange::Hidden { pointer, .. } => ChangeRow { path: SafePath::new(pointer.to_string()), sides: None },
        RedactedChange::Shown { pointer, before, after } => {
            ChangeRow { path: SafePath::new(pointer.to_string()), sides: Some((side(before), side(after))) }
        }
    }
}
