//! Adds events to an episode, and renders its files.

use std::collections::{BTreeMap, BTreeSet};

use countersign_adapters::random;
use countersign_domain::chain::hash::Digest;
use countersign_domain::episode::agent_event::{AgentEvent, POSTED_MAX, Phase};
use countersign_domain::episode::artefacts::Timeline;
use countersign_domain::episode::event_line::EventRecord;
use countersign_domain::episode::goal::{Episode, EpisodeEnd};
use countersign_domain::episode::{Artefact, agent_event, from_thread, manifest};
use countersign_domain::identity::account::Token;
use countersign_domain::identity::party::{Author, Party};
use countersign_domain::keys::{KeyUse, Keys};
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::primitives::id::{EventId, NodeId, PrincipalId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::Hold;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::usage::InvalidUsage;
use countersign_store::LIST_ROWS_MAX;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::records::{HUNDRED, posted_row_id};
use serde_json::{Map, Value, json};

use crate::episodes::Episodes;
use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::threads::lease_expiry::record_expired_lease;
use crate::threads::redaction::{RedactedTextContext, Redaction};

#[derive(Clone, Debug)]
pub struct NewEvent {
    pub thread: ThreadId,
    pub node: NodeId,
    pub phase: Phase,
    pub payload: Map<String, Value>,
    pub caused_by: Option<EventId>,
    pub evidence_ids: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct EpisodeRecord {
    pub thread: Thread,
    /// Events of the episode without redacted values.
    pub timeline: Timeline,
}

/// An event of an episode with the author of its texts.
struct AttributedEvent {
    record: EventRecord,
    by: Option<PrincipalId>,
    node: Option<NodeId>,
}

/// The events of an episode, and who chose the names of branches in them.
#[derive(Default)]
struct AttributedEpisode {
    events: Vec<AttributedEvent>,
    /// The caller of the fork that made a branch, by the thread of the branch.
    forkers: BTreeMap<String, PrincipalId>,
}

impl AttributedEpisode {
    fn add_fork(&mut self, fork: &Event, by: Option<&PrincipalId>) {
        let branches = fork.data["branches"].as_array().into_iter().flatten();
        let threads = branches.filter_map(|it| it["thread"].as_str());
        self.forkers.extend(threads.filter_map(|it| Some((it.to_owned(), by?.clone()))));
    }

    pub(crate) fn authors(&self) -> impl Iterator<Item = &PrincipalId> {
        self.events.iter().filter_map(|it| it.by.as_ref()).chain(self.forkers.values())
    }
}

impl Episodes {
    /// Stores an event of an agent. Redacted values that its node could read are masked before it is stored. The event
    /// decides nothing.
    pub async fn add_episode_event(&self, token: &Stored<Token>, new: &NewEvent) -> Result<AgentEvent> {
        let wrong = |it: InvalidUsage| Error::invalid(it.pointer.as_str(), it.detail);
        agent_event::check(new.phase, &new.payload, &new.evidence_ids).map_err(wrong)?;
        retrying!(self.add_event_once(token, new))
    }

    async fn add_event_once(&self, token: &Stored<Token>, new: &NewEvent) -> Result<AgentEvent> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let stored = self.core.thread(&keys, &new.thread).await?;
        if !token.record.of_flow(&stored.record.flow) {
            return Err(Error::NotFound("thread"));
        }
        if !token.record.acts_as(&stored.record.flow, &new.node) {
            return Err(Error::Forbidden("this token may not act as this node of this thread's flow"));
        }
        let standing = self.core.standing(&keys, self.threads.expire_hold_if_due(&keys, stored).await?).await?;
        let mut thread = standing.thread.record.clone();
        if thread.closed.is_some() {
            return Err(Error::Closed);
        }
        if standing.proposing_halted() {
            return Err(Error::Halted);
        }
        let mut episode = open_episode(&thread, new.phase)?;
        if new.phase == Phase::Terminate {
            check_nothing_is_open(&thread, now)?;
        }
        self.check_cause(&keys, &thread, new.caused_by.as_ref()).await?;
        let author = Author::as_node(Party::from(&token.record), Some(&new.node));
        let redaction = self.redaction_for_author(&keys, &thread, &author).await?;
        // Read again, because the redaction of a large state waits.
        let now = self.core.now();
        let mask = |text: &str| redaction.words(&author, text).into_owned();
        let evidence_ids = new.evidence_ids.iter().map(|it| mask(it)).collect();
        let payload = from_thread::masked_payload(new.phase.as_str(), &new.payload, &mask);
        episode.events += 1;
        let posted = AgentEvent {
            id: EventId::try_from(random::uuid_v7(now).to_string()).expect("a UUID is a name"),
            thread: thread.id.clone(),
            number: episode.events,
            node: new.node.clone(),
            by: token.record.principal(),
            phase: new.phase,
            payload,
            caused_by: new.caused_by.clone(),
            evidence_ids,
            at: now,
        };
        let mut draft = Draft::new(keys.row(), now);
        standing.rely(&mut draft);
        draft.require_unchanged(token);
        if new.phase == Phase::Terminate {
            record_expired_lease(&mut draft, &mut thread, now)?;
        }
        let (kind, data) = (EventType::EpisodeEvent, posted_data(&posted));
        event_recorder::append_thread_event(&mut draft, &mut thread, now, kind, data)?;
        let seq = thread.last_event.map_or(0, |it| it.seq);
        episode.ended = posted.ended_by().map(|status| EpisodeEnd { status, at: now, seq });
        thread.episode = Some(episode);
        draft.insert(&posted)?;
        draft.replace(&standing.thread, &thread)?;
        self.core.store_response(&mut draft, &keys, &posted)?;
        self.core.commit(draft.finish()).await?;
        Ok(posted)
    }

    /// Returns the redaction of texts before they are stored. Values that the node could not read are masked at display:
    /// the digest of the stored text is in the audit log, so masking them here would confirm a guess.
    async fn redaction_for_author(&self, keys: &Keys, thread: &Thread, author: &Author) -> Result<Redaction> {
        let around = self.surroundings_of_run(keys, thread).await?;
        self.threads.redaction_of_texts(&thread.id, author.party(), around, vec![author.clone()]).await
    }

    /// Checks that a cause is an event of the same episode, from an agent or from the thread.
    async fn check_cause(&self, keys: &Keys, thread: &Thread, cause: Option<&EventId>) -> Result<()> {
        let Some(cause) = cause else { return Ok(()) };
        let reader = self.core.reader(keys);
        let posted = reader.get_by_alias::<AgentEvent>(cause.as_str()).await?.map(|it| it.record.thread);
        let of = match posted {
            Some(of) => Some(of),
            None => {
                let event = reader.get::<Event>(cause.as_str()).await?.map(|it| it.record);
                event
                    .filter(|it| from_thread::done(it, "").is_some() || it.kind == EventType::ThreadCreated)
                    .and_then(|it| it.thread)
            }
        };
        match of.as_ref() == Some(&thread.id) {
            true => Ok(()),
            false => Err(Error::invalid("/caused_by", "this episode has no event with that id")),
        }
    }

    /// Returns the head, or the states of the open review, with the policies that redact them.
    async fn surroundings_of_run(&self, keys: &Keys, thread: &Thread) -> Result<RedactedTextContext> {
        let head = self.threads.version(keys, &thread.id, thread.head.version).await?;
        let mut states = [head.state.clone(), head.state];
        let mut call = None;
        if let Some(review) = &thread.hold {
            let hold: Stored<Hold> = self.core.need(keys, review.as_str(), "review").await?;
            let transition = self.threads.transition(keys, hold.record.transition).await?;
            states = self.threads.states_of(keys, &transition).await?.into();
            call = self.threads.sent_call(keys, &transition).await?;
        }
        let policies = self.threads.policies_over(keys, thread, [head.statement.policy]).await?;
        Ok(RedactedTextContext { policies, states, call })
    }

    /// Returns the result of `tell` for the episode of a thread. The events are checked against their links and
    /// redacted for the reader. Episodes can be long, so requests of one caller wait for each other.
    pub async fn of_run<T: Send + 'static>(
        &self,
        by: &str,
        reader: &Party,
        thread: &ThreadId,
        tell: impl FnOnce(&EpisodeRecord) -> T + Send + 'static,
    ) -> Result<T> {
        let keys = self.core.keys()?;
        let thread = self.core.thread(&keys, thread).await?.record;
        let Some(episode) = thread.episode.clone() else { return Err(Error::NotFound("episode")) };
        let turn = self.core.turns.telling.take(by).await?;
        let events = self.events_of_run(&keys, &thread, &episode).await?;
        let said = self.posted_of_run(&keys, &thread, &episode).await?;
        let around = self.surroundings_of_run(&keys, &thread).await?;
        let happened = happened(&thread, &episode, events, said)?;
        let parties = self.parties_of(&keys, &happened).await?;
        let reader = reader.clone();
        let told = move || {
            let party = |by: Option<&PrincipalId>| by.and_then(|by| parties.get(by)).cloned().unwrap_or(Party::Gone);
            let author_of = |it: &AttributedEvent| Author::as_node(party(it.by.as_ref()), it.node.as_ref());
            let AttributedEpisode { events, forkers } = happened;
            let authors: Vec<Author> = events.iter().map(author_of).collect();
            let redaction = around.redaction(reader, &authors);
            let branch_mask = |thread: &str, name: &str| {
                redaction.words(&Author::as_node(party(forkers.get(thread)), None), name).into_owned()
            };
            let shown = |(it, author): (AttributedEvent, &Author)| {
                let mask = |text: &str| redaction.words(author, text).into_owned();
                from_thread::masked_record(it.record, &mask, &branch_mask)
            };
            let shown = events.into_iter().zip(&authors).map(shown).collect();
            Ok(tell(&EpisodeRecord { timeline: Timeline::of(shown), thread }))
        };
        turn.work("a run", told).await?
    }

    /// Returns the party behind each principal. Each principal is looked up once.
    async fn parties_of(&self, keys: &Keys, happened: &AttributedEpisode) -> Result<BTreeMap<PrincipalId, Party>> {
        let mut parties = BTreeMap::new();
        for by in happened.authors().cloned().collect::<BTreeSet<_>>() {
            let party = self.threads.party_of(keys, &by).await?;
            parties.insert(by, party);
        }
        Ok(parties)
    }

    /// Returns the events of the thread from its creation to the end of the episode. Fails unless they are hash-linked.
    async fn events_of_run(&self, keys: &Keys, thread: &Thread, episode: &Episode) -> Result<Vec<Event>> {
        let last = thread.last_event.ok_or(Error::Broken("a thread's events"))?;
        let until = episode.ended.as_ref().map_or(last.seq, |it| it.seq);
        // The limit bounds the memory that one request can use.
        if until > from_thread::TOLD_MAX {
            return Err(Error::WrongState("this thread has too many events to be exported as one episode"));
        }
        let mut events: Vec<Event> = Vec::new();
        for hundred in 0..=until / HUNDRED {
            let top = until.min(hundred * HUNDRED + HUNDRED - 1);
            let lines = self.log.thread_lines(keys, &thread.id, top).await?;
            events.extend(lines.into_iter().rev().map(|(_, line)| line.event));
        }
        let mut before: Option<Digest> = None;
        for event in &events {
            // A broken hash chain means that the database was changed.
            if event.previous != before {
                return Err(Error::Broken("a thread's events"));
            }
            before = Some(event.hash());
        }
        // Only the thread row shows whether the newest events are missing.
        let whole = until < last.seq || before == Some(last.hash);
        if whole { Ok(events) } else { Err(Error::Broken("a thread's events")) }
    }

    async fn posted_of_run(&self, keys: &Keys, thread: &Thread, episode: &Episode) -> Result<Vec<AgentEvent>> {
        let ids: Vec<String> = (1..=episode.events).map(|it| posted_row_id(&thread.id, it)).collect();
        let mut said: Vec<AgentEvent> = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(LIST_ROWS_MAX as usize) {
            said.extend(self.core.reader(keys).get_many::<AgentEvent>(chunk).await?.into_iter().map(|it| it.record));
        }
        said.sort_by_key(|it| it.number);
        Ok(said)
    }

    /// Returns all files that an episode has now. A finished episode also has a signed manifest, and an imported one
    /// has its original files.
    pub async fn files_of_run(&self, by: &str, reader: &Party, thread: &ThreadId) -> Result<Vec<(String, Vec<u8>)>> {
        let keys = self.core.keys()?;
        let all = move |run: &EpisodeRecord| {
            let files = Artefact::ALL.into_iter().filter_map(|it| Some((it.file().to_owned(), run.file(it, &keys)?)));
            files.collect()
        };
        match self.of_run(by, reader, thread, all).await {
            Err(Error::Imported) => self.files_of_import(thread).await,
            files => files,
        }
    }

    /// Returns one file of an episode of this gateway if it exists yet.
    pub async fn file_of_run(
        &self,
        by: &str,
        reader: &Party,
        thread: &ThreadId,
        wanted: Artefact,
    ) -> Result<Option<Vec<u8>>> {
        let keys = self.core.keys()?;
        self.of_run(by, reader, thread, move |run| run.file(wanted, &keys)).await
    }
}

impl EpisodeRecord {
    /// Returns a file if it exists yet. The manifest is signed.
    pub(crate) fn file(&self, wanted: Artefact, keys: &Keys) -> Option<Vec<u8>> {
        if wanted != Artefact::Manifest {
            return self.timeline.bytes(wanted);
        }
        let iat = self.timeline.events().last().map_or(0, from_thread::second_of);
        let key = keys.signing(KeyUse::Chain);
        self.timeline.manifest(|it| manifest::signed(it, &self.thread.id, key, keys.issuer(), iat))
    }
}

/// Fails if a review is pending or a write is in progress: an episode cannot end then.
fn check_nothing_is_open(thread: &Thread, now: Timestamp) -> Result<()> {
    if let Some(review) = thread.hold.clone() {
        return Err(Error::ThreadHeld(review));
    }
    if thread.live_write(now).is_some() { Err(Error::WriteInProgress) } else { Ok(()) }
}

/// Returns the episode of a thread if it accepts an event of this phase. A full episode accepts only its end.
fn open_episode(thread: &Thread, phase: Phase) -> Result<Episode> {
    let episode = thread.episode.clone().ok_or(Error::WrongState("this thread was not created as an episode"))?;
    if episode.ended.is_some() {
        return Err(Error::WrongState("this episode has ended and accepts no more events"));
    }
    if episode.events >= POSTED_MAX && phase != Phase::Terminate {
        return Err(Error::WrongState("this episode has the maximum of 1,000 agent events: it can only be ended"));
    }
    Ok(episode)
}

/// Returns the events of an episode. Agent texts are at the position of their event in the audit log.
fn happened(
    thread: &Thread,
    episode: &Episode,
    events: Vec<Event>,
    said: Vec<AgentEvent>,
) -> Result<AttributedEpisode> {
    let mut happened = AttributedEpisode::default();
    let mut said = said.into_iter();
    for event in events {
        let by = event.data["by"].as_str().and_then(|it| PrincipalId::try_from(it).ok());
        match event.kind {
            EventType::ThreadCreated if event.data["episode"] == json!(episode.terms.digest()) => {
                let record = from_thread::started(&event, thread.id.as_str(), &episode.terms);
                happened.events.push(AttributedEvent { record, by, node: None });
            }
            EventType::ThreadCreated => return Err(Error::Broken("an episode")),
            EventType::EpisodeEvent => {
                let posted = said.next().filter(|it| posted_data(it) == event.data);
                let posted = posted.ok_or(Error::Broken("an episode's events"))?;
                let (record, node) = (from_thread::said(&posted), Some(posted.node));
                happened.events.push(AttributedEvent { record, by: Some(posted.by), node });
            }
            _ => {
                if event.kind == EventType::ThreadForked {
                    happened.add_fork(&event, by.as_ref());
                }
                let done = from_thread::done(&event, thread.id.as_str());
                happened.events.extend(done.map(|record| AttributedEvent { record, by, node: None }));
            }
        }
    }
    if said.next().is_some() { Err(Error::Broken("an episode's events")) } else { Ok(happened) }
}

/// Returns the event data of an agent event: its number and its digest, but not its content.
pub(crate) fn posted_data(posted: &AgentEvent) -> Value {
    json!({
        "event": posted.id, "number": posted.number, "node": posted.node, "by": posted.by, "phase": posted.phase,
        "digest": posted.digest(),
    })
}
