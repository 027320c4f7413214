//! `GET /`: lists waiting and recently ended reviews, and searches reviews.

use std::collections::BTreeSet;

use actix_web::web;
use countersign_domain::primitives::id::{FlowId, GroupName, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Hold, Ineligible, SearchKey, VoteVerdict, VotingSeat};
use countersign_service::error::{Error, Result};
use countersign_service::inbox::Inbox;
use countersign_service::inbox::list::DIGEST_DIGITS_MIN;
use countersign_service::inbox::list::InboxCursor;
use countersign_service::inbox::list::InboxItem;
use countersign_service::inbox::list::InboxListing;
use countersign_service::inbox::list::InboxPageSelection;
use countersign_service::inbox::{InboxFilter, InboxSearch, InboxStateFilter};
use countersign_service::policies::Policies;
use countersign_service::policy_changes::PolicyChanges;
use serde::Deserialize;

use super::list_view::{
    ActiveMark, DecidedRow, InboxFilterOption, InboxPage, InboxScope, InboxTab, InboxTabKind, SearchForm,
    StageVotesView, WaitingRow,
};
use crate::pages::interrupts;
use crate::pages::policies::list;
use crate::pages::shared::format::{
    SOON, deciders, ending, headline, is_protected, lines, listed, moment, place, urgency, why_not,
};
use crate::pages::shared::return_path::encoded;
use crate::pages::shared::safe_text::{SafeLine, SafePath, SafeText};
use crate::pages::shared::tool_call::ToolRiskView;
use crate::pages::shared::visitor::Visitor;
use crate::pages::shared::widgets::ReviewBadge;
use crate::state::Capability;

const ROWS_MAX: usize = 50;

/// Interrupts on one page.
const INTERRUPTS_MAX: u32 = 50;

/// Enough rows to find a review that ended a moment ago.
const DECIDED_MAX: usize = 15;

/// Protected paths that a row names.
const PROTECTED_SHOWN: usize = 4;

/// Digests, thread names and keys are shorter.
const SEARCH_BYTES_MAX: usize = 300;

/// Flows to choose from. With more flows, a search for a thread or key is faster.
const FLOWS_MAX: usize = 200;

/// `?show=&flow=&q=`, the cursor of the reviews (`after` or `before`), and the cursor of the interrupts (`asked`).
#[derive(Clone, Debug, Default, Deserialize)]
pub struct InboxQuery {
    show: Option<String>,
    flow: Option<String>,
    q: Option<String>,
    after: Option<String>,
    before: Option<String>,
    asked: Option<String>,
}

struct ParsedInboxQuery {
    show: InboxTabKind,
    flow: Option<FlowId>,
    typed: String,
    part: InboxPageSelection,
    asked: Option<InboxCursor>,
}

/// `GET /`.
pub async fn show(
    policies: Capability<Policies>,
    policy_changes: Capability<PolicyChanges>,
    inbox: Capability<Inbox>,
    visitor: Visitor,
    query: web::Query<InboxQuery>,
) -> Result<InboxPage> {
    let viewer = visitor.account();
    let reading = read(query.into_inner())?;
    let found = find(&inbox, &visitor, &reading).await?;
    let now = visitor.now();
    let overview = reading.is_overview();
    let amendments = policy_changes.open_policy_changes().await?;
    let policy_rows =
        amendments.iter().filter(|it| overview && it.jury().eligible(viewer).is_ok()).map(|it| list::row(it, now));
    let asked =
        if overview { Some(inbox.interrupts_open(reading.asked.as_ref(), INTERRUPTS_MAX).await?) } else { None };
    let asked_next = asked.as_ref().and_then(|it| it.next.as_ref()).map(|it| reading.url(&[("asked", &it.token())]));
    let (open, ended): (Vec<_>, Vec<_>) = found.items.iter().partition(|it| it.hold.state.ending().is_none());
    // Searches and tabs find ended reviews themselves, so only the overview adds the recent ones.
    let lately = if overview { inbox.recently_ended(viewer, DECIDED_MAX).await? } else { Vec::new() };
    let ended = ended.into_iter().chain(&lately);
    let mut waiting: Vec<WaitingRow> = open.into_iter().map(|it| waiting_row(it, now)).collect();
    let several = waiting.iter().filter(|it| it.tick.is_some()).count() > 1;
    // A bulk decision needs at least two reviews, so a single tick box is left out.
    if !several {
        waiting.iter_mut().for_each(|it| it.tick = None);
    }
    Ok(InboxPage {
        shell: visitor.shell(None).await?,
        scope: if overview { InboxScope::Overview } else { InboxScope::Chosen(reading.show) },
        tabs: reading.tabs(),
        form: reading.form(policies.flows().await?),
        deciding_several: several.then(|| visitor.0.csrf.shown()),
        waiting,
        policies: policy_rows.collect(),
        interrupts: asked.iter().flat_map(|it| &it.interrupts).map(|it| interrupts::row(it, viewer, now)).collect(),
        interrupts_first: reading.asked.is_some().then(|| reading.url(&[])),
        interrupts_next: asked_next,
        decided: ended.filter_map(|it| decided_row(it, now)).collect(),
        previous_url: found.previous.map(|it| reading.url(&[("before", &it.token())])),
        next_url: found.next.map(|it| reading.url(&[("after", &it.token())])),
    })
}

/// Parses the query. An invalid name is answered like an unknown page. An empty field counts as absent.
fn read(asked: InboxQuery) -> Result<ParsedInboxQuery> {
    const NOT_THERE: Error = Error::NotFound("page");
    let some = |it: Option<String>| it.filter(|it| !it.trim().is_empty());
    let typed = some(asked.q).map(|it| it.trim().to_owned()).unwrap_or_default();
    if typed.len() > SEARCH_BYTES_MAX {
        return Err(Error::invalid("/q", "the search text is longer than 300 bytes"));
    }
    let show = match some(asked.show) {
        Some(word) => InboxTabKind::read(&word).ok_or(NOT_THERE)?,
        None if typed.is_empty() => InboxTabKind::Waiting,
        // A reader who searches for a digest or thread may not know whether its review has ended.
        None => InboxTabKind::Everything,
    };
    let place = |token: String| InboxCursor::read(&token).ok_or(NOT_THERE);
    let part = match (some(asked.after), some(asked.before)) {
        (None, None) => InboxPageSelection::First,
        (Some(token), None) => InboxPageSelection::After(place(token)?),
        (None, Some(token)) => InboxPageSelection::Before(place(token)?),
        // No link of the page has both cursors, so the address was changed by hand.
        (Some(_), Some(_)) => return Err(NOT_THERE),
    };
    let asked_after = some(asked.asked).map(place).transpose()?;
    let flow = some(asked.flow).map(|it| FlowId::try_from(it).map_err(|_| NOT_THERE)).transpose()?;
    Ok(ParsedInboxQuery { show, flow, typed, part, asked: asked_after })
}

/// Searches for the start of a digest first. Without a match, it searches for a thread name or a key.
async fn find(inbox: &Inbox, visitor: &Visitor, reading: &ParsedInboxQuery) -> Result<InboxListing> {
    let mut wanted = InboxFilter { flow: reading.flow.clone(), ..reading.show.wanted(visitor.now()) };
    if let Some(prefix) = digest_prefix(&reading.typed) {
        wanted.search = Some(InboxSearch::Digest(prefix));
        let found = inbox.find(visitor.account(), &wanted, &reading.part, ROWS_MAX).await?;
        // A thread name can look like a digest, so an empty result continues with the names.
        if !found.items.is_empty() {
            return Ok(found);
        }
    }
    wanted.search = (!reading.typed.is_empty()).then(|| InboxSearch::Words {
        thread: ThreadId::try_from(reading.typed.as_str()).ok(),
        key: SearchKey::read(&reading.typed),
    });
    inbox.find(visitor.account(), &wanted, &reading.part, ROWS_MAX).await
}

/// Returns the typed start of a digest in its text form.
fn digest_prefix(typed: &str) -> Option<String> {
    // Stored digests are lower case, but people may paste them in upper case.
    let typed = typed.to_ascii_lowercase();
    let digits = typed.strip_prefix("sha256:").unwrap_or(&typed);
    let hex = digits.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it));
    // A few digits match many digests and may be a word, so a short text is searched as a name.
    (hex && digits.len() >= DIGEST_DIGITS_MIN).then(|| format!("sha256:{digits}"))
}

impl ParsedInboxQuery {
    fn is_overview(&self) -> bool {
        self.show == InboxTabKind::Waiting
            && self.flow.is_none()
            && self.typed.is_empty()
            && self.part == InboxPageSelection::First
    }

    /// Returns the URL of another page with the same filters.
    fn url(&self, more: &[(&str, &str)]) -> String {
        // The default is left out, so that addresses stay short.
        let show = (self.show != self.show_unless_said()).then(|| ("show", self.show.word()));
        let flow = self.flow.as_ref().map(|it| ("flow", it.as_str()));
        let typed = Some(("q", self.typed.as_str())).filter(|it| !it.1.is_empty());
        let fields = [show, flow, typed].into_iter().flatten().chain(more.iter().copied());
        let query: Vec<String> = fields.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        if query.is_empty() { "/".to_owned() } else { format!("/?{}", query.join("&")) }
    }

    fn show_unless_said(&self) -> InboxTabKind {
        if self.typed.is_empty() { InboxTabKind::Waiting } else { InboxTabKind::Everything }
    }

    /// Returns the tabs for the most used lists, with the same flow.
    fn tabs(&self) -> Vec<InboxTab> {
        let tab = |show: InboxTabKind| {
            let there = ParsedInboxQuery {
                show,
                flow: self.flow.clone(),
                typed: String::new(),
                part: InboxPageSelection::First,
                asked: None,
            };
            let mark = if self.typed.is_empty() && show == self.show { ActiveMark::On } else { ActiveMark::Off };
            InboxTab { url: there.url(&[]), words: show.words(), mark }
        };
        [InboxTabKind::Waiting, InboxTabKind::Mine, InboxTabKind::Soon, InboxTabKind::Past].map(tab).into()
    }

    fn form(&self, flows: Vec<FlowId>) -> SearchForm {
        let show = InboxTabKind::ALL.iter().map(|it| InboxFilterOption {
            value: it.word().to_owned(),
            words: it.words().to_owned(),
            mark: if *it == self.show { ActiveMark::On } else { ActiveMark::Off },
        });
        let flow = flows.into_iter().take(FLOWS_MAX).map(|it| InboxFilterOption {
            mark: if self.flow.as_ref() == Some(&it) { ActiveMark::On } else { ActiveMark::Off },
            value: it.to_string(),
            words: it.to_string(),
        });
        SearchForm { typed: SafeText::new(self.typed.as_str()), show: show.collect(), flows: flow.collect() }
    }
}

impl InboxTabKind {
    fn wanted(self, now: Timestamp) -> InboxFilter {
        let which = match self {
            Self::Waiting => InboxStateFilter::Open,
            Self::Mine => return InboxFilter::mine(),
            Self::Soon => InboxStateFilter::EndingBy(now.plus(SOON)),
            Self::Past => InboxStateFilter::Past,
            Self::Ended(ending) => InboxStateFilter::Ended(ending),
            Self::Everything => InboxStateFilter::Any,
        };
        InboxFilter { which, ..InboxFilter::open() }
    }
}

/// Checks whether the reader has an own seat. Decisions about several reviews are never made for a delegator.
fn has_own_place(item: &InboxItem) -> bool {
    item.eligible.as_ref().is_ok_and(|it| it.iter().any(|place| place.absent.is_none()))
}

fn waiting_row(item: &InboxItem, now: Timestamp) -> WaitingRow {
    let hold = &item.hold;
    let protected = item.diff.iter().map(place).filter(|it| is_protected(hold, it));
    WaitingRow {
        // A bulk decision would refuse the other reviews, so they get no tick box.
        tick: (has_own_place(item) && hold.alone().is_none()).then(|| hold.id.to_string()),
        url: format!("/reviews/{}", hold.id),
        headline: headline(hold, item.transition.as_ref(), &item.diff, item.call.as_ref()),
        flow: SafeLine::new(hold.flow.as_str()),
        // The title of the host application says more to people than the id of the thread.
        thread: SafeLine::new(hold.context.title.as_deref().unwrap_or(hold.thread.as_str())),
        protected: protected.take(PROTECTED_SHOWN).map(|it| SafePath::new(it.to_string())).collect(),
        // The row names the protected paths themselves, so their reason is not repeated.
        reasons: lines(hold.reasons.iter().filter(|it| it.code != "protected").map(|it| it.text.as_str())),
        on_behalf_of: hold.context.on_behalf_of.as_deref().map(SafeLine::new),
        votes: votes(hold, &item.eligible, now),
        deadline: moment(hold.expires_at, now),
        urgency: urgency(hold.expires_at, now),
        badges: badges(item, now),
    }
}

fn badges(item: &InboxItem, now: Timestamp) -> Vec<ReviewBadge> {
    let own = match &item.eligible {
        Ok(_) => ReviewBadge::Yours,
        Err(Ineligible::Voted) => ReviewBadge::Voted,
        Err(reason) => ReviewBadge::CannotDecide(why_not(*reason).1.to_owned()),
    };
    let names = |to: &BTreeSet<GroupName>| listed(&to.iter().map(ToString::to_string).collect::<Vec<_>>(), "and");
    let escalated = item.hold.escalation_groups(now).map(|to| ReviewBadge::Escalated(names(to)));
    let reminded = item.hold.notices.reminder.filter(|it| it.from <= now).map(|_| ReviewBadge::Reminded);
    let risk =
        item.call.as_ref().and_then(|it| it.description.risk()).map(|it| ReviewBadge::ToolRisk(ToolRiskView(it)));
    // An escalation is the stronger warning, so it replaces the reminder.
    [risk, Some(own), escalated.or(reminded)].into_iter().flatten().collect()
}

/// Returns the votes of the stage in which the reader can vote, or else of the first stage that lacks votes.
fn votes(hold: &Hold, eligible: &std::result::Result<Vec<VotingSeat>, Ineligible>, now: Timestamp) -> StageVotesView {
    let got = |stage: usize| {
        let counts =
            |it: &&countersign_domain::reviews::Vote| it.verdict == VoteVerdict::Approve && it.stage as usize == stage;
        u32::try_from(hold.counted_votes().filter(counts).count()).unwrap_or(u32::MAX)
    };
    let mine = |stage: usize| eligible.as_ref().is_ok_and(|it| it.iter().any(|place| place.stage as usize == stage));
    let lacks = |stage: usize| hold.stages.get(stage).is_some_and(|it| got(stage) < it.need);
    let all = 0..hold.stages.len();
    let stage = all.clone().find(|it| mine(*it) && lacks(*it)).or_else(|| all.clone().find(|it| lacks(*it)));
    let stage = stage.unwrap_or_default();
    let asked = hold.stages.get(stage);
    StageVotesView {
        got: got(stage),
        need: asked.map_or(0, |it| it.need),
        groups: lines(hold.groups_for_stage(stage, now).iter().map(|group| group.as_str())),
    }
}

fn decided_row(item: &InboxItem, now: Timestamp) -> Option<DecidedRow> {
    let hold = &item.hold;
    let (outcome, at) = ending(&hold.state)?;
    Some(DecidedRow {
        url: format!("/reviews/{}", hold.id),
        headline: headline(hold, item.transition.as_ref(), &item.diff, item.call.as_ref()),
        flow: SafeLine::new(hold.flow.as_str()),
        thread: SafeLine::new(hold.context.title.as_deref().unwrap_or(hold.thread.as_str())),
        outcome,
        by: deciders(hold),
        at: moment(at, now),
    })
}
