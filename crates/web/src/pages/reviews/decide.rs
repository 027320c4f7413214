//! `POST /reviews/{review}/decision`: shows the confirm page, then counts the vote.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_domain::chain::hash::Digest;
use countersign_domain::primitives::id::AccountId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Ballot, NotBulkDecidable, VoteContext, VotePreview, VoteRejected};
use countersign_domain::threads::thread::ThreadStatusCode;
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::inbox::list::WaitingCount;
use countersign_service::reviews::Reviews;
use countersign_service::reviews::details::ReviewFacts;
use countersign_service::reviews::vote::VoteOutcome;

use super::review;
use super::review::change::run_within;
use super::review::{ReviewFormState, change};
use crate::pages::identity::passkeys::ids;
use crate::pages::identity::passkeys_view::PasskeyChallengeView;
use crate::pages::reviews::confirm_view::ConfirmPage;
use crate::pages::shared::call_outcome::is_call_only;
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{headline, html, moment, see_other, span};
use crate::pages::shared::layout::DigestText;
use crate::pages::shared::passkey_signing::{PasskeySignForm, PasskeySigningView};
use crate::pages::shared::safe_text::{SafeLine, SafeText};
use crate::pages::shared::tool_call::ToolCallView;
use crate::pages::shared::visitor::Visitor;
use crate::pages::shared::vote_form::VoteFields;
use crate::state::Capability;

/// `POST /reviews/{review}/decision`.
pub async fn submit(
    identity: Capability<Identity>,
    reviews: Capability<Reviews>,
    sent: SignedInForm<VoteFields>,
    review: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let facts = review::facts(&reviews, &visitor, &review).await?;
    let asked =
        ReviewDecisionContext { reviews: &reviews, identity: &identity, visitor: &visitor, facts: &facts, form: &form };
    let answer = match asked.ballot() {
        // The last vote is final, so the first form leads to a confirm page and only the form of that page counts.
        Ok(ballot) if form.is_confirmed() => match asked.count(&ballot).await {
            // The reviewer can correct these on the confirm page, so the decision and its comment stay there.
            Err(Error::Vote(refused @ (VoteRejected::NotTyped | VoteRejected::MovedOn))) => {
                asked.look_again(&ballot, &refused).await
            }
            done => done,
        },
        Ok(ballot) => asked.confirm(&ballot, None).await,
        Err(error) => Err(error),
    };
    match answer.as_ref().err().and_then(words) {
        Some(problem) => asked.again(problem).await,
        None => answer,
    }
}

struct ReviewDecisionContext<'a> {
    reviews: &'a Capability<Reviews>,
    identity: &'a Identity,
    visitor: &'a Visitor,
    facts: &'a ReviewFacts,
    form: &'a VoteFields,
}

impl ReviewDecisionContext<'_> {
    /// Reads the ballot from the form. The nonce must belong to this session. The rules of the vote are not checked
    /// here.
    fn ballot(&self) -> Result<Ballot> {
        self.form.ballot(self.visitor, self.facts.hold.id.as_str())
    }

    /// Counts the vote and redirects, so that a reload does not send the form again.
    async fn count(&self, ballot: &Ballot) -> Result<HttpResponse> {
        let review = &self.facts.hold.id;
        let signature = self.form.signature()?;
        let voted = self.reviews.vote(&self.visitor.account().id, review, ballot, signature.as_ref()).await?;
        match voted {
            VoteOutcome::Waiting | VoteOutcome::Approved | VoteOutcome::Denied => {
                // The redirect keeps a reload from sending the vote again.
                Ok(see_other(&format!("/reviews/{review}")))
            }
        }
    }

    /// Returns the passkey challenge for the confirm page, and whether a signature is required.
    async fn signing(&self, ballot: &Ballot) -> Result<PasskeySigningView> {
        let (hold, voter) = (&self.facts.hold, &self.visitor.account().id);
        // A recent sign-in with a passkey can be enough, so the vote itself must be signed only without one.
        let must = hold.jury(self.facts.now).passkey_need(ballot.stage).met_by(&ballot.proof, self.facts.now).is_err();
        signing(self.identity, voter, must.then_some(MissingPasskeySignature), || {
            self.identity.vote_challenge(hold, voter, ballot)
        })
        .await
    }

    /// Returns the effect that the ballot would have now.
    fn prospect(&self, ballot: &Ballot) -> Result<VotePreview> {
        let (facts, hold) = (self.facts, &self.facts.hold);
        let mut roll = facts.roll.clone();
        roll.people.push(self.visitor.account().clone());
        let bench = VoteContext { roll: &roll, outcome_unknown: facts.outcome_unknown };
        let typed = hold.asks_to_type(ballot.stage, ballot.verdict);
        // The preview assumes a correct confirmation, because the reviewer has not typed anything yet.
        let confirmed = Ballot { typed, told: None, ..ballot.clone() };
        // The vote is tried on a copy, so that the same rules predict its effect and nothing is stored.
        Ok(hold.clone().vote(confirmed, self.visitor.account(), &bench)?.prospect())
    }

    /// Renders the confirm page again with the current review: the typed digits were wrong, or others have voted.
    async fn look_again(&self, ballot: &Ballot, refused: &VoteRejected) -> Result<HttpResponse> {
        // The review is read again, because another vote may have changed the effect.
        let facts = review::facts(self.reviews, self.visitor, self.facts.hold.id.as_str()).await?;
        ReviewDecisionContext { facts: &facts, ..*self }.confirm(ballot, Some(vote_words(refused))).await
    }

    /// Renders the confirm page. A ballot that would be rejected is rejected here, by the same rules, except for the
    /// typed digits: they are typed on this page. `problem` is the error of an earlier attempt.
    async fn confirm(&self, ballot: &Ballot, problem: Option<String>) -> Result<HttpResponse> {
        let (facts, hold) = (self.facts, &self.facts.hold);
        // A write can move the head under the review, so no vote is prepared while it runs.
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
            absent: facts.place_of(ballot.delegation.as_ref()).map(|(by, away)| review::absent(by, away, facts.now)),
            verdict: ballot.verdict.into(),
            headline: headline(hold, Some(&facts.transition), &facts.diff, facts.call.as_ref()),
            call: facts.call.as_ref().map(|it| ToolCallView::of(it).of_review(&hold.id)),
            usage: change::usage(&facts.transition.statement),
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

    /// Renders the current review page with the error and the typed comment.
    async fn again(&self, problem: String) -> Result<HttpResponse> {
        let facts = review::facts(self.reviews, self.visitor, self.facts.hold.id.as_str()).await?;
        let delegation = Some(self.form.place()).filter(|it| !it.is_empty()).unwrap_or(review::OWN).to_owned();
        let again = ReviewFormState { problem: Some(problem), typed: self.form.comment(), delegation };
        let page = review::page(self.reviews, self.visitor, &facts, &again).await?;
        Ok(html(StatusCode::CONFLICT, page.render()))
    }
}

/// Marks a vote that is rejected without the signature of a passkey.
#[derive(Clone, Copy)]
pub struct MissingPasskeySignature;

/// Returns whether a passkey can or must sign the vote, with the challenge if the voter has a passkey.
pub async fn signing(
    identity: &Identity,
    voter: &AccountId,
    needed: Option<MissingPasskeySignature>,
    challenge: impl FnOnce() -> Result<(Digest, Timestamp)>,
) -> Result<PasskeySigningView> {
    let own = identity.passkeys_of(voter).await?;
    // Passkeys work only at an address that browsers accept, and only for a person who has one.
    let Some(party) = identity.relying_party().filter(|_| !own.is_empty()) else {
        return Ok(if needed.is_some() { PasskeySigningView::Impossible } else { PasskeySigningView::NotAsked });
    };
    let (challenge, until) = challenge()?;
    let challenge = URL_SAFE_NO_PAD.encode(challenge.bytes());
    let asking = PasskeyChallengeView { rp_id: party.id().to_owned(), challenge, allow: ids(&own) };
    let form = PasskeySignForm { asking, until: until.to_string() };
    Ok(if needed.is_some() { PasskeySigningView::Must(form) } else { PasskeySigningView::May(form) })
}

/// Describes the effect of the vote on the confirm page.
fn consequence(facts: &ReviewFacts, prospect: VotePreview) -> String {
    match prospect {
        VotePreview::Waits => "Your vote is counted. The review waits for more votes.".to_owned(),
        VotePreview::Ends if is_call_only(facts) => {
            format!("The review ends. {} may not run this call.", facts.hold.node)
        }
        VotePreview::Ends => "The review ends. Nothing is committed or written.".to_owned(),
        VotePreview::Passes => format!("The {}", committed(facts)),
    }
}

/// Describes the effect of the last required approval, without its article.
pub fn committed(facts: &ReviewFacts) -> String {
    let writers: Vec<String> = facts.policy.writers().map(|(node, _)| node.to_string()).collect();
    let ttl = span(facts.policy.approval().receipt_ttl().as_secs());
    if let (Some(call), Some(ttl)) = (&facts.call, run_within(facts)) {
        let node = &facts.hold.node;
        return format!("approval lets {node} run {} once, within {ttl}, with exactly these arguments.", call.name);
    }
    let mut effect = match &facts.call {
        Some(call) if is_call_only(facts) => {
            format!("approval lets {} call {} with exactly these arguments.", facts.hold.node, call.name)
        }
        Some(call) => {
            let node = &facts.hold.node;
            format!("change is committed immediately. {node} may call {} with exactly these arguments.", call.name)
        }
        None => "change is committed immediately.".to_owned(),
    };
    if !writers.is_empty() {
        let writers = crate::pages::shared::format::listed(&writers, "or");
        effect.push_str(&format!(" {writers} may write it once, within {ttl}."));
    }
    effect
}

const NOT_COUNTED: &str = "Your vote was not counted.";

/// Returns the message for a vote that was not counted, or `None` if the error is not about the vote.
pub fn words(error: &Error) -> Option<String> {
    let why = match error {
        Error::Vote(refused) => vote_words(refused),
        Error::Passkey(refused) => format!("The passkey signature is not valid: {refused}."),
        Error::WriteInProgress => "A writer is writing at the moment. Wait half a minute, then vote again.".to_owned(),
        Error::Halted => "This flow is halted. Ask an administrator to resume it.".to_owned(),
        Error::Closed => "The thread was closed.".to_owned(),
        Error::Denied(_) => {
            "The policy of this review is no longer accepted. The agent must propose the change again.".to_owned()
        }
        Error::Busy => "The gateway was busy. Try again.".to_owned(),
        // The commit may have reached the database before it failed, so the text must not claim that nothing counted.
        _ if error.outcome_is_unknown() => {
            return Some(
                "The gateway's database failed or is unavailable, so it is unknown whether your vote was counted. Open \
                 the review again in a moment. It shows whether your vote counts."
                    .to_owned(),
            );
        }
        Error::ClockSkew => "The gateway's clock is wrong. Tell the operator of the gateway.".to_owned(),
        Error::Invalid { detail, .. } => format!("The form is not valid: {detail}."),
        Error::NotFound(_)
        | Error::Forbidden(_)
        | Error::NotOfRole { .. }
        | Error::Unauthenticated
        | Error::Token(_)
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
        | Error::ApprovalRequest(_)
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

/// Returns the reason why a vote was not counted, as a message to the voter.
pub fn vote_words(refused: &VoteRejected) -> String {
    let words = match refused {
        VoteRejected::Passkey(why) => return format!("The passkey signature is not valid: {why}."),
        VoteRejected::NotTyped => {
            "The typed text is not the end of this digest. Compare the digest with the one on the review page, and \
             type its last six digits. Your vote was not counted."
        }
        VoteRejected::MovedOn => {
            "Other reviewers have voted since you opened this page, and the effect of your vote has changed. Your vote \
             is not counted yet. Read the new effect and confirm again."
        }
        VoteRejected::Alone(why) => alone_words(*why),
        VoteRejected::PasskeyRequired => {
            "A passkey must sign this decision. Enable JavaScript and press the button to confirm with a passkey."
        }
        VoteRejected::PasskeyStale => {
            "Your last use of a passkey is too old. Sign the decision with a passkey, or sign in with it again."
        }
        VoteRejected::SignatureExpired => "The signature expired. Decide again and sign within five minutes.",
        VoteRejected::Ended => "This review has already been decided.",
        VoteRejected::Expired => "The deadline has passed.",
        VoteRejected::Digest => {
            "Your page showed another change than the pending one. Read the current change and decide again."
        }
        VoteRejected::Ineligible(reason) => crate::pages::shared::format::why_not(*reason).0,
        VoteRejected::Stage => "You cannot vote in this stage. Open the review again.",
        VoteRejected::Delegation => {
            "No active delegation allows you to vote for another reviewer here. Open the review again."
        }
        VoteRejected::CommentRequired => "A comment is required. Enter the reason for your decision.",
        VoteRejected::CommentTooLong => "The comment is too long. The limit is 4,000 characters.",
        VoteRejected::NonceUsed => {
            "The form was already sent, or is not from your session. Read the change again and decide."
        }
        VoteRejected::Mismatch => {
            "Your browser recomputed another digest from the page. Do not approve it. Tell the operator of the gateway."
        }
        VoteRejected::PolicyChanged => {
            "The policy of the flow has changed, so no vote was counted. The current status of the review is shown \
             below."
        }
        VoteRejected::NothingToWithdraw => "You have no counted vote to withdraw.",
        VoteRejected::WithdrawnTooOften => "You have reached the limit of withdrawn votes for this review.",
        VoteRejected::OutcomeUnknown => "The outcome of an earlier write is unknown. Tick the box to approve.",
    };
    words.to_owned()
}

/// Returns the reason why a review cannot be decided together with others.
pub fn alone_words(why: NotBulkDecidable) -> &'static str {
    match why {
        NotBulkDecidable::Passkey => "Its flow requires a passkey. Decide it on its own page.",
        NotBulkDecidable::Typing => "Its flow requires you to type part of the digest. Decide it on its own page.",
        NotBulkDecidable::Talked => "It has comments. Read them and decide it on its own page.",
        NotBulkDecidable::Large => "It changes too many values to show here. Decide it on its own page.",
    }
}
