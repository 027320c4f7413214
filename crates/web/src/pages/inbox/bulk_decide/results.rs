//! The result page of a decision about several reviews.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template as _;
use countersign_domain::primitives::id::{AccountId, ReviewId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Ballot, Hold, HoldState, VoteVerdict};
use countersign_service::error::{Error, Result};
use countersign_service::inbox::list::InboxItem;
use countersign_service::reviews::vote::VoteOutcome;

use super::BulkDecisionContext;
use crate::api::problem::Problem;
use crate::pages::inbox::bulk_decide_view::{BulkResultPage, BulkResultRow};
use crate::pages::reviews::decide::words;
use crate::pages::shared::format::{deciders, ending, headline, html, moment};
use crate::pages::shared::layout::Tone;
use crate::pages::shared::safe_text::{SafeLine, SafeText};

/// `Ok` if the vote was counted, or else the reason.
type VoteResult = std::result::Result<(), String>;

impl BulkDecisionContext<'_> {
    pub(super) async fn told(
        &self,
        verdict: VoteVerdict,
        ballots: &[(ReviewId, Ballot)],
        voted: Vec<Result<VoteOutcome>>,
    ) -> Result<HttpResponse> {
        let me = self.visitor.account();
        let reviews: Vec<ReviewId> = ballots.iter().map(|it| it.0.clone()).collect();
        // The reviews are read again, because the votes have changed them.
        let items = self.inbox.several(&reviews, me).await?;
        let now = self.visitor.now();
        let became = voted.into_iter().zip(&items).zip(ballots);
        let became: Vec<VoteResult> =
            became.map(|((voted, item), (_, ballot))| self.became(voted, item, &me.id, ballot)).collect();
        let counted = became.iter().filter(|it| it.is_ok()).count();
        let page = BulkResultPage {
            shell: self.visitor.shell(None).await?,
            verdict: verdict.into(),
            counted,
            // The comment is shown again if a vote failed, so that the reviewer can reuse it.
            unsent: Some(self.sent.comment.as_str())
                .filter(|it| counted < items.len() && !it.trim().is_empty())
                .map(SafeText::new),
            rows: items.iter().zip(became).map(|(item, became)| row(item, became, verdict, now)).collect(),
        };
        Ok(html(StatusCode::OK, page.render()))
    }

    /// Returns the result of one vote. A repeated form gets the first answer, because the vote with its nonce exists.
    fn became(&self, voted: Result<VoteOutcome>, item: &InboxItem, me: &AccountId, ballot: &Ballot) -> VoteResult {
        let error = match voted {
            Ok(VoteOutcome::Waiting | VoteOutcome::Approved | VoteOutcome::Denied) => return Ok(()),
            Err(error) => error,
        };
        let same = |it: &countersign_domain::reviews::Vote| {
            it.reviewer == *me && it.nonce == ballot.nonce && it.verdict == ballot.verdict && it.stands()
        };
        if matches!(error, Error::Vote(_)) && item.hold.votes.iter().any(same) {
            return Ok(());
        }
        // An internal error has no text for reviewers, so the row gives the request id for support.
        Err(words(&error).unwrap_or_else(|| {
            let problem = Problem::of(self.request, error);
            format!(
                "The gateway failed, and your vote was not counted. If you ask for help, include the request ID {}",
                problem.request_id()
            )
        }))
    }
}

fn row(item: &InboxItem, became: VoteResult, verdict: VoteVerdict, now: Timestamp) -> BulkResultRow {
    let hold = &item.hold;
    let ended = ending(&hold.state);
    let (word, tone, words) = match (became, verdict) {
        (Err(words), _) => ("Not counted", Tone::Bad, words),
        (Ok(()), verdict) if item.call.is_some() && item.diff.is_empty() => counted_call(hold, verdict),
        (Ok(()), verdict) => counted(&hold.state, verdict),
    };
    let words = match (tone, &ended) {
        // A review that ended in between is the likely cause of a refused vote.
        (Tone::Bad, Some((outcome, _))) => format!("{words} The review is {}.", outcome.words().to_lowercase()),
        _ => words,
    };
    BulkResultRow {
        url: format!("/reviews/{}", hold.id),
        headline: headline(hold, item.transition.as_ref(), &item.diff, item.call.as_ref()),
        thread: SafeLine::new(hold.thread.as_str()),
        word,
        tone,
        words,
        by: deciders(hold),
        at: ended.map(|(_, at)| moment(at, now)),
    }
}

/// Returns the result of a vote about a tool call that changes no value.
fn counted_call(hold: &Hold, verdict: VoteVerdict) -> (&'static str, Tone, String) {
    let node = &hold.node;
    match (&hold.state, verdict) {
        (HoldState::Approved { .. }, VoteVerdict::Approve) => {
            ("Approved", Tone::Good, format!("{node} may run this call. The approval has its own receipt."))
        }
        (HoldState::Denied { .. }, VoteVerdict::Deny) => {
            ("Denied", Tone::Good, format!("The review ended. {node} may not run this call."))
        }
        (state, verdict) => counted(state, verdict),
    }
}

fn counted(state: &HoldState, verdict: VoteVerdict) -> (&'static str, Tone, String) {
    match (state, verdict) {
        (HoldState::Approved { version, .. }, VoteVerdict::Approve) => {
            ("Approved", Tone::Good, format!("The change was committed as version {version} with its own receipt."))
        }
        (HoldState::Denied { .. }, VoteVerdict::Deny) => {
            ("Denied", Tone::Good, "The review ended. Nothing was committed.".to_owned())
        }
        (HoldState::Open {}, VoteVerdict::Approve) => {
            ("Counted", Tone::Good, "Your approval is counted. The review waits for more votes.".to_owned())
        }
        (HoldState::Open {}, VoteVerdict::Deny) => {
            ("Counted", Tone::Good, "Your denial is counted. The review waits for more votes.".to_owned())
        }
        // Another reviewer may vote between this vote and the read of the result.
        (_, _) => ("Counted", Tone::Good, "Your vote was counted. Other reviewers have decided since then.".to_owned()),
    }
}
