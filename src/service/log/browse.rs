//! The log as people look through it: the last first, a bounded number of events at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::clock_check::event_ids_from;
use crate::domain::chain::hash::Digest;
use crate::domain::identity::account::{Account, PersonRole};
use crate::domain::identity::party::{Author, Party};
use crate::domain::keys::Keys;
use crate::domain::log::event::{Event, EventType};
use crate::domain::primitives::id::{EventId, FlowId, PrincipalId, ThreadId};
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::flow::ReceiptRow;
use crate::domain::threads::thread::Thread;
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::threads::history::RequesterName;
use crate::service::threads::redaction::{Redaction, RedactionDetail};
use crate::store::records::{HUNDRED, LogRow, events_alias, log_id};
use crate::store::{Cursor, LIST_ROWS_MAX, RowFilter};

/// What is looked for. Everything that is said must fit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogFilter {
    /// Of this kind: the name of an event, or what names begin with, before the dot.
    pub kind: Option<String>,
    pub thread: Option<ThreadId>,
    pub flow: Option<FlowId>,
    /// By or about this person or token: a name or an id.
    pub who: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

/// Who looks: what is told of people's comings and goings is for those who oversee them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogAudience {
    Reviewers,
    /// Whoever runs the gateway or reads everything.
    Overseers,
}

#[derive(Clone, PartialEq, Debug)]
pub struct LogLine {
    /// Its place in the log; where only a thread is looked through, that is not asked for.
    pub index: Option<u64>,
    pub event: Event,
}

#[derive(Clone, Debug, Default)]
pub struct LogListing {
    /// The lines, the last first.
    pub lines: Vec<LogLine>,
    /// How many were looked at for them.
    pub looked: u64,
    /// Where to go on: below this place in the log, or in the thread; nowhere if all were looked at.
    pub below: Option<u64>,
    /// Who the lines name, by id.
    pub names: BTreeMap<String, RequesterName>,
}

/// One event as a person may read it.
#[derive(Clone, Debug)]
pub struct EventView {
    /// Its place in the log, once it has one.
    pub index: Option<u64>,
    /// The event. What is hidden in its texts is masked.
    pub event: Event,
    /// Its hash, as the next one in its thread and the log have it.
    pub hash: Digest,
    pub names: BTreeMap<String, RequesterName>,
}

/// Events that one page looks at: opening a row costs some microseconds, and a person can go on.
const LOOKED_MAX: u64 = 1_000;

/// Events that are read at once.
const WINDOW: u64 = 250;

/// How far events may stand out of the order of their times: gateways' clocks differ by less, and an event waits no
/// longer for its place unless nobody gives places.
const DISORDER: Duration = Duration::from_secs(60);

/// What is put in place of a text that cannot be masked.
pub(in crate::service) const WITHHELD: &str =
    "[withheld: what is hidden in it cannot be told where the thread's chain is broken, or its values are erased]";

/// What is put in place of a comment that is shown elsewhere.
const ON_ITS_PAGE: &str = "[on the interrupt's page]";

impl LogAudience {
    pub const fn of(role: PersonRole) -> Self {
        match role {
            PersonRole::Reviewer => Self::Reviewers,
            PersonRole::Admin | PersonRole::Auditor => Self::Overseers,
        }
    }

    /// Whether an event of that kind is told to them.
    pub fn may_see(self, kind: EventType) -> bool {
        self == Self::Overseers || !kind.name().starts_with("access.")
    }
}

/// What is looked for, with the names that it gives resolved.
struct ResolvedLogFilter<'a> {
    sought: &'a LogFilter,
    audience: LogAudience,
    who: Vec<String>,
}

impl ResolvedLogFilter<'_> {
    fn keeps(&self, event: &Event) -> bool {
        let LogFilter { kind, thread, flow, since, until, .. } = self.sought;
        let name = event.kind.name();
        self.audience.may_see(event.kind)
            && kind.as_ref().is_none_or(|it| name == *it || name.split('.').next() == Some(it.as_str()))
            && thread.as_ref().is_none_or(|it| event.thread.as_ref() == Some(it))
            && flow.as_ref().is_none_or(|it| event.flow.as_ref() == Some(it))
            && since.is_none_or(|it| event.at >= it)
            && until.is_none_or(|it| event.at <= it)
            && (self.who.is_empty() || self.who.iter().any(|it| names(&event.data, it)))
    }

    /// Whether nothing before this event can be kept.
    fn is_past(&self, event: &Event) -> bool {
        self.sought.since.is_some_and(|it| event.at < it.minus(DISORDER))
    }
}

/// What of an event's facts people said, and may quote what is hidden: it is masked where it is told, and names nobody.
const QUOTING: [&str; 2] = ["reason", "comment"];

/// Whether an event's facts name somebody.
fn names(data: &Value, id: &str) -> bool {
    texts(data).any(|it| it == id)
}

/// The texts of an event's facts, which are flat but for lists.
fn texts(data: &Value) -> impl Iterator<Item = &str> {
    let members = data.as_object().into_iter().flatten().filter(|(name, _)| !QUOTING.contains(&name.as_str()));
    let items = members.flat_map(|(_, it)| match it {
        Value::Array(items) => items.iter().collect(),
        other => vec![other],
    });
    items.filter_map(Value::as_str)
}

impl Service {
    /// A page of the log, the last first, from `below` downwards.
    pub async fn log_page(
        &self,
        sought: &LogFilter,
        audience: LogAudience,
        below: Option<u64>,
        limit: usize,
    ) -> Result<LogListing> {
        let keys = self.keys()?;
        let sieve = ResolvedLogFilter { sought, audience, who: self.ids_of(&keys, sought.who.as_deref()).await? };
        let last = match (&sought.thread, below) {
            (Some(thread), _) => self.thread(&keys, thread).await?.record.last_event.map_or(0, |it| it.seq),
            (None, Some(_)) => self.log_length().await?,
            (None, None) => self.log_until(&keys, sought.until).await?,
        };
        let mut top = below.map_or(last, |it| it.saturating_sub(1).min(last));
        let mut page = LogListing::default();
        while top > 0 && page.looked < LOOKED_MAX {
            let lines = match &sought.thread {
                Some(thread) => self.thread_lines(&keys, thread, top).await?,
                None => self.log_lines(&keys, top).await?,
            };
            for (place, line) in lines {
                if sieve.is_past(&line.event) {
                    return self.named(&keys, LogListing { below: None, ..page }).await;
                }
                page.looked += 1;
                top = place - 1;
                if sieve.keeps(&line.event) {
                    page.lines.push(line);
                }
                if page.lines.len() == limit {
                    let below = (top > 0).then_some(place);
                    return self.named(&keys, LogListing { below, ..page }).await;
                }
            }
        }
        let below = (top > 0).then_some(top + 1);
        self.named(&keys, LogListing { below, ..page }).await
    }

    async fn named(&self, keys: &Keys, page: LogListing) -> Result<LogListing> {
        let ids: Vec<PrincipalId> = page.lines.iter().flat_map(|it| principals(&it.event)).collect();
        Ok(LogListing { names: self.names_of(keys, &ids).await?, ..page })
    }

    /// The ids that somebody is named by in events: as typed, and that of the account of this name.
    async fn ids_of(&self, keys: &Keys, who: Option<&str>) -> Result<Vec<String>> {
        let Some(who) = who else { return Ok(Vec::new()) };
        let account = self.reader(keys).get_by_alias::<Account>(who).await?;
        Ok(account.map(|it| it.record.id.to_string()).into_iter().chain([who.to_owned()]).collect())
    }

    /// The last place in the log at which an event of that time or before can stand.
    async fn log_until(&self, keys: &Keys, until: Option<Timestamp>) -> Result<u64> {
        let length = self.log_length().await?;
        let Some(until) = until else { return Ok(length) };
        // Events' ids begin with their time, so the first one that is certainly later is found by name.
        let after = Cursor { due: 0, id: event_ids_from(until.plus(DISORDER)) };
        let later = self.reader(keys).list::<Event>(RowFilter::All, Some(&after), 1).await?;
        let Some(later) = later.first() else { return Ok(length) };
        let place = self.reader(keys).get_by_alias::<LogRow>(later.record.id.as_str()).await?;
        Ok(place.map_or(length, |it| it.record.index.saturating_add(WINDOW).min(length)))
    }

    async fn log_lines(&self, keys: &Keys, top: u64) -> Result<Vec<(u64, LogLine)>> {
        let reader = self.reader(keys);
        let ids: Vec<String> = (top.saturating_sub(WINDOW - 1).max(1)..=top).map(log_id).collect();
        let rows: BTreeMap<String, u64> = reader
            .get_many::<LogRow>(&ids)
            .await?
            .into_iter()
            .map(|it| (it.record.event.to_string(), it.record.index))
            .collect();
        let ids: Vec<String> = rows.keys().cloned().collect();
        let events = reader.get_many::<Event>(&ids).await?;
        let line = |event: Event| {
            let index = *rows.get(event.id.as_str())?;
            Some((index, LogLine { index: Some(index), event }))
        };
        let mut lines: Vec<_> = events.into_iter().filter_map(|it| line(it.record)).collect();
        lines.sort_by_key(|(index, _)| std::cmp::Reverse(*index));
        if lines.len() == ids.len() && !lines.is_empty() { Ok(lines) } else { Err(Error::Broken("the log")) }
    }

    /// The events of a hundred neighbouring places, as many as are up to `top`, the last first.
    pub(in crate::service) async fn thread_lines(
        &self,
        keys: &Keys,
        thread: &ThreadId,
        top: u64,
    ) -> Result<Vec<(u64, LogLine)>> {
        let first = (top - top % HUNDRED).max(1);
        let begins = events_alias(thread, top / HUNDRED);
        let found = self.reader(keys).by_alias_prefix::<Event>(&begins, LIST_ROWS_MAX).await?.into_iter();
        let own = found.map(|it| it.record).filter(|it| it.thread.as_ref() == Some(thread));
        let events = own.filter_map(|event| Some((event.seq?, LogLine { index: None, event })));
        let mut lines: Vec<(u64, LogLine)> = events.filter(|(seq, _)| *seq <= top).collect();
        lines.sort_by_key(|(seq, _)| std::cmp::Reverse(*seq));
        let whole = lines.iter().map(|(seq, _)| *seq).eq((first..=top).rev());
        if whole { Ok(lines) } else { Err(Error::Broken("a thread's events")) }
    }

    /// One event with everything that it tells.
    pub async fn event_view(&self, id: &EventId, viewer: &Account) -> Result<EventView> {
        let keys = self.keys()?;
        let event = self.need::<Event>(&keys, id.as_str(), "event").await?.record;
        if !LogAudience::of(viewer.role).may_see(event.kind) {
            return Err(Error::NotFound("event"));
        }
        let place = self.reader(&keys).get_by_alias::<LogRow>(id.as_str()).await?;
        let names = self.names_of(&keys, &principals(&event)).await?;
        let hash = event.hash();
        let mut event = self.masked_event(&keys, event, &viewer.into()).await?;
        leave_out_answers_comment(&mut event);
        Ok(EventView { index: place.map(|it| it.record.index), event, hash, names })
    }

    /// What people said of a thread may quote what is hidden in it. A broken chain does not keep its events from
    /// being looked at; only what cannot be masked then is not shown.
    pub(in crate::service) async fn masked_event(
        &self,
        keys: &Keys,
        mut event: Event,
        reader: &Party,
    ) -> Result<Event> {
        let Some(thread) = event.thread.clone() else { return Ok(event) };
        if event.data.get("warnings").is_some() {
            self.put_own_warnings(keys, &mut event, reader).await?;
        }
        if !QUOTING.iter().any(|it| event.data.get(*it).is_some_and(Value::is_string)) {
            return Ok(event);
        }
        let author = Author::of(match author_in(&event) {
            Some(author) => self.party_of(keys, &author).await?,
            None => Party::Gone,
        });
        let redaction = self.redaction_of(keys, (&thread, reader), &event).await;
        let Some(members) = event.data.as_object_mut() else { return Ok(event) };
        for name in QUOTING {
            if let Some(Value::String(text)) = members.get_mut(name) {
                *text = match &redaction {
                    Ok(redaction) => redaction.words(&author, text).into_owned(),
                    Err(error) if is_out_of_reach(error) => WITHHELD.to_owned(),
                    Err(_) => return Err(Error::Busy),
                };
            }
        }
        Ok(event)
    }

    /// An event is written with warnings that end before a name with a redacted value. A reader who could have chosen the
    /// names is shown them as far as that tells nothing.
    async fn put_own_warnings(&self, keys: &Keys, event: &mut Event, reader: &Party) -> Result<()> {
        let Some(digest) = self.transition_named(keys, event).await? else { return Ok(()) };
        let transition = self.stated(keys, digest).await?;
        let author = self.author_of(keys, &transition).await?;
        if reader.could_have_written_as(author.party()) {
            event.data["warnings"] = match self.told(digest, reader, RedactionDetail::Whole).await {
                Ok(told) => json!(told.warnings_shown),
                Err(error) if is_out_of_reach(&error) => json!([]),
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }

    /// What an event is about: the transition that it names, or that of its receipt.
    async fn transition_named(&self, keys: &Keys, event: &Event) -> Result<Option<Digest>> {
        let named = |name: &str| event.data.get(name).and_then(Value::as_str);
        if let Some(digest) = named("transition") {
            return Ok(digest.parse().ok());
        }
        let Some(receipt) = named("receipt") else { return Ok(None) };
        Ok(self.fetch::<ReceiptRow>(keys, receipt).await?.map(|it| it.record.transition))
    }

    async fn redaction_of(
        &self,
        keys: &Keys,
        (thread, reader): (&ThreadId, &Party),
        event: &Event,
    ) -> Result<Redaction> {
        let record: Thread = self.thread(keys, thread).await?.record;
        let (digest, states, tool) = match self.transition_named(keys, event).await? {
            Some(digest) => {
                let transition = self.transition(keys, digest).await?;
                (transition.statement.policy, self.states_of(keys, &transition).await?, transition.tool)
            }
            None => {
                let head = self.version(keys, thread, record.head.version).await?;
                (head.statement.policy, (head.state.clone(), head.state), None)
            }
        };
        let policies = self.policies_over(keys, &record, [digest]).await?;
        Ok(Redaction::new(reader.clone(), &policies, (&[&states.0, &states.1], tool.as_ref()), []))
    }
}

/// The answer to an interrupt stands in its event as its host was given it: with a comment from which what the host said of
/// redacted places is masked. Whoever wrote the comment would find guesses answered, so people read it on the interrupt's page.
fn leave_out_answers_comment(event: &mut Event) {
    if let Some(comment) = event.data.get_mut("answer").and_then(|it| it.get_mut("comment")).filter(|it| it.is_string())
    {
        *comment = ON_ITS_PAGE.into();
    }
}

/// Whether a version cannot be read, so that nothing can be compared with it.
const fn is_out_of_reach(error: &Error) -> bool {
    matches!(error, Error::Broken(_) | Error::NotFound(_) | Error::Erased | Error::Archive(_) | Error::NoArchives)
}

/// Who wrote what an event quotes.
fn author_in(event: &Event) -> Option<PrincipalId> {
    const WRITTEN_BY: [&str; 4] = ["person", "reviewer", "by", "principal"];
    let member = |name: &&str| event.data.get(*name)?.as_str();
    WRITTEN_BY.iter().find_map(member).and_then(|it| PrincipalId::try_from(it).ok())
}

/// Everybody whom an event may name, by id. What is no id of anybody finds nobody.
fn principals(event: &Event) -> Vec<PrincipalId> {
    const NAMED_BY: [&str; 5] = ["by", "principal", "reviewer", "account", "token"];
    let member = |name: &&str| event.data.get(*name)?.as_str();
    NAMED_BY.iter().filter_map(member).filter_map(|it| PrincipalId::try_from(it).ok()).collect()
}
