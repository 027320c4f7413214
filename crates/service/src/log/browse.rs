//! Browsing the audit log: newest events first, in bounded pages.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::{Account, PersonRole};
use countersign_domain::identity::party::{Author, Party};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::primitives::id::{EventId, FlowId, PrincipalId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::flow::ReceiptRow;
use countersign_domain::threads::thread::Thread;
use countersign_store::records::{HUNDRED, LogRow, events_alias, log_id};
use countersign_store::{Cursor, LIST_ROWS_MAX, RowFilter};
use serde_json::{Value, json};

use super::clock_check::event_ids_from;
use super::withheld_members::{remove_answer_comment, remove_unsalted_digests, unsalted_digest};
use crate::error::{Error, Result};
use crate::identity::requester_names::RequesterName;
use crate::log::Log;
use crate::platform::reason::WITHHELD;
use crate::threads::redaction::{RedactedTextContext, Redaction, RedactionDetail};

/// The criteria of a search. An event has to match all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogFilter {
    /// The name of an event, or the part of its name before the dot.
    pub kind: Option<String>,
    pub thread: Option<ThreadId>,
    pub flow: Option<FlowId>,
    /// The name or id of an account or token that acted or that the event names.
    pub who: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

/// The audience of a page. Events about sign-ins and access are only for people who oversee others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogAudience {
    Reviewers,
    /// Administrators and auditors.
    Overseers,
}

#[derive(Clone, PartialEq, Debug)]
pub struct LogLine {
    /// The position in the log. It is not read if only one thread is searched.
    pub index: Option<u64>,
    pub event: Event,
}

#[derive(Clone, Debug, Default)]
pub struct LogListing {
    pub lines: Vec<LogLine>,
    /// How many events were examined for this page.
    pub looked: u64,
    /// The position below which the next page starts, in the log or in the thread. `None` if every event was
    /// examined.
    pub below: Option<u64>,
    /// Names of the accounts and tokens in the lines, by id.
    pub names: BTreeMap<String, RequesterName>,
}

/// One event as a person may read it.
#[derive(Clone, Debug)]
pub struct EventView {
    /// The position in the log, once the sequencer has assigned it.
    pub index: Option<u64>,
    /// The event, with redacted values masked in its texts.
    pub event: Event,
    /// The hash by which the thread's next event and the log refer to this event, for overseers only.
    pub hash: Option<Digest>,
    pub names: BTreeMap<String, RequesterName>,
}

/// How many events one page examines. Opening a row costs some microseconds, and the reader can request the
/// next page.
const LOOKED_MAX: u64 = 1_000;

/// Events that one query reads.
const WINDOW: u64 = 250;

/// How far the time of an event may differ from its order in the log. The clocks of gateways differ by less,
/// and the sequencer assigns positions sooner unless it is down.
const DISORDER: Duration = Duration::from_secs(60);

impl LogAudience {
    pub const fn of(role: PersonRole) -> Self {
        match role {
            PersonRole::Reviewer => Self::Reviewers,
            PersonRole::Admin | PersonRole::Auditor => Self::Overseers,
        }
    }

    /// Returns whether this audience may read events of this kind.
    pub fn may_see(self, kind: EventType) -> bool {
        self == Self::Overseers || !kind.name().starts_with("access.")
    }
}

/// The criteria of a search, with names resolved to ids.
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
            && (self.who.is_empty() || self.who.iter().any(|it| self.names(event, it)))
    }

    /// Returns whether the data of an event contains this id, in a member that the audience gets.
    fn names(&self, event: &Event, id: &str) -> bool {
        let withheld = unsalted_digest(event.kind).filter(|_| self.audience != LogAudience::Overseers);
        texts(&event.data, withheld).any(|it| it == id)
    }

    /// Returns whether no event before this one can match.
    fn is_past(&self, event: &Event) -> bool {
        self.sought.since.is_some_and(|it| event.at < it.minus(DISORDER))
    }
}

/// Members that contain text by people. They may quote redacted values, so they are masked, and a match in them is no name.
const QUOTING: [&str; 2] = ["reason", "comment"];

/// Returns the texts in the data of an event, without those of one member. The data has no nesting except lists.
fn texts<'d>(data: &'d Value, without: Option<&'static str>) -> impl Iterator<Item = &'d str> {
    let is_left_out = move |name: &str| QUOTING.contains(&name) || without == Some(name);
    let members = data.as_object().into_iter().flatten().filter(move |(name, _)| !is_left_out(name));
    let items = members.flat_map(|(_, it)| match it {
        Value::Array(items) => items.iter().collect(),
        other => vec![other],
    });
    items.filter_map(Value::as_str)
}

impl Log {
    /// Returns a page of the log, newest first, that starts below `below`.
    pub async fn log_page(
        &self,
        sought: &LogFilter,
        audience: LogAudience,
        below: Option<u64>,
        limit: usize,
    ) -> Result<LogListing> {
        let keys = self.core.keys()?;
        let sieve = ResolvedLogFilter { sought, audience, who: self.ids_of(&keys, sought.who.as_deref()).await? };
        // A search in one thread walks the numbers of its own events, which is shorter than the log.
        let last = match (&sought.thread, below) {
            (Some(thread), _) => self.core.thread(&keys, thread).await?.record.last_event.map_or(0, |it| it.seq),
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
                // Events are ordered by time within `DISORDER`, so no earlier one can match.
                if sieve.is_past(&line.event) {
                    return self.named(&keys, LogListing { below: None, ..page }).await;
                }
                page.looked += 1;
                // Set before the filter, so that the next page starts below this event even if it does not
                // match.
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
        Ok(LogListing { names: self.identity.names_of(keys, &ids).await?, ..page })
    }

    /// Returns the ids that match a name: the text itself, and the id of the account with that name.
    async fn ids_of(&self, keys: &Keys, who: Option<&str>) -> Result<Vec<String>> {
        let Some(who) = who else { return Ok(Vec::new()) };
        let account = self.core.reader(keys).get_by_alias::<Account>(who).await?;
        Ok(account.map(|it| it.record.id.to_string()).into_iter().chain([who.to_owned()]).collect())
    }

    /// Returns the last log position that can hold an event of that time or before.
    async fn log_until(&self, keys: &Keys, until: Option<Timestamp>) -> Result<u64> {
        let length = self.log_length().await?;
        let Some(until) = until else { return Ok(length) };
        // Event ids begin with their time, so one query by id finds the first event that is certainly later.
        let after = Cursor { due: 0, id: event_ids_from(until.plus(DISORDER)) };
        let later = self.core.reader(keys).list::<Event>(RowFilter::All, Some(&after), 1).await?;
        let Some(later) = later.first() else { return Ok(length) };
        let place = self.core.reader(keys).get_by_alias::<LogRow>(later.record.id.as_str()).await?;
        Ok(place.map_or(length, |it| it.record.index.saturating_add(WINDOW).min(length)))
    }

    async fn log_lines(&self, keys: &Keys, top: u64) -> Result<Vec<(u64, LogLine)>> {
        let reader = self.core.reader(keys);
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

    /// Returns up to a hundred events of a thread, ending at `top`, newest first.
    pub(crate) async fn thread_lines(&self, keys: &Keys, thread: &ThreadId, top: u64) -> Result<Vec<(u64, LogLine)>> {
        let first = (top - top % HUNDRED).max(1);
        // Event numbers are stored with a fixed width, so one prefix selects a hundred of them.
        let begins = events_alias(thread, top / HUNDRED);
        let found = self.core.reader(keys).by_alias_prefix::<Event>(&begins, LIST_ROWS_MAX).await?.into_iter();
        let own = found.map(|it| it.record).filter(|it| it.thread.as_ref() == Some(thread));
        let events = own.filter_map(|event| Some((event.seq?, LogLine { index: None, event })));
        let mut lines: Vec<(u64, LogLine)> = events.filter(|(seq, _)| *seq <= top).collect();
        lines.sort_by_key(|(seq, _)| std::cmp::Reverse(*seq));
        // A gap in the numbers means that an event was deleted.
        let whole = lines.iter().map(|(seq, _)| *seq).eq((first..=top).rev());
        if whole { Ok(lines) } else { Err(Error::Broken("a thread's events")) }
    }

    /// Returns one event with its position, names and hashes. Only overseers get the hashes.
    pub async fn event_view(&self, id: &EventId, viewer: &Account) -> Result<EventView> {
        let keys = self.core.keys()?;
        let event = self.core.need::<Event>(&keys, id.as_str(), "event").await?.record;
        let audience = LogAudience::of(viewer.role);
        if !audience.may_see(event.kind) {
            // Not `Forbidden`, which would confirm that the event exists.
            return Err(Error::NotFound("event"));
        }
        let place = self.core.reader(&keys).get_by_alias::<LogRow>(id.as_str()).await?;
        let names = self.identity.names_of(&keys, &principals(&event)).await?;
        let hash = (audience == LogAudience::Overseers).then(|| event.hash());
        let mut event = self.masked_event(&keys, event, &viewer.into()).await?;
        remove_answer_comment(&mut event);
        if hash.is_none() {
            // Both hashes cover unmasked texts, so a reader could hash guesses and compare. The role alone decides:
            // a hash that is missing only beside masked texts would also confirm a guess.
            event.previous = None;
            remove_unsalted_digests(&mut event);
        }
        Ok(EventView { index: place.map(|it| it.record.index), event, hash, names })
    }

    /// Masks redacted values in texts that people wrote. If the chain of the thread is broken, its events
    /// stay readable and only the texts that cannot be masked are withheld.
    pub(crate) async fn masked_event(&self, keys: &Keys, mut event: Event, reader: &Party) -> Result<Event> {
        let Some(thread) = event.thread.clone() else { return Ok(event) };
        if event.data.get("warnings").is_some() {
            self.restore_own_warnings(keys, &mut event, reader).await?;
        }
        if !QUOTING.iter().any(|it| event.data.get(*it).is_some_and(Value::is_string)) {
            return Ok(event);
        }
        let author = Author::of(match author_in(&event) {
            Some(author) => self.threads.party_of(keys, &author).await?,
            None => Party::Gone,
        });
        let redaction = self.redaction_of(keys, &thread, reader, &event).await;
        let Some(members) = event.data.as_object_mut() else { return Ok(event) };
        for name in QUOTING {
            if let Some(Value::String(text)) = members.get_mut(name) {
                *text = match &redaction {
                    Ok(redaction) => redaction.words(&author, text).into_owned(),
                    // The text is withheld instead of shown unmasked.
                    Err(error) if is_out_of_reach(error) => WITHHELD.to_owned(),
                    // A failure that may pass must not withhold the text for good, so the reader tries again.
                    Err(_) => return Err(Error::Busy),
                };
            }
        }
        Ok(event)
    }

    /// Replaces the stored warnings of an event, which end before a name with a redacted value. A reader who
    /// could have chosen the names sees them as far as they reveal nothing.
    async fn restore_own_warnings(&self, keys: &Keys, event: &mut Event, reader: &Party) -> Result<()> {
        let Some(digest) = self.transition_named(keys, event).await? else { return Ok(()) };
        let transition = self.threads.stated(keys, digest).await?;
        let author = self.threads.author_of(keys, &transition).await?;
        if reader.could_have_written_as(author.party()) {
            event.data["warnings"] = match self.threads.told(digest, reader, RedactionDetail::Whole).await {
                Ok(told) => json!(told.warnings_shown),
                Err(error) if is_out_of_reach(&error) => json!([]),
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }

    /// Returns the transition that an event names, or the one of its receipt.
    async fn transition_named(&self, keys: &Keys, event: &Event) -> Result<Option<Digest>> {
        let named = |name: &str| event.data.get(name).and_then(Value::as_str);
        if let Some(digest) = named("transition") {
            return Ok(digest.parse().ok());
        }
        let Some(receipt) = named("receipt") else { return Ok(None) };
        Ok(self.core.fetch::<ReceiptRow>(keys, receipt).await?.map(|it| it.record.transition))
    }

    async fn redaction_of(&self, keys: &Keys, thread: &ThreadId, reader: &Party, event: &Event) -> Result<Redaction> {
        let record: Thread = self.core.thread(keys, thread).await?.record;
        let (digest, (before, after), call) = match self.transition_named(keys, event).await? {
            Some(digest) => {
                let transition = self.threads.transition(keys, digest).await?;
                let call = self.threads.sent_call(keys, &transition).await?;
                (transition.statement.policy, self.threads.states_of(keys, &transition).await?, call)
            }
            None => {
                let head = self.threads.version(keys, thread, record.head.version).await?;
                (head.statement.policy, (head.state.clone(), head.state), None)
            }
        };
        let policies = self.threads.policies_over(keys, &record, [digest]).await?;
        let around = RedactedTextContext { policies, states: [before, after], call };
        self.threads.redaction_of_texts(thread, reader, around, Vec::new()).await
    }
}

/// Returns whether a version cannot be read, so that no text can be compared with its redacted values.
const fn is_out_of_reach(error: &Error) -> bool {
    matches!(error, Error::Broken(_) | Error::NotFound(_) | Error::Erased | Error::Archive(_) | Error::NoArchives)
}

/// Returns the author of the text that an event quotes.
fn author_in(event: &Event) -> Option<PrincipalId> {
    const WRITTEN_BY: [&str; 4] = ["person", "reviewer", "by", "principal"];
    let member = |name: &&str| event.data.get(*name)?.as_str();
    WRITTEN_BY.iter().find_map(member).and_then(|it| PrincipalId::try_from(it).ok())
}

/// Returns the ids of all accounts and tokens that an event may name. Unknown ids are harmless: no name is
/// found for them.
fn principals(event: &Event) -> Vec<PrincipalId> {
    const NAMED_BY: [&str; 5] = ["by", "principal", "reviewer", "account", "token"];
    let member = |name: &&str| event.data.get(*name)?.as_str();
    NAMED_BY.iter().filter_map(member).filter_map(|it| PrincipalId::try_from(it).ok()).collect()
}
