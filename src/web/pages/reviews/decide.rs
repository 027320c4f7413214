//! `POST /reviews/{review}/decision`: first the second look, then the vote.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::review;
use super::review::ReviewFormState;
use crate::domain::chain::hash::Digest;
use crate::domain::primitives::id::AccountId;
use crate::domain::primitives::time::Timestamp;
use crate::domain::reviews::{Ballot, NotBulkDecidable, VoteContext, VotePreview, VoteRejected};
use crate::domain::threads::thread::ThreadStatusCode;
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::inbox::WaitingCount;
use crate::service::reviews::details::ReviewFacts;
use crate::service::reviews::vote::VoteOutcome;
use crate::web::pages::identity::passkeys::ids;
use crate::web::pages::identity::passkeys_view::PasskeyChallengeView;
use crate::web::pages::shared::confirm::{ConfirmPage, PasskeySignForm, PasskeySigningView};
use crate::web::pages::shared::error_page::PageError;
use crate::web::pages::shared::form::SignedInForm;
use crate::web::pages::shared::format::{headline, html, moment, see_other, span};
use crate::web::pages::shared::layout::DigestText;
use crate::web::pages::shared::safe_text::{SafeLine, SafeText};
use crate::web::pages::shared::visitor::Visitor;
use crate::web::pages::shared::vote_form::VoteFields;
use crate::web::state::AppState;

/// `POST /reviews/{review}/decision`.
pub async fn submit(
    app: web::Data<AppState>,
    request: HttpRequest,
    sent: SignedInForm<VoteFields>,
    review: web::Path<String>,
) -> std::result::Result<HttpResponse, PageError> {
    let (visitor, form) = sent.parts();
    let failed = |error| PageError::of(&request, error);
    let facts = review::facts(&app, &visitor, &review).await.map_err(failed)?;
    let asked = ReviewDecisionContext { app: &app, visitor: &visitor, facts: &facts, form: &form };
    let answer = match asked.ballot() {
        Ok(ballot) if form.is_confirmed() => match asked.count(&ballot).await {
            Err(Error::Vote(refused @ (VoteRejected::NotTyped | VoteRejected::MovedOn))) => {
                asked.look_again(&ballot, &refused).await
            }
            done => done,
        },
        Ok(ballot) => asked.confirm(&ballot, None).await,
        Err(error) => Err(error),
    };
    match answer {
        Ok(response) => Ok(response),
        Err(error) => match words(&error) {
            Some(problem) => asked.again(problem).await.map_err(failed),
            None => Err(failed(error)),
        },
    }
}

struct ReviewDecisionContext<'a> {
    app: &'a AppState,
    visitor: &'a Visitor,
    facts: &'a ReviewFacts,
    form: &'a VoteFields,
}

impl ReviewDecisionContext<'_> {
    /// The ballot that the form is, if its page was this visitor's own. Whether it counts is not said here.
    fn ballot(&self) -> Result<Ballot> {
        self.form.ballot(self.app, self.visitor, self.facts.hold.id.as_str())
    }

    /// Counts the vote; a reload of the page that follows sends nothing again.
    async fn count(&self, ballot: &Ballot) -> Result<HttpResponse> {
        let review = &self.facts.hold.id;
        let (service, signature) = (&self.app.service, self.form.signature()?);
        let voted = service.vote_signed(&self.visitor.account().id, review, ballot, signature.as_ref()).await?;
        match voted {
            VoteOutcome::Waiting | VoteOutcome::Approved | VoteOutcome::Denied => {
                Ok(see_other(&format!("/reviews/{review}")))
            }
        }
    }

    /// What a passkey may or must sign before the vote counts.
    async fn signing(&self, ballot: &Ballot) -> Result<PasskeySigningView> {
        let (service, hold, voter) = (&self.app.service, &self.facts.hold, &self.visitor.account().id);
        let must = hold.passkey_need(ballot.stage).met_by(&ballot.proof, self.facts.now).is_err();
        signing(service, voter, must.then_some(MissingPasskeySignature), || service.vote_challenge(hold, voter, ballot))
            .await
    }

    /// What would come of a ballot now.
    fn prospect(&self, ballot: &Ballot) -> Result<VotePreview> {
        let (facts, hold) = (self.facts, &self.facts.hold);
        let mut roll = facts.roll.clone();
        roll.people.push(self.visitor.account().clone());
        let bench = VoteContext { roll: &roll, outcome_unknown: facts.outcome_unknown };
        let typed = hold.asks_to_type(ballot.stage, ballot.verdict);
        let confirmed = Ballot { typed, told: None, ..ballot.clone() };
        Ok(hold.clone().vote(confirmed, self.visitor.account(), &bench)?.prospect())
    }

    /// The second look once more, as the review stands by now: what is to be typed was not, or others have voted.
    async fn look_again(&self, ballot: &Ballot, refused: &VoteRejected) -> Result<HttpResponse> {
        let facts = review::facts(self.app, self.visitor, self.facts.hold.id.as_str()).await?;
        ReviewDecisionContext { facts: &facts, ..*self }.confirm(ballot, Some(vote_words(refused))).await
    }

    /// The second look. A ballot that would not count is refused here already, by the same rules; but for what is typed
    /// here, of which `problem` says that it was not what is asked for.
    async fn confirm(&self, ballot: &Ballot, problem: Option<String>) -> Result<HttpResponse> {
        let (facts, hold) = (self.facts, &self.facts.hold);
        if facts.status == ThreadStatusCode::Writing {
            return Err(Error::WriteInProgress);
        }
        let typing = hold.asks_to_type(ballot.stage, ballot.verdict);
        let prospect = self.prospect(ballot)?;
        let status = if problem.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
        let page = ConfirmPage {
            shell: self.visitor.shell_beside(WaitingCount::Exactly(0), None),
            review_url: format!("/reviews/{}", hold.id),
            action: format!("/reviews/{}/decision", hold.id),
            csrf: self.visitor.0.csrf.shown(),
            digest: DigestText::new(ballot.transition.to_string()),
            nonce: ballot.nonce.clone(),
            stage: ballot.stage.to_string(),
            absent: facts.place_of(ballot.delegation.as_ref()).map(review::absent),
            verdict: ballot.verdict.into(),
            headline: headline(hold, Some(&facts.transition), &facts.diff),
            flow: SafeLine::new(hold.flow.as_str()),
            thread: SafeLine::new(hold.thread.as_str()),
            deadline: moment(hold.expires_at, facts.now),
            consequence: consequence(facts, prospect),
            expects: prospect.word(),
            comment: SafeText::new(ballot.comment.clone().unwrap_or_default()),
            browser_check: self.form.browser_check().to_owned(),
            doubt: review::doubt(facts),
            signing: self.signing(ballot).await?,
            typing,
            problem,
        };
        Ok(html(status, page.render()))
    }

    /// The review once more, as it stands by now: what was refused in words, and what was typed.
    async fn again(&self, problem: String) -> Result<HttpResponse> {
        let facts = review::facts(self.app, self.visitor, self.facts.hold.id.as_str()).await?;
        let delegation = Some(self.form.place()).filter(|it| !it.is_empty()).unwrap_or(review::OWN).to_owned();
        let again = ReviewFormState { problem: Some(problem), typed: self.form.comment(), delegation };
        let page = review::page(self.app, self.visitor, &facts, &again).await?;
        Ok(html(StatusCode::CONFLICT, page.render()))
    }
}

/// That a vote does not count without a passkey's signature.
#[derive(Clone, Copy)]
pub struct MissingPasskeySignature;

/// What a passkey of the voter's may or must sign, and whether they have one.
pub async fn signing(
    service: &Service,
    voter: &AccountId,
    needed: Option<MissingPasskeySignature>,
    challenge: impl FnOnce() -> Result<(Digest, Timestamp)>,
) -> Result<PasskeySigningView> {
    let own = service.passkeys_of(voter).await?;
    let Some(party) = service.relying_party().filter(|_| !own.is_empty()) else {
        return Ok(if needed.is_some() { PasskeySigningView::Impossible } else { PasskeySigningView::NotAsked });
    };
    let (challenge, until) = challenge()?;
    let challenge = URL_SAFE_NO_PAD.encode(challenge.bytes());
    let asking = PasskeyChallengeView { rp_id: party.id().to_owned(), challenge, allow: ids(&own) };
    let form = PasskeySignForm { asking, until: until.to_string() };
    Ok(if needed.is_some() { PasskeySigningView::Must(form) } else { PasskeySigningView::May(form) })
}

/// What this vote leads to, if it is confirmed.
fn consequence(facts: &ReviewFacts, prospect: VotePreview) -> String {
    match prospect {
        VotePreview::Waits => "Your vote is counted, and the review waits for others.".to_owned(),
        VotePreview::Ends => "The review ends. Nothing is committed, and nothing can be written of it.".to_owned(),
        VotePreview::Passes => format!("The {}", committed(facts)),
    }
}

/// What an approval leads to that is the last one needed.
pub fn committed(facts: &ReviewFacts) -> String {
    let writers: Vec<String> = facts.policy.writers().map(|(node, _)| node.to_string()).collect();
    let ttl = span(facts.policy.approval().receipt_ttl().as_secs());
    match writers.as_slice() {
        [] => "change is committed at once.".to_owned(),
        [..] => {
            let writers = crate::web::pages::shared::format::listed(&writers, "or");
            format!("change is committed at once, and {writers} may write it, once, within {ttl}.")
        }
    }
}

const NOT_COUNTED: &str = "Your vote was not counted.";

/// What a voter is told whose vote does not count; `None` for what is not about the vote.
pub fn words(error: &Error) -> Option<String> {
    let why = match error {
        Error::Vote(refused) => vote_words(refused),
        Error::Passkey(refused) => format!("The passkey’s signature does not count: {refused}."),
        Error::WriteInProgress => {
            "A writer was let through a moment ago; wait half a minute until it is done.".to_owned()
        }
        Error::Halted => "An administrator has stopped this flow.".to_owned(),
        Error::Closed => "The thread was closed.".to_owned(),
        Error::Denied(_) => {
            "The policy it was judged by is not accepted any more; the agent has to ask again.".to_owned()
        }
        Error::Busy => "The gateway was busy; try again.".to_owned(),
        _ if error.outcome_is_unknown() => {
            return Some(
                "The gateway's database failed or cannot be used now, so your vote may or may not have been counted. Open the review \
                 again in a moment: it shows whether it was."
                    .to_owned(),
            );
        }
        Error::ClockSkew => "The gateway's clock is wrong; tell whoever runs it.".to_owned(),
        Error::Invalid { detail, .. } => format!("The form was not complete: {detail}."),
        Error::NotFound(_)
        | Error::Forbidden(_)
        | Error::NotOfRole { .. }
        | Error::Unauthenticated
        | Error::Json(_)
        | Error::Rejected(_)
        | Error::Policy(_)
        | Error::HeadMoved { .. }
        | Error::StepReused { .. }
        | Error::Conflict { .. }
        | Error::NotSealed(_)
        | Error::Envelope(_)
        | Error::ThreadHeld(_)
        | Error::Imported
        | Error::Exists(_)
        | Error::WrongState(_)
        | Error::Expired
        | Error::Misdirected
        | Error::NotLetIn(_)
        | Error::NotTaken(_)
        | Error::NotRepeated(_)
        | Error::TooMany
        | Error::Erased
        | Error::Archive(_)
        | Error::NoArchives
        | Error::Unwritten(_)
        | Error::Broken(_)
        | Error::Unavailable(_)
        | Error::Store(_)
        | Error::Copy(_)
        | Error::Mail(_)
        | Error::Keyring(_) => return None,
    };
    Some(format!("{why} {NOT_COUNTED}"))
}

/// Why a vote is not counted, to its voter.
pub fn vote_words(refused: &VoteRejected) -> String {
    let words = match refused {
        VoteRejected::Passkey(why) => return format!("The passkey’s signature does not count: {why}."),
        VoteRejected::NotTyped => {
            "What you typed is not the end of this digest. Compare the digest with what you read, and type its last six \
             digits. Your vote was not counted."
        }
        VoteRejected::MovedOn => {
            "Others have voted since you read this: what follows now is another thing. Your vote was not counted yet; read \
             it, and confirm again."
        }
        VoteRejected::Alone(why) => alone_words(*why),
        VoteRejected::PasskeyRequired => {
            "A passkey has to sign this decision. Press the button that says so, with JavaScript on."
        }
        VoteRejected::PasskeyStale => {
            "It is too long ago that you used a passkey. Sign the decision with it, or sign in with it again."
        }
        VoteRejected::SignatureExpired => "The signature came too late. Decide again, and sign within five minutes.",
        VoteRejected::Ended => "This review was decided meanwhile.",
        VoteRejected::Expired => "The deadline has passed.",
        VoteRejected::Digest => {
            "The page you decided on shows another change than the one that is held. Read this one."
        }
        VoteRejected::Ineligible(reason) => crate::web::pages::shared::format::why_not(*reason).0,
        VoteRejected::Stage => "That is not a stage you can decide.",
        VoteRejected::Delegation => {
            "Nobody who could vote here has named you to vote in their place, or not any more. Read the page again."
        }
        VoteRejected::CommentRequired => "A comment is required here: say why.",
        VoteRejected::CommentTooLong => "The comment is too long; 4,000 characters fit.",
        VoteRejected::NonceUsed => {
            "The form was used before, or is not from a page of yours. Read the change again and decide."
        }
        VoteRejected::Mismatch => {
            "Your browser found that the page does not come out as the digest. Do not approve it; tell whoever runs the gateway."
        }
        VoteRejected::PolicyChanged => {
            "The flow’s policy has changed, so nothing was counted. What became of the review is said below."
        }
        VoteRejected::NothingToWithdraw => "There is no such vote of yours that counts.",
        VoteRejected::WithdrawnTooOften => "You have taken votes back on this review as often as may be.",
        VoteRejected::OutcomeUnknown => "An earlier write’s outcome is unknown: approving needs the box ticked.",
    };
    words.to_owned()
}

/// Why a review is decided by itself.
pub fn alone_words(why: NotBulkDecidable) -> &'static str {
    match why {
        NotBulkDecidable::Passkey => "Its flow asks for a passkey: decide it on its own page.",
        NotBulkDecidable::Typing => "Its flow asks for something to be typed: decide it on its own page.",
        NotBulkDecidable::Talked => "People talk about it: read what they say, and decide it on its own page.",
        NotBulkDecidable::Large => "It changes more than can be read beside others: decide it on its own page.",
    }
}
