//! JSON of transitions and their reviews, for tokens.

use std::collections::BTreeSet;

use actix_web::http::StatusCode;
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::opening::{OpenedTree, Opening};
use countersign_domain::identity::account::MachineRole;
use countersign_domain::json::diff::LeafChange;
use countersign_domain::platform::idempotency::StoredResponse;
use countersign_domain::policy::{JudgedWarning, RedactedLeaf, RedactedValueKind};
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::reviews::{CannotDecide, Hold, VotingSeat};
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::platform::core::Core;
use countersign_service::proposals::outcome::ProposalOutcome;
use countersign_service::proposals::outcome::warnings_for_requester;
use countersign_service::reviews::Reviews;
use countersign_service::reviews::eligible_voters::EligibleVoter;
use countersign_service::threads::Threads;
use countersign_service::threads::redacted_fields::RedactedField;
use countersign_service::threads::redaction::RedactionDetail;
use countersign_service::writes::Writes;
use serde_json::{Value, json};

use crate::api::idempotency_key::told;
use crate::api::marks::put_marks;
use crate::api::of_own_flow;
use crate::auth::extractors::Machine;
use crate::state::{Capability, capabilities};

capabilities! {
    /// The capabilities of a reader of transitions.
    pub struct TransitionCapabilities {
        core: Capability<Core>,
        identity: Capability<Identity>,
        reviews: Capability<Reviews>,
        threads: Capability<Threads>,
        writes: Capability<Writes>,
    }
}

/// Returns the response to a proposer.
pub fn answer(core: &Core, answer: &ProposalOutcome) -> Result<StoredResponse> {
    match answer {
        ProposalOutcome::Committed { version, transition, entry, changed, would_hold, warnings } => {
            let mut body = json!({
                "outcome": "committed", "version": version, "transition": transition, "entry": entry,
                "changed": changed,
            });
            if let Some(reasons) = would_hold {
                body["would_hold"] = json!(reasons);
            }
            put_warnings(&mut body, warnings);
            Ok(told(StatusCode::CREATED, &body))
        }
        ProposalOutcome::Held { transition, hold, reasons, warnings, diff } => {
            let mut body = json!({
                "outcome": "held", "transition": transition, "review": review_of(core, hold),
                "reasons": reasons, "diff": diff_json(diff),
            });
            put_warnings(&mut body, warnings);
            put_marks(&mut body);
            Ok(told(StatusCode::ACCEPTED, &body))
        }
        // A rejection is a problem for the client, although the gateway has stored it.
        ProposalOutcome::Rejected(refusal) => Err(Error::Rejected(refusal.clone())),
    }
}

/// Adds the warnings of rules, `[{rule, pointer, detail}]`, if there are any.
fn put_warnings(told: &mut Value, warnings: &[JudgedWarning]) {
    let line = |it: &JudgedWarning| json!({"rule": it.rule, "pointer": it.pointer, "detail": it.detail});
    if !warnings.is_empty() {
        told["warnings"] = warnings.iter().map(line).collect();
    }
}

/// Returns a review as JSON. No token can decide, so `why_not` is always present.
fn review_of(core: &Core, hold: &Hold) -> Value {
    let mut review = review_link(core, &hold.id);
    let needed: Vec<Value> =
        hold.stages.iter().map(|stage| json!({"groups": stage.groups, "need": stage.need})).collect();
    review["expires_at"] = json!(hold.expires_at);
    if let Some(last) = hold.extensions.last() {
        review["extended"] = json!({"by": last.person, "at": last.at, "was": last.was});
    }
    review["needed"] = json!(needed);
    // The escalation is stored in advance, and applies from its time on.
    if let Some(escalation) = hold.notices.escalation.as_ref().filter(|it| it.from <= core.now()) {
        review["escalated"] = json!({"at": escalation.from, "to": escalation.to});
    }
    let why = if hold.is_open(core.now()) { MACHINE } else { (CannotDecide::Ended.code(), "this review is over") };
    // The response goes to a token, and no machine may approve.
    review["can_decide"] = json!(false);
    review["why_not"] = json!({"code": why.0, "detail": why.1});
    review
}

const MACHINE: (&str, &str) = ("machine", "only a signed-in reviewer can decide, in a browser: no token can");

/// Returns people as JSON, each with `stages` or with `why_not`.
fn people_json(people: &[EligibleVoter]) -> Value {
    let line = |it: &EligibleVoter| {
        let mut line = json!({"reviewer": it.account.id, "name": it.account.name, "can_decide": it.can_decide.is_ok()});
        match &it.can_decide {
            Ok(places) => put_places(&mut line, places),
            Err(why) => line["why_not"] = json!({"code": why.code(), "detail": why.to_string()}),
        }
        line
    };
    people.iter().map(line).collect()
}

/// Adds the stages in which a person can vote, and on behalf of whom if the vote is delegated.
fn put_places(line: &mut Value, places: &[VotingSeat]) {
    let stages: BTreeSet<u32> = places.iter().map(|it| it.stage).collect();
    line["stages"] = json!(stages);
    let other = |it: &VotingSeat| {
        Some(json!({"reviewer": it.absent.as_ref()?.person, "name": it.absent.as_ref()?.name, "stage": it.stage}))
    };
    let others: Vec<Value> = places.iter().filter_map(other).collect();
    if !others.is_empty() {
        line["for"] = json!(others);
    }
}

/// Returns the ID and the URL of a review.
pub fn review_link(core: &Core, review: &ReviewId) -> Value {
    json!({"id": review, "url": format!("{}/reviews/{review}", core.public_url())})
}

/// Returns a value, or the path of a redacted one.
pub fn leaf_json(leaf: &RedactedLeaf) -> Value {
    match leaf {
        RedactedLeaf::Shown { pointer, value } => json!({"pointer": pointer, "value": value}),
        RedactedLeaf::Hidden { pointer } => json!({"pointer": pointer, "hidden": true}),
    }
}

/// Returns a redacted value for auditors: type, length class and commitment of each side.
fn hidden_json(place: &RedactedField, opening: &Opening) -> Value {
    let side = |kind: Option<RedactedValueKind>, tree: &OpenedTree| {
        let mut told = json!(kind?);
        // The commitment shows whether a redacted value is the signed one, without the value itself.
        told["commitment"] = json!(tree.at(&place.pointer).and_then(OpenedTree::root));
        Some(told)
    };
    let mut line = json!({"pointer": place.pointer});
    let sides = [("before", side(place.before, &opening.from)), ("after", side(place.after, &opening.to))];
    for (name, told) in sides.into_iter().filter_map(|(name, side)| Some((name, side?))) {
        line[name] = told;
    }
    line
}

fn diff_json(diff: &[LeafChange]) -> Value {
    let line = |change: &LeafChange| {
        let mut line = json!({"pointer": change.pointer});
        if let Some(before) = &change.before {
            line["before"] = before.clone();
        }
        if let Some(after) = &change.after {
            line["after"] = after.clone();
        }
        line
    };
    diff.iter().map(line).collect()
}

/// Returns a transition as JSON.
pub async fn transition_json(app: &TransitionCapabilities, machine: &Machine, digest: Digest) -> Result<Value> {
    // The flow is checked before anything is read, so that a transition of another flow looks like a missing one.
    of_own_flow(machine, &app.threads.flow_of_transition(digest).await?, "transition")?;
    let token = &machine.0.record;
    // An agent sees only the values that its node may read.
    let part = if token.role == MachineRole::Agent { RedactionDetail::OfAnAgent } else { RedactionDetail::Whole };
    let told = app.threads.told(digest, &app.identity.reader_with(token).await?, part).await?;
    let mut answer = json!({
        "transition": digest, "thread": told.thread, "status": told.status,
        "statement": told.statement, "entry": told.entry,
    });
    if let Some(code) = app.writes.stopped(digest).await? {
        answer["stopped"] = json!(code.as_str());
    }
    // Arguments can contain values that other agents must not read.
    let is_own = told.statement.principal == token.principal();
    if let (Some(arguments), true) = (&told.arguments, is_own || token.role != MachineRole::Agent) {
        answer["arguments"] = arguments.iter().map(leaf_json).collect();
    }
    // Warnings of rules can name paths, so each role gets those that it may know.
    match (token.role, is_own) {
        (MachineRole::Agent, true) => put_warnings(&mut answer, &warnings_for_requester(&told.warnings)),
        // The warnings of another agent's request can name paths that this agent may not read.
        (MachineRole::Agent, false) => {}
        (MachineRole::Host, _) => put_warnings(&mut answer, &warnings_for_requester(&told.warnings_shown)),
        _ => put_warnings(&mut answer, &told.warnings_shown),
    }
    answer["diff"] = match token.role {
        MachineRole::Agent => diff_json(&app.reviews.visible_effect(token, &told).await?),
        _ => json!(told.redacted),
    };
    put_marks(&mut answer);
    if token.role == MachineRole::Auditor {
        // An opening contains values, so only auditors get it.
        let opening = app.reviews.opening(digest).await?;
        answer["hidden"] = told.hidden.iter().map(|it| hidden_json(it, &opening)).collect();
        answer["opening"] = json!(opening);
    }
    if let Some(hold) = &told.hold {
        answer["review"] = review_of(&app.core, hold);
        // Only auditors see who can decide. An agent could otherwise pick the reviewer who is most likely to approve.
        if token.role == MachineRole::Auditor {
            answer["review"]["people"] = people_json(&app.reviews.electorate(&hold.id).await?);
        }
    }
    Ok(answer)
}
