//! Checks imported episodes against their events and against their own files.

use std::collections::{BTreeMap, BTreeSet};

use countersign_domain::episode::imported::{ImportChunk, RunImport, RunSignerStatus};
use countersign_domain::episode::verify::{SignatureRequirement, verify};
use countersign_domain::log::event::{Event, EventType};
use countersign_store::records::piece_id;
use countersign_store::row::Table;

use super::AuditRun;
use super::identity::text;

impl AuditRun<'_> {
    pub(super) fn check_imports(&mut self, outside: &[&Event]) {
        let told = outside.iter().filter(|it| it.kind == EventType::EpisodeImported);
        let mut told: BTreeMap<&str, &Event> = told.filter_map(|it| Some((text(it, "thread")?, *it))).collect();
        let mut pieces = BTreeSet::new();
        for (id, stored) in &self.all.imports {
            let import = &stored.record;
            let event = told.remove(id.as_str());
            let same = event.is_some_and(|it| it.data == import.told() && it.at == import.at) && stored.revision == 1;
            self.expect(same, Table::Imports, id, "the row differs from the event that records it");
            self.expect(
                self.has_all_files(import),
                Table::Imports,
                id,
                "the files differ from those that were imported",
            );
            // An import with the id of a thread could be confused with it.
            let thread = self.all.threads.contains_key(id);
            self.expect(!thread, Table::Imports, id, "a thread has the same id as the imported episode");
            pieces.extend((0..import.pieces()).map(|it| piece_id(&import.id, it)));
        }
        for id in told.into_keys() {
            self.note(Table::Imports, id, "the row is missing, but an event records it");
        }
        for (id, stored) in &self.all.import_pieces {
            let counted = pieces.contains(id) && stored.revision == 1;
            self.expect(counted, Table::ImportPieces, id, "the chunk belongs to no imported episode");
        }
    }

    /// Returns true if all files of the import are there and match its row.
    fn has_all_files(&self, import: &RunImport) -> bool {
        let kept = (0..import.pieces()).map(|it| self.all.import_pieces.get(&piece_id(&import.id, it)));
        let pieces: Option<Vec<ImportChunk>> = kept.map(|it| it.map(|it| it.record.clone())).collect();
        let Some(folder) = pieces.and_then(|it| import.folder(&it)) else { return false };
        // The signature is checked below, against the keys that signed at that time.
        let (run, _) = verify(&folder, SignatureRequirement::Unchecked);
        let again = RunImport::of(&folder, &run, import.voucher.clone(), import.by.clone(), import.at);
        again.is_ok_and(|(again, _)| again == *import)
            && import.voucher.stands(&run, self.keys.trusted()) != RunSignerStatus::Broken
    }
}
