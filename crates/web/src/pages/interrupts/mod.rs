//! `/interrupts/{interrupt}`: an approval that a host application requests.

mod decide;
pub mod view;

use actix_web::{HttpResponse, web};
use countersign_domain::identity::account::Account;
use countersign_domain::interrupts::{Interrupt, InterruptDecision};
use countersign_domain::json::canonical::canonical;
use countersign_domain::policy::RedactedLeaf;
use countersign_domain::primitives::id::{AccountId, InterruptId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{CannotDecide, VoteVerdict, VoterRoll};
use countersign_service::error::{Error, Result};
use countersign_service::interrupts::InterruptView;
use countersign_service::interrupts::Interrupts;

use super::shared::decision_form::{CommentRequirement, DecideForm, DecideFormView, StageProgressView};
use super::shared::format::{cannot_decide, lines, moment, see_other, why_not};
use super::shared::layout::{DigestText, Tone};
use super::shared::safe_text::{SafeJson, SafeLine, SafePath, SafeText};
use super::shared::visitor::Visitor;
use super::shared::vote_form::VoteFormState;
use super::shared::widgets::ReviewBadge;
use super::shared::widgets::TimelineItem;
use crate::state::Capability;
pub use decide::submit;
use view::{HostAssertionView, InterruptPage, InterruptRow, InterruptValueRow};

const KEYS_IN_ROW: usize = 4;

/// `GET /interrupts/{interrupt}`.
pub async fn show(
    interrupts: Capability<Interrupts>,
    visitor: Visitor,
    id: web::Path<String>,
) -> Result<InterruptPage> {
    let shown = find(&interrupts, &id).await?;
    page(&interrupts, &visitor, &shown, VoteFormState::default()).await
}

/// Redirects a `GET` of a form's address to the interrupt, for example after a reload.
pub async fn back(id: web::Path<String>) -> HttpResponse {
    let id = InterruptId::try_from(id.as_str());
    // Only a parsed id is put into the address, so a malformed one leads to the inbox.
    see_other(&id.map_or_else(|_| "/".to_owned(), |it| format!("/interrupts/{it}")))
}

async fn find(interrupts: &Interrupts, id: &str) -> Result<InterruptView> {
    let id = InterruptId::try_from(id).map_err(|_| Error::NotFound("interrupt"))?;
    interrupts.interrupt_view(&id).await
}

async fn page(
    interrupts: &Interrupts,
    visitor: &Visitor,
    shown: &InterruptView,
    again: VoteFormState,
) -> Result<InterruptPage> {
    let interrupt = &shown.interrupt;
    let now = visitor.now();
    let (words, tone) = standing(interrupt, now);
    Ok(InterruptPage {
        shell: visitor.shell(None).await?,
        problem: again.problem.clone(),
        host: SafeLine::new(interrupt.source.name.as_str()),
        flow: SafeLine::new(interrupt.flow.as_str()),
        words,
        tone,
        standing: explained(interrupt, now),
        said: said(shown),
        deadline: interrupt.is_open(now).then(|| moment(interrupt.expires_at, now)),
        digest: DigestText::new(interrupt.digest.to_string()),
        policy: DigestText::new(interrupt.policy.to_string()),
        stages: seats(interrupt),
        timeline: timeline(shown, &visitor.account().id, now),
        deciding: deciding(interrupts, visitor, shown, again.typed).await?,
    })
}

/// Returns the request of the host application, without redacted values.
fn said(shown: &InterruptView) -> HostAssertionView {
    let asserted = &shown.interrupt.asserted;
    // The host application may repeat a redacted value in its text, so the text is masked too.
    let line = |text: &str| SafeLine::new(shown.masked(text));
    let part = |leaf: RedactedLeaf| match leaf {
        RedactedLeaf::Shown { pointer, value } => InterruptValueRow {
            path: SafePath::new(pointer.to_string()),
            value: Some(SafeJson::new(canonical(&value))),
        },
        // A redacted value keeps its path, so that reviewers see that it exists.
        RedactedLeaf::Hidden { pointer } => InterruptValueRow { path: SafePath::new(pointer.to_string()), value: None },
    };
    HostAssertionView {
        title: asserted.title.as_deref().map(line),
        reason: asserted.reason.as_deref().map(|it| SafeText::new(shown.masked(it))),
        thread: asserted.thread_ref.as_deref().map(line),
        interrupt_id: SafeLine::new(asserted.interrupt_id.as_str()),
        digest: SafeLine::new(asserted.transition_digest.as_str()),
        // A first attempt is the normal case, so only a repeated one is shown.
        attempt: (asserted.attempt > 1).then_some(asserted.attempt),
        keys: asserted.changed_keys.iter().map(|it| line(it)).collect(),
        diff: shown.leaves().into_iter().map(part).collect(),
    }
}

async fn deciding(
    interrupts: &Interrupts,
    visitor: &Visitor,
    shown: &InterruptView,
    typed: String,
) -> Result<DecideFormView> {
    let interrupt = &shown.interrupt;
    if !interrupt.is_open(visitor.now()) {
        return Ok(DecideFormView::Closed("The request has ended. It can no longer be decided.".to_owned()));
    }
    let stage = match stage_for(
        interrupt,
        visitor.account(),
        &interrupts.roll_of_interrupt(interrupt, &visitor.account().id).await?,
    ) {
        Ok(stage) => stage,
        Err(reason) => return Ok(DecideFormView::Closed(format!("You cannot decide this. {}", why_not(reason).0))),
    };
    // The halt is checked last, because a reader without a seat cannot vote after it either.
    if interrupts.is_halted(&interrupt.flow).await? {
        return Ok(DecideFormView::Closed(format!("You cannot decide this. {}", cannot_decide(CannotDecide::Halted))));
    }
    let required = interrupt.asking.stages.get(stage as usize).is_some_and(|it| it.comment_required);
    Ok(DecideFormView::Open(DecideForm {
        action: format!("/interrupts/{}/decision", interrupt.id),
        csrf: visitor.0.csrf.shown(),
        nonce: visitor.nonce(interrupt.id.as_str(), interrupt.digest, stage)?,
        stage,
        asks: true,
        comment: if required { CommentRequirement::Required } else { CommentRequirement::Optional },
        typed: SafeText::new(typed),
    }))
}

/// Returns the stage in which the account may vote: its first stage that lacks votes, or else its first stage.
fn stage_for(
    interrupt: &Interrupt,
    person: &Account,
    roll: &VoterRoll,
) -> std::result::Result<u32, countersign_domain::reviews::Ineligible> {
    let jury = interrupt.jury();
    let own = jury.eligible(person)?;
    let lacks = |stage: &u32| {
        interrupt.asking.stages.get(*stage as usize).is_some_and(|it| jury.approvals(*stage, roll) < it.need)
    };
    Ok(own.iter().copied().find(lacks).or_else(|| own.first().copied()).unwrap_or_default())
}

/// Returns the label of the interrupt's status.
fn standing(interrupt: &Interrupt, now: Timestamp) -> (&'static str, Tone) {
    match interrupt.ending().map(|it| it.0) {
        None if interrupt.is_open(now) => ("Waits for approval", Tone::Care),
        // The deadline may have passed before the expiry is recorded, so both cases get the same label.
        None | Some(InterruptDecision::Expired) => ("Expired", Tone::Plain),
        Some(InterruptDecision::Approved) => ("Approved", Tone::Good),
        Some(InterruptDecision::Denied) => ("Denied", Tone::Bad),
        Some(InterruptDecision::Superseded) => ("Superseded", Tone::Plain),
    }
}

fn explained(interrupt: &Interrupt, now: Timestamp) -> String {
    let Some((decision, _, answer)) = interrupt.ending() else {
        return "The host application has paused its graph and waits for the decision.".to_owned();
    };
    match decision {
        InterruptDecision::Approved => {
            let until = answer.expires_at.map(|it| moment(it, now).words).unwrap_or_default();
            format!("The gateway reported the approval. It is valid until {until}.")
        }
        InterruptDecision::Denied => "The gateway reported the denial.".to_owned(),
        InterruptDecision::Expired => "No decision was made before the deadline. The gateway reported the \
         expiry."
            .to_owned(),
        InterruptDecision::Superseded => {
            "Another policy was activated that requires other reviewers. The host application can request approval \
             again."
                .to_owned()
        }
    }
}

fn seats(interrupt: &Interrupt) -> Vec<StageProgressView> {
    let approved = |index: u32| {
        let votes = interrupt.votes.iter().filter(move |it| it.stage == index && it.verdict == VoteVerdict::Approve);
        lines(votes.map(|it| it.name.as_str()))
    };
    let stages = (0u32..).zip(&interrupt.asking.stages);
    let groups = |stage: &countersign_domain::reviews::ApprovalStage| lines(stage.groups.iter().map(|it| it.as_str()));
    stages.map(|(at, it)| StageProgressView { groups: groups(it), need: it.need, approved_by: approved(at) }).collect()
}

fn timeline(shown: &InterruptView, viewer: &AccountId, now: Timestamp) -> Vec<TimelineItem> {
    let interrupt = &shown.interrupt;
    let item = |who: Option<&str>, words: &str, tone, at| TimelineItem {
        who: who.map(SafeLine::new),
        words: words.to_owned(),
        comment: None,
        claim: None,
        tone,
        at: moment(at, now),
    };
    let mut items = vec![item(Some(&interrupt.source.name), "requested approval", Tone::Plain, interrupt.received_at)];
    for vote in &interrupt.votes {
        let (words, tone) = match vote.verdict {
            VoteVerdict::Approve => ("approved it", Tone::Good),
            VoteVerdict::Deny => ("denied it", Tone::Bad),
        };
        // A comment may repeat a redacted value, so other readers see it masked.
        let comment = vote.comment.as_deref().map(|it| SafeText::new(shown.said(viewer, &vote.reviewer, it)));
        items.push(TimelineItem { comment, ..item(Some(&vote.name), words, tone, vote.at) });
    }
    let end = interrupt.ending().map(|(decision, at, _)| match decision {
        InterruptDecision::Approved => item(None, "The gateway reported the approval", Tone::Good, at),
        InterruptDecision::Denied => item(None, "The gateway reported the denial", Tone::Bad, at),
        InterruptDecision::Expired => item(None, "The deadline passed without a decision", Tone::Plain, at),
        InterruptDecision::Superseded => {
            item(None, "Another policy was activated that requires other reviewers", Tone::Plain, at)
        }
    });
    items.extend(end);
    items
}

pub fn row(shown: &InterruptView, viewer: &Account, now: Timestamp) -> InterruptRow {
    let (interrupt, asserted) = (&shown.interrupt, &shown.interrupt.asserted);
    // The row shows text of the host application, which may repeat a redacted value.
    let line = |text: &str| SafeLine::new(shown.masked(text));
    InterruptRow {
        url: format!("/interrupts/{}", interrupt.id),
        host: SafeLine::new(interrupt.source.name.as_str()),
        flow: SafeLine::new(interrupt.flow.as_str()),
        title: asserted.title.as_deref().map(line),
        digest: SafeLine::new(asserted.transition_digest.as_str()),
        // The host application may name many keys, so the row counts the others.
        keys: asserted.changed_keys.iter().take(KEYS_IN_ROW).map(|it| line(it)).collect(),
        more: asserted.changed_keys.len().saturating_sub(KEYS_IN_ROW),
        badge: match interrupt.jury().eligible(viewer) {
            Ok(_) => ReviewBadge::Yours,
            Err(countersign_domain::reviews::Ineligible::Voted) => ReviewBadge::Voted,
            Err(reason) => ReviewBadge::CannotDecide(why_not(reason).1.to_owned()),
        },
        deadline: moment(interrupt.expires_at, now),
    }
}
