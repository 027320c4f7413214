//! `POST /votes`: decides several reviews together. The first request shows the reviews, the second one votes on each.
//!
//! The nonces of a page are bound to that page (its *sheet*), so that exactly the reviews that were shown together are
//! decided together.

mod results;

use std::collections::BTreeSet;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_adapters::random;
use countersign_domain::chain::hash::Digest;
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::reviews::{Ballot, BrowserCheck, CheckboxState, VoteVerdict, VoterProof, VotingSeat};
use countersign_service::error::{Error, Result};
use countersign_service::inbox::Inbox;
use countersign_service::inbox::bulk_decisions::BulkExclusion;
use countersign_service::reviews::details::ReviewFacts;

use super::bulk_decide_view::{BulkDecisionPage, BulkGroupRow, BulkGroupsPage, BulkReviewRow, ExcludedReviewRow};
use crate::pages::reviews::decide::{alone_words, committed};
use crate::pages::reviews::review::{change, progress};
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{cannot_decide, headline, html, moment, see_other, urgency};
use crate::pages::shared::layout::DigestText;
use crate::pages::shared::safe_text::{SafeLine, SafeText};
use crate::pages::shared::tool_call::ToolCallView;
use crate::pages::shared::visitor::Visitor;
use crate::pages::shared::vote_form;
use crate::pages::shared::widgets::CommentRequirement;
use crate::pages::threads::version::asker;
use crate::state::Capability;

/// 128 bits make the name of a page unique.
const SHEET_BYTES: usize = 16;

/// The fields of both forms. A repeated field is a row.
#[derive(Clone, Debug, Default)]
struct BulkDecisionForm {
    reviews: Vec<ReviewId>,
    sheet: String,
    rows: Vec<BulkDecisionRow>,
    verdict: String,
    comment: String,
}

/// One review on the page.
#[derive(Clone, Debug)]
struct BulkDecisionRow {
    review: ReviewId,
    stage: u32,
    transition: Digest,
    nonce: String,
}

/// `POST /votes`.
pub async fn submit(
    inbox: Capability<Inbox>,
    request: HttpRequest,
    sent: SignedInForm<Vec<(String, String)>>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let sent = BulkDecisionForm::read(form)?;
    let asked = BulkDecisionContext { inbox: &inbox, request: &request, visitor: &visitor, sent: &sent };
    // Only the second form has a verdict, which distinguishes the two forms of this address.
    if sent.verdict.is_empty() { asked.ask().await } else { asked.count().await }
}

/// Redirects `GET /votes` to the inbox, for example after a reload.
pub async fn back() -> HttpResponse {
    see_other("/")
}

impl BulkDecisionForm {
    fn read(fields: Vec<(String, String)>) -> Result<Self> {
        let mut sent = Self::default();
        let mut seen = BTreeSet::new();
        for (name, value) in fields {
            match name.as_str() {
                "sheet" => sent.sheet = value,
                "verdict" => sent.verdict = value,
                "comment" => sent.comment = vote_form::as_typed(&value),
                "review" => {
                    let review = ReviewId::try_from(value.as_str()).map_err(|_| Error::NotFound("review"))?;
                    // A review that is sent twice gets one row, and so one vote.
                    if seen.insert(review.clone()) {
                        sent.reviews.push(review);
                    }
                }
                "row" => {
                    let row =
                        BulkDecisionRow::read(&value).ok_or_else(|| Error::invalid("/row", "a row cannot be read"))?;
                    if seen.insert(row.review.clone()) {
                        sent.rows.push(row);
                    }
                }
                _ => {}
            }
        }
        Ok(sent)
    }
}

impl BulkDecisionRow {
    /// Reads a row token. Its parts contain no spaces.
    fn read(token: &str) -> Option<Self> {
        let mut parts = token.split(' ');
        let review = ReviewId::try_from(parts.next()?).ok()?;
        let stage = parts.next()?.parse().ok()?;
        let transition = Digest::try_from(parts.next()?).ok()?;
        let nonce = parts.next()?.to_owned();
        // The page never writes more parts, so a longer token is not from it.
        parts.next().is_none().then_some(Self { review, stage, transition, nonce })
    }

    fn token(&self) -> String {
        format!("{} {} {} {}", self.review, self.stage, self.transition, self.nonce)
    }
}

/// Returns the page name for a nonce of this page. A review id has no slash, so the nonce fits no other form.
fn page_name(sheet: &str, review: &ReviewId) -> String {
    format!("several/{sheet}/{review}")
}

struct BulkDecisionContext<'a> {
    inbox: &'a Inbox,
    request: &'a HttpRequest,
    visitor: &'a Visitor,
    sent: &'a BulkDecisionForm,
}

impl BulkDecisionContext<'_> {
    /// Shows the selected reviews on one page if they can be decided together.
    async fn ask(&self) -> Result<HttpResponse> {
        // A single review needs no bulk page, and its own page shows more details.
        if let [only] = self.sent.reviews.as_slice() {
            return Ok(see_other(&format!("/reviews/{only}")));
        }
        self.page(&self.sent.reviews, None).await
    }

    async fn page(&self, reviews: &[ReviewId], problem: Option<&str>) -> Result<HttpResponse> {
        let sorted = self.inbox.sorted(reviews, self.visitor.account()).await?;
        let left_out = sorted.left_out.iter().map(|(facts, why)| left_out_row(facts, *why)).collect();
        let shell = self.visitor.shell(None).await?;
        let csrf = self.visitor.0.csrf.shown();
        // One verdict and one comment fit only reviews of the same kind, so other kinds are separated.
        let [alike] = sorted.alike.as_slice() else {
            let problem = match sorted.alike.len() {
                0 => "None of these reviews can be decided here.".to_owned(),
                kinds => format!(
                    "The selected reviews request {kinds} different kinds of change. Reviews can be decided together \
                     only if they have the same policy, node, reasons, changed paths and tool arguments. Nothing was decided."
                ),
            };
            let groups = sorted.alike.iter().map(|it| it.iter().map(apart_row).collect()).collect();
            let page = BulkGroupsPage { shell, csrf, problem, groups, left_out };
            return Ok(html(StatusCode::CONFLICT, page.render()));
        };
        // Each page gets a new name, so that nonces of an earlier page do not fit this one.
        let sheet = URL_SAFE_NO_PAD.encode(random::bytes::<SHEET_BYTES>());
        // All rows share policy and reasons, so the first one describes them for the page.
        let first = alike.first().ok_or(Error::NotFound("review"))?;
        let rows: Result<Vec<(BulkReviewRow, CommentRequirement)>> =
            alike.iter().map(|it| self.row(&sheet, it)).collect();
        let (rows, wishes): (Vec<_>, Vec<_>) = rows?.into_iter().unzip();
        let page = BulkDecisionPage {
            shell,
            csrf,
            flow: SafeLine::new(first.hold.flow.as_str()),
            policy: DigestText::new(first.hold.policy.to_string()),
            reasons: change::reasons(&first.hold.reasons),
            // One comment serves all rows, so it is required as soon as one row requires it.
            comment: wishes
                .into_iter()
                .find(|it| *it == CommentRequirement::Required)
                .unwrap_or(CommentRequirement::Optional),
            typed: SafeText::new(self.sent.comment.as_str()),
            problem: problem.map(str::to_owned),
            consequence: format!("If your approval is the last required one, the {}", committed(first)),
            sheet,
            rows,
            left_out,
        };
        Ok(html(if problem.is_some() { StatusCode::CONFLICT } else { StatusCode::OK }, page.render()))
    }

    fn row(&self, sheet: &str, facts: &ReviewFacts) -> Result<(BulkReviewRow, CommentRequirement)> {
        let hold = &facts.hold;
        let places = facts.can_decide.as_deref().unwrap_or_default();
        // Delegated seats are left out, because bulk decisions are never made for a delegator.
        let own: Vec<&VotingSeat> = places.iter().filter(|it| it.absent.is_none()).collect();
        let stage = progress::place_to_vote_in(facts, &own).map_or(0, |it| it.stage);
        let page = page_name(sheet, &hold.id);
        let nonce = self.visitor.nonce(&page, hold.transition, stage)?;
        let token = BulkDecisionRow { review: hold.id.clone(), stage, transition: hold.transition, nonce };
        let shown = change::read(facts)?;
        let row = BulkReviewRow {
            token: token.token(),
            url: format!("/reviews/{}", hold.id),
            headline: shown.headline,
            thread: SafeLine::new(hold.thread.as_str()),
            title: hold.context.title.as_deref().map(SafeLine::new),
            on_behalf_of: hold.context.on_behalf_of.as_deref().map(SafeLine::new),
            asked_by: facts.by.as_ref().map(asker),
            digest: DigestText::new(hold.transition.to_string()),
            needs: progress::needs(facts),
            deadline: moment(hold.expires_at, facts.now),
            urgency: urgency(hold.expires_at, facts.now),
            rows: shown.rows.changed,
            writers: shown.writers,
            call: facts.call.as_ref().map(|it| ToolCallView::of(it).of_review(&hold.id)),
            usage: change::usage(&facts.transition.statement),
            warnings: change::warnings(&facts.warnings),
            rationale: facts.transition.rationale.as_deref().map(|it| change::rationale(facts, it)),
        };
        let asks = hold.stages.get(stage as usize).is_some_and(|it| it.comment_required);
        Ok((row, if asks { CommentRequirement::Required } else { CommentRequirement::Optional }))
    }

    /// Votes on each row. An error that affects all rows shows the page again. Other errors are shown row by row.
    async fn count(&self) -> Result<HttpResponse> {
        let verdict = vote_form::verdict(&self.sent.verdict)?;
        let reviews: Vec<ReviewId> = self.sent.rows.iter().map(|it| it.review.clone()).collect();
        let before = self.inbox.several(&reviews, self.visitor.account()).await?;
        let silent = self.sent.comment.trim().is_empty();
        let asks = |(row, item): (&BulkDecisionRow, &countersign_service::inbox::list::InboxItem)| {
            item.hold.stages.get(row.stage as usize).is_some_and(|it| it.comment_required)
        };
        // The check comes before the first vote, so that a missing comment counts no vote at all.
        if silent && self.sent.rows.iter().zip(&before).any(asks) {
            let problem = "A comment is required. Enter the reason for your decision. None of your votes was counted.";
            return self.page(&reviews, Some(problem)).await;
        }
        let ballot = |row: &BulkDecisionRow| Ok((row.review.clone(), self.ballot(row, verdict)?));
        // All nonces are read before the first vote, so that a form of another session counts no vote at all.
        let ballots: Vec<(ReviewId, Ballot)> = match self.sent.rows.iter().map(ballot).collect() {
            // The page comes back with new nonces, so that the reviewer can decide at once.
            Err(Error::Vote(_)) => {
                let problem = "The form is not from your session. Read this page and decide again. None of your votes \
                               was counted.";
                return self.page(&reviews, Some(problem)).await;
            }
            read => read?,
        };
        let voted = self.inbox.vote_on_reviews(&self.visitor.account().id, &ballots).await?;
        self.told(verdict, &ballots, voted).await
    }

    /// Reads the ballot of a row. The nonce must belong to this session.
    fn ballot(&self, row: &BulkDecisionRow, verdict: VoteVerdict) -> Result<Ballot> {
        let page = page_name(&self.sent.sheet, &row.review);
        let nonce = self.visitor.read_nonce(&page, row.transition, row.stage, &row.nonce)?;
        Ok(Ballot {
            transition: row.transition,
            // Bulk decisions are never made for a delegator.
            delegation: None,
            stage: row.stage,
            verdict,
            nonce,
            comment: Some(self.sent.comment.clone()).filter(|it| !it.trim().is_empty()),
            // The bulk page recomputes no digest in the browser, so its votes do not claim it.
            browser_check: BrowserCheck::NotRecomputed,
            proof: VoterProof::of_session(&self.visitor.0.signed_in.session.record),
            // Reviews that ask for typed digits are decided on their own pages.
            typed: None,
            outcome_unknown_accepted: CheckboxState::No,
            // The bulk page shows no previewed effect for each row, so no row can expect one.
            told: None,
        })
    }
}

fn apart_row(facts: &ReviewFacts) -> BulkGroupRow {
    BulkGroupRow {
        review: facts.hold.id.to_string(),
        url: format!("/reviews/{}", facts.hold.id),
        headline: headline(&facts.hold, Some(&facts.transition), &facts.diff, facts.call.as_ref()),
        flow: SafeLine::new(facts.hold.flow.as_str()),
        thread: SafeLine::new(facts.hold.thread.as_str()),
    }
}

fn left_out_row(facts: &ReviewFacts, why: BulkExclusion) -> ExcludedReviewRow {
    ExcludedReviewRow {
        url: format!("/reviews/{}", facts.hold.id),
        headline: headline(&facts.hold, Some(&facts.transition), &facts.diff, facts.call.as_ref()),
        thread: SafeLine::new(facts.hold.thread.as_str()),
        why: match why {
            BulkExclusion::CannotDecide(why) => cannot_decide(why).to_owned(),
            BulkExclusion::ForAnother => "You would vote for another reviewer. Decide it on its own page.".to_owned(),
            BulkExclusion::Alone(why) => alone_words(why).to_owned(),
            BulkExclusion::OutcomeUnknown => {
                "The outcome of an earlier write of this thread is unknown. Decide it on its own page.".to_owned()
            }
        },
    }
}
