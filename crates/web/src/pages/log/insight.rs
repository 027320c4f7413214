//! `GET /insight`: number of reviews, and time to decision.

mod chart;

use std::collections::BTreeMap;
use std::time::Duration;

use actix_web::web;
use chrono::DateTime;
use countersign_domain::log::insight::{BucketWidth, Counts, FlowCounts, Histogram, Period, PeriodFigures};
use countersign_domain::primitives::id::FlowId;
use countersign_service::error::{Error, Result};
use countersign_service::log::Log;
use countersign_service::log::insight::InsightFacts;
use serde::Deserialize;

use super::insight_view::{
    Chart, ChartTable, InsightContent, InsightFigures, InsightGroupRow, InsightGroups, InsightPage, OutcomeRow,
};
use crate::pages::inbox::list_view::{ActiveMark, InboxTab};
use crate::pages::shared::format::moment;
use crate::pages::shared::return_path::encoded;
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::pages::threads::list_view::SelectOption;
use crate::state::Capability;
use chart::{ChartLabels, ChartPoint, HEIGHT, lasting, of_counts, of_times, share};

/// Selectable time spans: value of `?span=`, label, phrase in sentences, width of a period, and number of periods.
const SPANS: [(&str, &str, &str, BucketWidth, u32); 5] = [
    ("1h", "1 hour", "the last hour", BucketWidth::Minute, 60),
    ("24h", "24 hours", "the last 24 hours", BucketWidth::Hour, 24),
    ("7d", "7 days", "the last 7 days", BucketWidth::Day, 7),
    ("30d", "30 days", "the last 30 days", BucketWidth::Day, 30),
    ("90d", "90 days", "the last 90 days", BucketWidth::Day, 90),
];

/// The usual time span.
const FIRST: &str = "7d";

/// Maximum number of rows in one list. The page shows the number of other rows.
const GROUPS_MAX: usize = 30;

/// Filters from the address. An empty text is no filter.
#[derive(Deserialize, Default, Clone)]
#[serde(default)]
pub struct InsightQuery {
    span: String,
    flow: String,
}

/// `GET /insight`.
pub async fn show(log: Capability<Log>, visitor: Visitor, asked: web::Query<InsightQuery>) -> Result<InsightPage> {
    let flow = Some(asked.flow.as_str()).filter(|it| !it.is_empty());
    let flow = flow.map(FlowId::try_from).transpose().map_err(|_| Error::NotFound("flow"))?;
    let wanted = if asked.span.is_empty() { first_span(&log, flow.as_ref()).await? } else { &asked.span };
    let chosen = SPANS.into_iter().find(|it| it.0 == wanted).ok_or(Error::NotFound("page"))?;
    let (span, _, span_words, step, periods) = chosen;
    let facts = log.insight(step, periods).await?;
    // The facts carry their own time, so that the page and the last period agree.
    let now = facts.now;
    let tab = |(word, words, ..): (&str, &'static str, &str, BucketWidth, u32)| InboxTab {
        url: address(word, flow.as_ref()),
        words,
        mark: if word == span { ActiveMark::On } else { ActiveMark::Off },
    };
    let flows = facts.flows.iter().map(|it| SelectOption::new(it.as_str(), it.as_str(), &asked.flow));
    Ok(InsightPage {
        shell: visitor.shell(None).await?,
        spans: SPANS.into_iter().map(tab).collect(),
        span,
        span_words,
        flows: std::iter::once(SelectOption::new("", "All flows", &asked.flow)).chain(flows).collect(),
        counted_until: (facts.counted.index > 0).then(|| moment(facts.counted.at, now)),
        behind: facts.behind,
        since: facts.since.map(|it| moment(it, now)),
        told: told(&facts, flow.as_ref()),
    })
}

/// Returns the span to open: the usual one if it has figures of several days, and otherwise the shortest with figures.
async fn first_span(log: &Log, flow: Option<&FlowId>) -> Result<&'static str> {
    let days = filled_periods(&log.insight(BucketWidth::Day, 90).await?, flow);
    let latest = |number: usize| days.iter().rev().take(number).filter(|it| **it).count();
    match latest(7) {
        0 if latest(30) > 0 => return Ok("30d"),
        0 if latest(90) > 0 => return Ok("90d"),
        1 => {}
        _ => return Ok(FIRST),
    }
    for (span, _, _, step, periods) in SPANS.into_iter().take_while(|it| it.0 != FIRST) {
        if filled_periods(&log.insight(step, periods).await?, flow).contains(&true) {
            return Ok(span);
        }
    }
    Ok(FIRST)
}

/// Returns which periods have figures, in order.
fn filled_periods(facts: &InsightFacts, flow: Option<&FlowId>) -> Vec<bool> {
    let has_figures = |it: &PeriodFigures| match flow {
        Some(flow) => it.flows.contains_key(flow),
        None => !it.flows.is_empty() || it.other_flows.is_some(),
    };
    facts.figures.iter().map(has_figures).collect()
}

fn address(span: &str, flow: Option<&FlowId>) -> String {
    match flow {
        Some(flow) => format!("/insight?span={span}&flow={}", encoded(flow.as_str())),
        None => format!("/insight?span={span}"),
    }
}

/// Sums the counts of one flow, or of all flows, for each period.
fn told(facts: &InsightFacts, flow: Option<&FlowId>) -> InsightContent {
    let mut periods: Vec<(Period, FlowCounts)> = Vec::new();
    let mut flows: BTreeMap<Option<&FlowId>, Counts> = BTreeMap::new();
    for figures in &facts.figures {
        let mut together = FlowCounts::default();
        let named = figures.flows.iter().map(|(flow, counts)| (Some(flow), counts));
        // Only a limited number of flows is counted by name, so the others share one row.
        let unnamed = figures.other_flows.iter().map(|counts| (None, counts));
        for (name, counts) in named.chain(unnamed).filter(|it| flow.is_none() || it.0 == flow) {
            together.merge(counts);
            flows.entry(name).or_default().merge(&counts.all);
        }
        periods.push((figures.period, together));
    }
    let mut total = FlowCounts::default();
    periods.iter().for_each(|(_, counts)| total.merge(counts));
    let open = facts.counted.open_reviews(flow);
    // Charts without bars look like a failure, so an empty span gets a sentence instead.
    if total == FlowCounts::default() && open == 0 {
        return InsightContent::Nothing;
    }
    let waiting = waiting(&periods, open);
    let name = |it: &FlowId| SafeLine::new(it.as_str());
    let by_flow = flows.into_iter().map(|(flow, counts)| (flow.map(name), counts));
    let reasons = total.reasons.iter().map(|(reason, counts)| (Some(SafeLine::new(reason.as_str())), counts.clone()));
    let by_reason = reasons.chain(total.other_reasons.clone().map(|counts| (None, counts)));
    InsightContent::Figures(Box::new(InsightFigures {
        summary: summary(&total.all, open),
        waiting: waiting_chart(&periods, &waiting, open),
        times: times_chart(&periods, &total.all.times),
        outcomes: outcomes(&total.all),
        by_flow: groups(by_flow.collect()),
        by_reason: groups(by_reason.collect()),
    }))
}

/// Returns the number of open reviews at the end of each period. Starts at the current number and goes back in time.
fn waiting(periods: &[(Period, FlowCounts)], open: u64) -> Vec<u64> {
    let mut at_the_end = vec![0; periods.len()];
    let mut after = open;
    for (place, (_, counts)) in periods.iter().enumerate().rev() {
        at_the_end[place] = after;
        // Saturates because the counts of a short span cover only the latest events.
        after = (after + counts.all.ended()).saturating_sub(counts.all.opened);
    }
    at_the_end
}

fn summary(all: &Counts, open: u64) -> Vec<(&'static str, String)> {
    vec![
        ("Waiting now", open.to_string()),
        ("Opened", all.opened.to_string()),
        ("Decided by reviewers", (all.approved + all.denied).to_string()),
        ("Median time to decision", quantile(&all.times, 50)),
        ("95th percentile", quantile(&all.times, 95)),
    ]
}

fn quantile(times: &Histogram, percent: u64) -> String {
    // Without a decision there is no time, and zero would look like a fast one.
    times.quantile(percent).map_or_else(|| "–".to_owned(), lasting)
}

fn named(period: Period) -> String {
    let format = match period.step {
        BucketWidth::Minute => "%H:%M",
        BucketWidth::Hour => "%-d %b, %H:00",
        BucketWidth::Day => "%-d %b",
    };
    DateTime::from_timestamp_millis(period.begins.millis()).unwrap_or_default().format(format).to_string()
}

fn ends(periods: &[(Period, FlowCounts)]) -> (String, String) {
    let name = |it: Option<&(Period, FlowCounts)>| it.map(|it| named(it.0)).unwrap_or_default();
    (name(periods.first()), name(periods.last()))
}

/// Returns the heading of the first column of a table.
fn step(periods: &[(Period, FlowCounts)]) -> &'static str {
    match periods.first().map(|it| it.0.step) {
        Some(BucketWidth::Minute) => "Minute (UTC)",
        Some(BucketWidth::Hour) => "Hour (UTC)",
        Some(BucketWidth::Day) | None => "Day (UTC)",
    }
}

fn waiting_chart(periods: &[(Period, FlowCounts)], waiting: &[u64], open: u64) -> Chart {
    let most = waiting.iter().max().copied().unwrap_or_default();
    let row = |((period, counts), waiting): (&(Period, FlowCounts), &u64)| {
        [named(*period), counts.all.opened.to_string(), counts.all.ended().to_string(), waiting.to_string()]
    };
    let table = ChartTable {
        columns: [step(periods), "Opened", "Ended", "Waiting at the end"],
        rows: periods.iter().zip(waiting).rev().map(row).collect(),
    };
    let titled = ChartLabels {
        id: "waiting",
        title: "Waiting over time",
        told: format!("Maximum at the end of a period: {most}. Waiting now: {open}."),
        ends: ends(periods),
        table,
    };
    let drawn = periods.iter().zip(waiting).map(|((period, _), waiting)| ChartPoint {
        value: *waiting,
        mark: None,
        words: format!("{}: {waiting} waiting", named(*period)),
    });
    of_counts(titled, drawn.collect())
}

fn times_chart(periods: &[(Period, FlowCounts)], all: &Histogram) -> Chart {
    let told = if all.is_empty() {
        "No decisions in this time.".to_owned()
    } else {
        let (median, p95) = (quantile(all, 50), quantile(all, 95));
        format!("Decisions: {}. Median: {median}. 95th percentile: {p95}.", all.count())
    };
    let row = |(period, counts): &(Period, FlowCounts)| {
        let times = &counts.all.times;
        [named(*period), times.count().to_string(), quantile(times, 50), quantile(times, 95)]
    };
    let columns = [step(periods), "Decided by reviewers", "Median", "95th percentile"];
    let table = ChartTable { columns, rows: periods.iter().rev().map(row).collect() };
    let titled = ChartLabels { id: "times", title: "Time to decision", told, ends: ends(periods), table };
    let millis = |time: Option<Duration>| time.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
    let drawn = periods.iter().map(|(period, counts)| {
        let times = &counts.all.times;
        let words = match times.is_empty() {
            true => format!("{}: no decisions", named(*period)),
            false => {
                format!("{}: median {}, 95th percentile {}", named(*period), quantile(times, 50), quantile(times, 95))
            }
        };
        ChartPoint { value: millis(times.quantile(50)).unwrap_or_default(), mark: millis(times.quantile(95)), words }
    });
    of_times(titled, drawn.collect())
}

fn outcomes(all: &Counts) -> Vec<OutcomeRow> {
    let counted = [
        ("Committed without approval", all.committed),
        ("Committed in observe mode", all.observed),
        ("Rejected by the policy", all.rejected),
        ("Held for approval", all.opened),
        ("Approved", all.approved),
        ("Denied", all.denied),
        ("Expired without a decision", all.expired),
        ("Cancelled by the agent", all.cancelled),
        ("Superseded", all.superseded),
    ];
    // All bars share one scale, so that their lengths can be compared.
    let most = counted.iter().map(|it| it.1).max().unwrap_or_default();
    let row = |(words, count)| OutcomeRow { words, count, width: share(count, most, HEIGHT) };
    counted.into_iter().map(row).collect()
}

/// Converts counts into rows, with the most reviews first.
fn groups(mut counted: Vec<(Option<SafeLine>, Counts)>) -> InsightGroups {
    counted.retain(|(_, counts)| counts.opened + counts.ended() > 0);
    // The name breaks ties, so that rows do not change places between two loads.
    counted.sort_by(|a, b| (b.1.opened, b.1.ended(), &a.0).cmp(&(a.1.opened, a.1.ended(), &b.0)));
    let more = counted.len().saturating_sub(GROUPS_MAX);
    counted.truncate(GROUPS_MAX);
    let millis = |counts: &Counts, percent| counts.times.quantile(percent).unwrap_or_default().as_millis();
    let millis = |counts: &Counts, percent| u64::try_from(millis(counts, percent)).unwrap_or(u64::MAX);
    // All rows share one scale, so that their bars can be compared.
    let longest = counted.iter().map(|it| millis(&it.1, 95)).max().unwrap_or_default();
    let row = |(name, counts): (Option<SafeLine>, Counts)| InsightGroupRow {
        name,
        opened: counts.opened,
        approved: counts.approved,
        denied: counts.denied,
        undecided: counts.expired + counts.cancelled + counts.superseded,
        median: quantile(&counts.times, 50),
        p95: quantile(&counts.times, 95),
        // A bar of length zero would suggest an immediate decision, so a group without decisions has none.
        bar: (!counts.times.is_empty())
            .then(|| (share(millis(&counts, 50), longest, HEIGHT), share(millis(&counts, 95), longest, HEIGHT))),
    };
    InsightGroups {
        rows: counted.into_iter().map(row).collect(),
        more,
        longest: lasting(Duration::from_millis(longest)),
    }
}
