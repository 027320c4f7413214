//! Checks the archives. Each file must still have the content that was taken out of the database. Versions may only be
//! archived or erased as the events record, and as the policy of that time allowed.

use std::collections::BTreeMap;

use countersign_adapters::archives::Archives;
use countersign_domain::chain::hash::Digest;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::archive;
use countersign_domain::threads::archive::{
    ArchivalProgress, Archive, ArchiveContent, ArchivedLocation, ArchivedVersion,
};
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{Transition, ValueLocation};
use countersign_store::record::{Record, Stored};
use countersign_store::records::version_id;
use countersign_store::row::Table;
use countersign_store::{Store, StoreError};

use super::event_replay::{ThreadEvents, number, said};
use super::load::{Everything, LoadedRows};
use super::{AuditFinding, AuditRun};

/// Puts the content of the archive files back in memory, so that the replay covers it like rows that never left the
/// database. Returns the archives whose files do not match their rows.
pub(super) fn put_back(
    all: &mut Everything,
    archives: Option<&Archives>,
    findings: &mut Vec<AuditFinding>,
) -> Vec<String> {
    let mut unread = Vec::new();
    let rows: Vec<Archive> = all.archives.values().map(|it| it.record.clone()).collect();
    // Rows that are left at the end belong to no archive.
    let mut places = std::mem::take(&mut all.whereabouts);
    for archive in rows {
        let mut note = |finding: &str| {
            let (table, id) = (Table::Archives.name(), archive.id());
            findings.push(AuditFinding { table, id, finding: finding.to_owned() });
        };
        // An unreadable file is a finding and not an error, so that the audit goes on.
        let text = archives.and_then(|it| it.read(&archive).ok());
        let Some(content) = text.and_then(|it| ArchiveContent::read(&it)).filter(|it| it.is_of(&archive)) else {
            note("the archive file is missing or was changed: restore it from a backup");
            unread.push(archive.id());
            continue;
        };
        let ended = content.ended.into_iter().map(|it| put_values(all, it)).filter(|it| !it).count();
        // The entry of the last archived version also stays in the database.
        let last = Some(archive.to + 1) == all.threads.get(archive.thread.as_str()).map(|it| it.record.gone.archived);
        let kept = if last { Some(archive.to) } else { None };
        let gone = content.entries.iter().map(|it| put_version(all, it, kept)).filter(|it| !it).count();
        if ended + gone > 0 {
            note("the archive file does not match the rows that were taken out of the database");
        }
        let told = content.entries.iter().map(|it| is_told(&mut places, it)).filter(|it| !it).count();
        if told > 0 {
            note("a transition of the archive has no matching row in whereabouts");
        }
    }
    for id in places.into_keys() {
        let finding = "no archive contains the transition".to_owned();
        findings.push(AuditFinding { table: Table::Whereabouts.name(), id, finding });
    }
    unread
}

/// Returns true if an archive row has changed since it was read. The archive was then restored or erased in the
/// meantime, which removes its file. If the row is unchanged, its file must exist.
pub(super) async fn have_moved(store: &dyn Store, all: &Everything, unread: &[String]) -> Result<bool, StoreError> {
    for id in unread {
        let row = store.get(Table::Archives, id).await?;
        if row.map(|it| it.mac) != all.archives.get(id).map(|it| it.seal.clone()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Puts back all rows of a version. None of them may still be in the database, except the last archived entry, which
/// stays there.
fn put_version(all: &mut Everything, archived: &ArchivedVersion, kept: Option<u64>) -> bool {
    let (row, link) = (archived.row(), archived.link());
    let state = archived.state().is_none_or(|it| put(&mut all.states, it).is_none());
    let transition = put(&mut all.transitions, row).is_none();
    let stayed = put(&mut all.entries, link.clone());
    let entry = match stayed {
        None => kept != Some(archived.version),
        Some(stayed) => kept == Some(archived.version) && stayed.record == link && stayed.revision == 1,
    };
    state && transition && entry
}

fn put<R: Record>(rows: &mut LoadedRows<R>, record: R) -> Option<Stored<R>> {
    rows.insert(record.id(), Stored { revision: 1, seal: Vec::new(), record })
}

fn put_values(all: &mut Everything, whole: Transition) -> bool {
    let stored = all.transitions.get_mut(&whole.digest.to_string());
    let Some(stored) = stored.filter(|it| it.record == whole.without_values()) else { return false };
    stored.record = whole;
    true
}

/// Returns true if the database has the position of the transition in a row that was never changed. Removes the row, so
/// that a second archive cannot use it.
fn is_told(places: &mut LoadedRows<ArchivedLocation>, archived: &ArchivedVersion) -> bool {
    let place = ArchivedLocation {
        transition: archived.transition,
        thread: archived.statement.thread.clone(),
        version: archived.version,
    };
    places.remove(&place.id()).is_some_and(|it| it.record == place && it.revision == 1)
}

/// An archive, rebuilt from its events.
struct ArchiveEvents {
    from: u64,
    to: u64,
    /// Digest of the file in the latest event: erasing writes another file.
    file: String,
    made: (Timestamp, String),
    erased: Option<(Timestamp, String)>,
}

impl ArchiveEvents {
    fn of(event: &Event) -> Option<Self> {
        let (from, to) = (number(event, "from")?, number(event, "to")?);
        let made = (event.at, said(event, "policy").to_owned());
        Some(Self { from, to, file: said(event, "file").to_owned(), made, erased: None })
    }

    fn is(&self, stored: &Stored<Archive>) -> bool {
        let row = &stored.record;
        // Each state is one revision, so an older copy of the row has the wrong number.
        let (revision, erased) = match &row.kept {
            archive::ArchiveContentState::Whole {} => (1, None),
            archive::ArchiveContentState::Erasing { at, policy } => (2, Some((*at, policy.to_string()))),
            archive::ArchiveContentState::Erased { at, policy } => (3, Some((*at, policy.to_string()))),
        };
        stored.revision == revision
            && (self.from, self.to, &self.file) == (row.from, row.to, &row.file.to_string())
            && self.made == (row.at, row.policy.to_string())
            && self.erased == erased
    }
}

impl AuditRun<'_> {
    /// Checks that the archives of a thread match its events, and that the thread row records how far versions are
    /// archived and erased.
    pub(super) fn check_archives(&mut self, thread: &Thread, rows: &[&Stored<Archive>], story: &ThreadEvents<'_>) {
        let (mut gone, mut told) = (ArchivalProgress::default(), BTreeMap::new());
        for (event, head) in &story.retained {
            let follows = ArchiveEvents::of(event).and_then(|it| follow(&mut gone, &mut told, event.kind, it));
            let fits = follows.is_some() && self.lets_go(thread, event, *head);
            self.expect(
                fits,
                Table::Threads,
                &thread.id,
                "versions were archived or erased, although no policy of the flow allowed it",
            );
        }
        let detail = "the archived and erased versions of the thread differ from its events";
        self.expect(gone == thread.gone, Table::Threads, &thread.id, detail);
        let is_told = |it: &Stored<Archive>| {
            let told = told.get(&it.record.to).is_some_and(|told| told.is(it));
            told && self.has_valid_left_time(&it.record)
        };
        let strange = rows.iter().find(|it| !is_told(it));
        if strange.is_some() || rows.len() != told.len() {
            let id = strange.map_or(thread.id.to_string(), |it| it.record.id());
            self.note(Table::Archives, id, "the archives of the thread differ from its events");
        }
    }

    /// Returns true if `left` is the commit time of the version after the archive. If a clock went back, the latest
    /// commit time of these versions is also valid.
    fn has_valid_left_time(&self, archive: &Archive) -> bool {
        let next = archive.to.saturating_add(1);
        let at = |version: u64| self.entry_at(&archive.thread, version).map(|it| it.committed_at);
        let Some(followed) = at(next) else { return false };
        archive.left == followed || Some(archive.left) == (archive.from..=next).filter_map(at).max()
    }

    /// Returns true if the policy in the event belongs to the flow and allowed the step at that time. A restore needs
    /// no policy: an operator who has the keyring may always restore.
    fn lets_go(&self, thread: &Thread, event: &Event, head: u64) -> bool {
        // An operator with the keyring may restore whatever the policy says.
        if event.kind == EventType::ThreadRestored {
            return true;
        }
        let policy = said(event, "policy").parse::<Digest>().ok().and_then(|it| self.policies.get(&it));
        let retain = policy.filter(|it| *it.flow() == thread.flow).and_then(|it| it.retain());
        let to = number(event, "to").unwrap_or(u64::MAX);
        // This commit time is never later than `left` of the archive. Older archives waited for this time only.
        let left = self.entry_at(&thread.id, to.saturating_add(1)).map(|it| it.committed_at);
        let Some((retain, left)) = retain.zip(left) else { return false };
        match event.kind {
            EventType::ThreadArchived => to < head && retain.lets_go(to, left, head, event.at),
            _ => retain.may_erase(left, event.at),
        }
    }

    /// Returns true if the thread row marks the values of the version as erased.
    pub(super) fn is_erased(&self, thread: &ThreadId, version: u64) -> bool {
        self.all.threads.get(thread.as_str()).is_some_and(|it| version < it.record.gone.erased)
    }

    /// Returns true if the transition has its values. Missing values are a finding unless the version is erased.
    pub(super) fn has_values(&mut self, transition: &Transition) -> bool {
        let statement = &transition.statement;
        let here = transition.values == ValueLocation::Here;
        let holds = here || self.is_erased(&statement.thread, statement.version);
        self.expect(
            holds,
            Table::Transitions,
            transition.digest,
            "the values of the transition are missing, although its version is not erased",
        );
        // Values that remain after an erasure break the promise of the retention rule.
        let outlive = here && self.was_erased(&statement.thread, statement.version);
        self.expect(
            !outlive,
            Table::Transitions,
            transition.digest,
            "the values of the transition are still stored, although its version is erased",
        );
        here
    }

    /// Returns true if the archive of the version is erased. Erasing also removes the values that were still in the
    /// database.
    fn was_erased(&self, thread: &ThreadId, version: u64) -> bool {
        // The id of an archive contains its last version, so the next row is the only candidate.
        let over = self.all.archives.range(version_id(thread, version)..).next().map(|it| &it.1.record);
        let over = over.filter(|it| it.thread == *thread && it.from <= version);
        over.is_some_and(|it| matches!(it.kept, archive::ArchiveContentState::Erased { .. }))
    }
}

/// Applies an event to the archives before it. Returns `None` if the event does not follow from them.
fn follow(
    gone: &mut ArchivalProgress,
    told: &mut BTreeMap<u64, ArchiveEvents>,
    kind: EventType,
    it: ArchiveEvents,
) -> Option<()> {
    let (from, next) = (it.from, it.to.checked_add(1).filter(|next| it.from < *next)?);
    match kind {
        EventType::ThreadArchived if from == gone.archived => {
            gone.archived = next;
            told.insert(it.to, it);
        }
        EventType::ThreadErased if from == gone.erased => {
            let archive = told.get_mut(&it.to).filter(|of| of.from == it.from)?;
            (archive.file, archive.erased) = (it.file, Some(it.made));
            gone.erased = next;
        }
        // Erased values no longer exist, so only later versions can be restored.
        EventType::ThreadRestored if next == gone.archived && from >= gone.erased => {
            told.remove(&it.to).filter(|of| (of.from, &of.file) == (it.from, &it.file))?;
            gone.archived = from;
        }
        _ => return None,
    }
    Some(())
}
