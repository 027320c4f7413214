//! Archives: what has left the database is in its file, as it was taken out; and nothing has left it, or was erased, but as
//! events tell and the policies of that time let go.

use std::collections::BTreeMap;

use super::load::Everything;
use super::story::{Story, number, said};
use super::{Audit, Finding};
use crate::archives::Archives;
use crate::domain::archive::{Archive, Content, Gone, Kept};
use crate::domain::chain::hash::Digest;
use crate::domain::event::{Event, EventType};
use crate::domain::id::ThreadId;
use crate::domain::thread::Thread;
use crate::domain::time::Timestamp;
use crate::domain::transition::{StateRow, Transition, Values};
use crate::store::record::{Record as _, Stored};
use crate::store::row::Table;

/// Puts what files hold where it was taken from, so that all of it is replayed as if it had never left.
pub(super) fn put_back(all: &mut Everything, archives: Option<&Archives>, findings: &mut Vec<Finding>) {
    let kept = all.archives.values().filter(|it| matches!(it.record.kept, Kept::File {}));
    let kept: Vec<Archive> = kept.map(|it| it.record.clone()).collect();
    for archive in kept {
        let mut note = |finding: &str| {
            let (table, id) = (Table::Archives.name(), archive.id());
            findings.push(Finding { table, id, finding: finding.to_owned() });
        };
        let text = archives.and_then(|it| it.read(&archive).ok());
        let Some(content) = text.and_then(|it| Content::read(&it)).filter(|it| it.is_of(&archive)) else {
            note("its file is gone, or is not the one that was written");
            continue;
        };
        let states = content.states.into_iter().map(|it| put_state(all, it)).filter(|it| !it).count();
        let transitions = content.transitions.into_iter().map(|it| put_values(all, it)).filter(|it| !it).count();
        if states + transitions > 0 {
            note("what it holds is not what was taken out of the database");
        }
    }
}

fn put_state(all: &mut Everything, record: StateRow) -> bool {
    let stored = Stored { revision: 1, seal: Vec::new(), record };
    all.states.insert(stored.record.id(), stored).is_none()
}

fn put_values(all: &mut Everything, whole: Transition) -> bool {
    let stored = all.transitions.get_mut(&whole.digest.to_string());
    let Some(stored) = stored.filter(|it| it.record == whole.without_values()) else { return false };
    stored.record = whole;
    true
}

/// An archive as events tell it.
struct Told {
    from: u64,
    to: u64,
    file: String,
    made: (Timestamp, String),
    erased: Option<(Timestamp, String)>,
}

impl Told {
    fn of(event: &Event) -> Option<Self> {
        let (from, to) = (number(event, "from")?, number(event, "to")?);
        let made = (event.at, said(event, "policy").to_owned());
        Some(Self { from, to, file: said(event, "file").to_owned(), made, erased: None })
    }

    fn is(&self, stored: &Stored<Archive>) -> bool {
        let row = &stored.record;
        let (revision, erased) = match &row.kept {
            Kept::File {} => (1, None),
            Kept::Erasing { at, policy } => (2, Some((*at, policy.to_string()))),
            Kept::Erased { at, policy } => (3, Some((*at, policy.to_string()))),
        };
        stored.revision == revision
            && (self.from, self.to, &self.file) == (row.from, row.to, &row.file.to_string())
            && self.made == (row.at, row.policy.to_string())
            && self.erased == erased
    }
}

impl Audit<'_> {
    /// A thread's archives are those that its events tell of, and its row says how far they go.
    pub(super) fn check_archives(&mut self, thread: &Thread, rows: &[&Stored<Archive>], story: &Story<'_>) {
        let (mut gone, mut told) = (Gone::default(), BTreeMap::new());
        for (event, head) in &story.retained {
            let follows = Told::of(event).and_then(|it| follow(&mut gone, &mut told, event.kind, it));
            let fits = follows.is_some() && self.lets_go(thread, event, *head);
            self.expect(
                fits,
                Table::Threads,
                &thread.id,
                "its past left the database as no policy of its flow lets it",
            );
        }
        let detail = "how far its past has left the database is not what its events say";
        self.expect(gone == thread.gone, Table::Threads, &thread.id, detail);
        let strange = rows.iter().find(|it| !told.get(&it.record.to).is_some_and(|told| told.is(it)));
        if strange.is_some() || rows.len() != told.len() {
            let id = strange.map_or(thread.id.to_string(), |it| it.record.id());
            self.note(Table::Archives, id, "the archives are not those that events tell of");
        }
    }

    /// Whether the policy that an event names is one of the flow's, and let it do so then. Whoever has the keyring puts back what they like.
    fn lets_go(&self, thread: &Thread, event: &Event, head: u64) -> bool {
        if event.kind == EventType::ThreadRestored {
            return true;
        }
        let policy = said(event, "policy").parse::<Digest>().ok().and_then(|it| self.policies.get(&it));
        let retain = policy.filter(|it| *it.flow() == thread.flow).and_then(|it| it.retain());
        let to = number(event, "to").unwrap_or(u64::MAX);
        let left = self.entry_at(&thread.id, to.saturating_add(1)).map(|it| it.committed_at);
        let Some((retain, left)) = retain.zip(left) else { return false };
        match event.kind {
            EventType::ThreadArchived => to < head && retain.lets_go((to, left), head, event.at),
            _ => retain.lets_erase(left, event.at),
        }
    }

    /// Whether a version's values are erased, as its thread says.
    pub(super) fn is_erased(&self, thread: &ThreadId, version: u64) -> bool {
        self.all.threads.get(thread.as_str()).is_some_and(|it| version < it.record.gone.erased)
    }

    /// Whether the transition has its values; that they are gone is a finding, unless they are erased.
    pub(super) fn has_values(&mut self, transition: &Transition) -> bool {
        let statement = &transition.statement;
        let here = transition.values == Values::Here;
        let holds = here || self.is_erased(&statement.thread, statement.version);
        self.expect(holds, Table::Transitions, transition.digest, "its values are gone, and nobody erased them");
        here
    }
}

/// What an event makes of what came before it; nothing, if it does not follow.
fn follow(gone: &mut Gone, told: &mut BTreeMap<u64, Told>, kind: EventType, it: Told) -> Option<()> {
    let (from, next) = (it.from, it.to.checked_add(1).filter(|next| it.from < *next)?);
    match kind {
        EventType::ThreadArchived if from == gone.archived => {
            gone.archived = next;
            told.insert(it.to, it);
        }
        EventType::ThreadErased if from == gone.erased => {
            let archive = told.get_mut(&it.to).filter(|of| (of.from, &of.file) == (it.from, &it.file))?;
            archive.erased = Some(it.made);
            gone.erased = next;
        }
        EventType::ThreadRestored if next == gone.archived && from >= gone.erased => {
            told.remove(&it.to).filter(|of| (of.from, &of.file) == (it.from, &it.file))?;
            gone.archived = from;
        }
        _ => return None,
    }
    Some(())
}
