//! `GET /reviews/{review}`: shows the change, the reasons for the approval, and the decision form.

pub(in crate::pages) mod change;
pub(in crate::pages) mod forms;
pub(in crate::pages) mod progress;
mod timeline;

use actix_web::{HttpResponse, web};
use countersign_domain::identity::account::Account;
use countersign_domain::identity::delegation::Delegation;
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{HoldState, Ineligible, VoteVerdict, VotingSeat};
use countersign_service::error::{Error, Result};
use countersign_service::reviews::Reviews;
use countersign_service::reviews::details::ReviewFacts;
use serde::Deserialize;

use super::review_view::{DecisionForm, ReviewDecisionView, ReviewPage};
use super::revoke_receipt_view::RevocationForm;
use crate::pages::shared::format::{cannot_decide, moment, see_other};
use crate::pages::shared::layout::{FlashNotice, Tone};
use crate::pages::shared::safe_text::{SafeLine, SafePath, SafeText};
use crate::pages::shared::tool_call::ToolCallView;
use crate::pages::shared::visitor::Visitor;
use crate::pages::shared::vote_as::{DelegatorRow, VotingSeatLink};
use crate::pages::shared::widgets::{CommentRequirement, WriteUncertainty};
use crate::pages::threads::version::asker;
use crate::state::Capability;

/// The error and the typed comment of a rejected form.
#[derive(Clone, Debug, Default)]
pub struct ReviewFormState {
    pub problem: Option<String>,
    pub typed: String,
    /// The delegation to vote by. Empty selects the first seat, `own` selects the reader's own seat.
    pub delegation: String,
}

/// `?for=`: the delegation by which the reader wants to vote.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct DelegationQuery {
    #[serde(rename = "for")]
    delegation: String,
}

/// `GET /reviews/{review}`.
pub async fn show(
    reviews: Capability<Reviews>,
    visitor: Visitor,
    review: web::Path<String>,
    place: web::Query<DelegationQuery>,
) -> Result<ReviewPage> {
    let facts = facts(&reviews, &visitor, &review).await?;
    let again = ReviewFormState { delegation: place.into_inner().delegation, ..ReviewFormState::default() };
    page(&reviews, &visitor, &facts, &again).await
}

/// Redirects a `GET` of a form's address to the review, for example after a reload.
pub async fn back(review: web::Path<String>) -> HttpResponse {
    // The ID comes from the address and becomes part of a redirect, so it must be valid first.
    let review = ReviewId::try_from(review.as_str());
    see_other(&review.map_or_else(|_| "/".to_owned(), |it| format!("/reviews/{it}")))
}

/// Loads the review with everything that the visitor may see.
pub async fn facts(reviews: &Capability<Reviews>, visitor: &Visitor, review: &str) -> Result<ReviewFacts> {
    let review = ReviewId::try_from(review).map_err(|_| Error::NotFound("review"))?;
    reviews.review(&review, visitor.account()).await
}

/// Builds the review page. `again` has the state of a rejected form.
pub async fn page(
    reviews: &Capability<Reviews>,
    visitor: &Visitor,
    facts: &ReviewFacts,
    again: &ReviewFormState,
) -> Result<ReviewPage> {
    let deciding = deciding(visitor, facts, again)?;
    let withdrawing = forms::withdrawal(visitor, facts)?;
    let commenting = forms::comment(visitor, facts)?;
    let next = match &facts.hold.state {
        // A new policy or an edit replaces a review, and its reviewers need the way to the new one.
        HoldState::Superseded { by: Some(by), .. } => reviews.review_about(*by).await?,
        _ => None,
    };
    let shown = change::read(facts)?;
    let context = &facts.hold.context;
    let open = matches!(deciding, ReviewDecisionView::Open(_));
    Ok(ReviewPage {
        shell: visitor.shell(notice(facts, visitor, again.problem.as_deref().filter(|_| !open))).await?,
        headline: shown.headline,
        standing: progress::standing(facts, next.map(|it| format!("/reviews/{it}"))),
        ends_in: facts.hold.is_open(facts.now).then(|| facts.now.until(facts.hold.expires_at).as_secs()),
        flow: SafeLine::new(facts.hold.flow.as_str()),
        thread: SafeLine::new(facts.hold.thread.as_str()),
        thread_url: format!("/threads/{}", facts.hold.thread),
        title: context.title.as_deref().map(SafeLine::new),
        on_behalf_of: context.on_behalf_of.as_deref().map(SafeLine::new),
        asked_by: facts.by.as_ref().map(asker),
        reasons: change::reasons(&facts.hold.reasons),
        warnings: change::warnings(&facts.warnings),
        denied_before: facts.denied_before.as_ref().map(|it| progress::denied_before(facts, it)),
        writers: shown.writers,
        rows: shown.rows.changed,
        unchanged: shown.rows.unchanged,
        arrays: shown.rows.arrays,
        call: facts
            .call
            .as_ref()
            .map(|it| ToolCallView::of(it).of_review(&facts.hold.id).once_within(change::run_within(facts))),
        usage: change::usage(&facts.transition.statement),
        rationale: facts.transition.rationale.as_deref().map(|it| change::rationale(facts, it)),
        stages: progress::stages(facts),
        timeline: timeline::timeline(facts),
        proof: change::proof(facts)?,
        // If the form has closed since then, the typed comment is still shown, so that its author can copy it.
        unsent: Some(again.typed.as_str()).filter(|it| !open && !it.trim().is_empty()).map(SafeText::new),
        withdrawing,
        edit_url: forms::may_edit(visitor, facts).then(|| format!("/reviews/{}/edit", facts.hold.id)),
        extended_by: facts.hold.extensions.last().map(|it| SafeLine::new(it.name.as_str())),
        extending: forms::extension(visitor, facts),
        commenting,
        revoking: revoking(visitor, facts),
        revealing: forms::reveal(visitor, facts),
        revealed: facts.revealed.as_ref().map(|(at, _)| SafePath::new(at.to_string())),
        deciding,
    })
}

/// Returns the notice above the page: the error, the revealed value, or the visitor's counted vote.
fn notice(facts: &ReviewFacts, visitor: &Visitor, problem: Option<&str>) -> Option<FlashNotice> {
    if let Some(problem) = problem {
        return Some(FlashNotice { tone: Tone::Bad, words: problem.to_owned() });
    }
    if let Some((at, _)) = &facts.revealed {
        let at = SafePath::new(at.to_string()).plain();
        let words =
            format!("{at} is shown below, once and only to you. The gateway has recorded this and your reason.");
        return Some(FlashNotice { tone: Tone::Care, words });
    }
    let mine = facts.hold.counted_votes().find(|it| it.takes_up(&visitor.account().id))?;
    let open = matches!(facts.hold.state, HoldState::Open {});
    open.then(|| FlashNotice {
        tone: Tone::Good,
        words: match (mine.verdict, &mine.absent) {
            (VoteVerdict::Approve, None) => "Your approval is counted. The review waits for more votes.".to_owned(),
            (VoteVerdict::Deny, None) => "Your denial is counted. The review waits for more votes.".to_owned(),
            (_, Some(absent)) if absent.person == visitor.account().id => {
                format!("{} has voted for you. You can withdraw that vote below and vote yourself.", mine.name)
            }
            (VoteVerdict::Approve, Some(absent)) => {
                format!("Your approval for {} is counted. The review waits for more votes.", absent.name)
            }
            (VoteVerdict::Deny, Some(absent)) => {
                format!("Your denial for {} is counted. The review waits for more votes.", absent.name)
            }
        },
    })
}

fn deciding(visitor: &Visitor, facts: &ReviewFacts, again: &ReviewFormState) -> Result<ReviewDecisionView> {
    if !facts.hold.is_open(facts.now) {
        return Ok(ReviewDecisionView::Over);
    }
    let places = match &facts.can_decide {
        Ok(places) => places,
        Err(reason) => return Ok(ReviewDecisionView::Closed(cannot_decide(*reason).to_owned())),
    };
    let Some(place) = chosen(facts, places, &again.delegation) else {
        return Ok(ReviewDecisionView::Closed(cannot_decide(Ineligible::Group.into()).to_owned()));
    };
    let stage = place.stage;
    let asks = facts.hold.stages.get(stage as usize).is_some_and(|it| it.comment_required);
    Ok(ReviewDecisionView::Open(Box::new(DecisionForm {
        action: format!("/reviews/{}/decision", facts.hold.id),
        csrf: visitor.0.csrf.shown(),
        // The nonce covers review, digest and stage, so a form cannot be sent for another decision.
        nonce: visitor.nonce(facts.hold.id.as_str(), facts.hold.transition, stage)?,
        stage: stage.to_string(),
        absent: facts.place_of(place.delegation()).map(|(by, away)| absent(by, away, facts.now)),
        places: other_places(facts, places, place),
        comment: if asks { CommentRequirement::Required } else { CommentRequirement::Optional },
        typed: SafeText::new(again.typed.as_str()),
        doubt: doubt(facts),
        problem: again.problem.clone(),
    })))
}

/// Returns the seat that the reader selected, or the first seat whose stage lacks votes.
fn chosen<'a>(facts: &ReviewFacts, places: &'a [VotingSeat], asked: &str) -> Option<&'a VotingSeat> {
    let is_asked = |it: &&VotingSeat| it.delegation().map_or(OWN, |it| it.as_str()) == asked;
    let meant: Vec<&VotingSeat> = places.iter().filter(is_asked).collect();
    let all: Vec<&VotingSeat> = places.iter().collect();
    // The delegation in the address may have ended, so the other seats are used then.
    progress::place_to_vote_in(facts, if meant.is_empty() { &all } else { &meant })
}

/// Value of `?for=` for the reader's own seat.
pub const OWN: &str = "own";

/// Returns a link for each other delegator for whom the reader may vote.
fn other_places(facts: &ReviewFacts, places: &[VotingSeat], but: &VotingSeat) -> Vec<VotingSeatLink> {
    let mut others: Vec<&VotingSeat> = places.iter().filter(|it| it.delegation() != but.delegation()).collect();
    // A delegation can have a seat in several stages, and one link is enough for all of them.
    others.dedup_by_key(|it| it.delegation());
    let other = |place: &VotingSeat| VotingSeatLink {
        url: format!("/reviews/{}?for={}", facts.hold.id, place.delegation().map_or(OWN, |it| it.as_str())),
        name: place.absent.as_ref().map(|it| SafeLine::new(it.name.as_str())),
    };
    others.into_iter().map(other).collect()
}

pub fn absent(delegation: &Delegation, away: &Account, now: Timestamp) -> DelegatorRow {
    DelegatorRow {
        delegation: delegation.id.to_string(),
        name: SafeLine::new(away.name.as_str()),
        until: moment(delegation.ends_at, now),
    }
}

/// Returns the writes of this thread with an unknown outcome.
pub fn doubt(facts: &ReviewFacts) -> WriteUncertainty {
    if !facts.outcome_unknown {
        return WriteUncertainty::None;
    }
    let lapsed = facts.thread.expired_write(facts.now).into_iter();
    let writes: Vec<&str> = facts.thread.unresolved.iter().chain(lapsed).map(|it| it.write_id.as_str()).collect();
    WriteUncertainty::Unknown(SafeLine::new(format!(
        "A writer reserved {} and never reported the outcome. An administrator can check and resolve it.",
        writes.join(", ")
    )))
}

/// Checks whether the visitor may revoke the receipt: an approver may, until a writer uses it.
pub fn may_revoke(visitor: &Visitor, facts: &ReviewFacts) -> bool {
    let me = &visitor.account().id;
    let unused = facts.receipt.as_ref().is_some_and(|it| it.revoked.is_none() && it.reviewers.contains(me));
    // A writer that has used the receipt may already have written, so revoking it would stop nothing.
    unused && facts.write.is_none()
}

fn revoking(visitor: &Visitor, facts: &ReviewFacts) -> Option<RevocationForm> {
    // An expired receipt allows no write, so there is nothing left to revoke.
    let still_good = progress::receipt_expires_at(facts).is_some_and(|it| it > facts.now);
    (still_good && may_revoke(visitor, facts)).then(|| RevocationForm {
        action: format!("/reviews/{}/revocation", facts.hold.id),
        csrf: visitor.0.csrf.shown(),
    })
}
