//! `GET /`: what waits, and what was decided lately.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template as _;

use super::failure::Failure;
use super::parts::{deciders, ending, headline, html, is_protected, lines, moment, place, urgency, why_not};
use super::policies;
use super::view::inbox::{Badge, DecidedRow, InboxPage, More, Votes, WaitingRow};
use super::view::text::{Line, Path};
use super::visitor::Visitor;
use crate::domain::review::{Hold, Ineligible, Verdict};
use crate::domain::time::Timestamp;
use crate::service::error::{Error, Result};
use crate::service::review_page::InboxItem;
use crate::web::app::App;

/// More than anybody decides in a sitting.
pub const WAITING_MAX: u32 = 100;

/// Enough to find what was decided a moment ago.
const DECIDED_MAX: usize = 15;

/// Protected places that a row names.
const PROTECTED_SHOWN: usize = 4;

/// `GET /`.
pub async fn show(
    app: web::Data<App>,
    request: HttpRequest,
    visitor: Visitor,
) -> std::result::Result<HttpResponse, Failure> {
    let page = page(&app, &visitor).await.map_err(|error| Failure::of(&request, error))?;
    Ok(html(StatusCode::OK, page.render()))
}

async fn page(app: &App, visitor: &Visitor) -> Result<InboxPage> {
    let (service, viewer) = (&app.service, visitor.account());
    let now = service.now();
    let mut items = service.inbox(viewer, None, WAITING_MAX + 1).await?;
    for late in items.iter().filter(|it| !it.hold.is_open(now)) {
        end(app, late).await?;
    }
    items.retain(|it| it.hold.is_open(now));
    let more = if items.len() > WAITING_MAX as usize { More::Some } else { More::None };
    items.truncate(WAITING_MAX as usize);
    let amendments = service.amendments_open().await?;
    let policies: Vec<_> =
        amendments.iter().filter(|it| it.jury().eligible(viewer).is_ok()).map(|it| policies::row(it, now)).collect();
    let yours = items.iter().filter(|it| it.eligible.is_ok()).count() + policies.len();
    let decided = service.recently_ended(viewer, DECIDED_MAX).await?;
    Ok(InboxPage {
        shell: visitor.shell(yours, None),
        waiting: items.iter().map(|it| waiting_row(it, now)).collect(),
        policies,
        decided: decided.iter().filter_map(|it| decided_row(it, now)).collect(),
        more,
    })
}

/// Ends a hold past its deadline, as opening its page would. Somebody else may be doing so at this moment.
async fn end(app: &App, item: &InboxItem) -> Result<()> {
    match app.service.expire_hold(&item.hold.id).await {
        Err(Error::Busy | Error::Vote(_)) => Ok(()),
        other => other,
    }
}

fn waiting_row(item: &InboxItem, now: Timestamp) -> WaitingRow {
    let hold = &item.hold;
    let protected = item.diff.iter().map(place).filter(|it| is_protected(hold, it));
    WaitingRow {
        url: format!("/reviews/{}", hold.id),
        headline: headline(hold, &item.transition, &item.diff),
        flow: Line::new(hold.flow.as_str()),
        thread: Line::new(hold.context.title.as_deref().unwrap_or(hold.thread.as_str())),
        protected: protected.take(PROTECTED_SHOWN).map(|it| Path::new(it.to_string())).collect(),
        reasons: lines(hold.reasons.iter().filter(|it| it.code != "protected").map(|it| it.text.as_str())),
        on_behalf_of: hold.context.on_behalf_of.as_deref().map(Line::new),
        votes: votes(hold, &item.eligible),
        deadline: moment(hold.expires_at, now),
        urgency: urgency(hold.expires_at, now),
        badges: vec![match &item.eligible {
            Ok(_) => Badge::Yours,
            Err(Ineligible::Voted) => Badge::Voted,
            Err(reason) => Badge::CannotDecide(why_not(*reason).1.to_owned()),
        }],
    }
}

/// How far the stage is that the reader can vote in, or else the first that lacks votes.
fn votes(hold: &Hold, eligible: &std::result::Result<Vec<u32>, Ineligible>) -> Votes {
    let got = |stage: usize| {
        let counts = |it: &&crate::domain::review::Vote| it.verdict == Verdict::Approve && it.stage as usize == stage;
        u32::try_from(hold.standing_votes().filter(counts).count()).unwrap_or(u32::MAX)
    };
    let mine = |stage: usize| eligible.as_ref().is_ok_and(|it| it.iter().any(|index| *index as usize == stage));
    let lacks = |stage: usize| hold.stages.get(stage).is_some_and(|it| got(stage) < it.need);
    let all = 0..hold.stages.len();
    let stage = all.clone().find(|it| mine(*it) && lacks(*it)).or_else(|| all.clone().find(|it| lacks(*it)));
    let stage = stage.unwrap_or_default();
    let asked = hold.stages.get(stage);
    Votes {
        got: got(stage),
        need: asked.map_or(0, |it| it.need),
        groups: asked.map(|it| lines(it.groups.iter().map(|group| group.as_str()))).unwrap_or_default(),
    }
}

fn decided_row(item: &InboxItem, now: Timestamp) -> Option<DecidedRow> {
    let hold = &item.hold;
    let (outcome, at) = ending(&hold.state)?;
    Some(DecidedRow {
        url: format!("/reviews/{}", hold.id),
        headline: headline(hold, &item.transition, &item.diff),
        flow: Line::new(hold.flow.as_str()),
        thread: Line::new(hold.context.title.as_deref().unwrap_or(hold.thread.as_str())),
        outcome,
        by: deciders(hold),
        at: moment(at, now),
    })
}
