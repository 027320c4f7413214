//! An audit reads everything as it stood at one moment: what was wrong then is a finding, though it is put right while it reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::audit::audit_with;
use countersign_store::ScanPage;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};

use crate::database_edits::{HistoryTemplate, opened};
use crate::lived;
use crate::over::{InterceptedStore, StoreInterceptor, StoreOperation};

/// Edits the database after an audit has read its first page.
struct TamperingStore {
    folder: std::path::PathBuf,
    does: &'static str,
    walks: AtomicUsize,
    pages: AtomicUsize,
}

#[async_trait]
impl StoreInterceptor for TamperingStore {
    async fn asked(&self, what: StoreOperation<'_>) {
        if what == StoreOperation::Walk {
            self.walks.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn met(&self, _: &ScanPage) {
        if self.pages.fetch_add(1, Ordering::SeqCst) == 0 {
            opened(&self.folder).execute_batch(self.does).unwrap();
        }
    }
}

/// Returns the findings of an audit after the first edit, while the second edit is made during the audit.
async fn found(original: &HistoryTemplate, edit: &'static str, does: &'static str) -> Vec<String> {
    let copy = original.edited(|it| it.execute_batch(edit).unwrap());
    let folder = copy.path().to_owned();
    let inner = SqliteStore::open(folder.join("countersign.db"), SqliteOptions::default()).unwrap();
    let (walks, pages) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let store = InterceptedStore::new(Arc::new(inner), TamperingStore { folder: folder.clone(), does, walks, pages });
    let keys = Keyring::open(&folder.join("keyring.json"), None).unwrap().current().unwrap();
    let archives = lived::archives::in_folder(&folder);
    let report = audit_with(&*store, Some(&archives), &keys, SystemClock.now()).await.unwrap();
    assert_eq!(store.watching.walks.load(Ordering::SeqCst), 1, "{edit}: it looked once");
    report.findings.iter().map(|it| format!("{} {}: {}", it.table, it.id, it.finding)).collect()
}

#[test]
fn what_is_wrong_at_the_moment_that_is_read_is_found_and_nothing_after_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let original = HistoryTemplate::shared(&runtime);
    for (edit, undo) in [
        // The edits remove rows, break the seals of rows, and remove labels, which are no rows.
        (
            "CREATE TABLE away AS SELECT * FROM receipts; DELETE FROM receipts",
            "INSERT INTO receipts SELECT * FROM away; DROP TABLE away",
        ),
        ("UPDATE flows SET owner = owner || 'x'", "UPDATE flows SET owner = substr(owner, 1, length(owner) - 1)"),
        (
            "CREATE TABLE away AS SELECT * FROM labels WHERE kept_in = 'holds'; DELETE FROM labels WHERE kept_in = 'holds'",
            "INSERT INTO labels SELECT * FROM away; DROP TABLE away",
        ),
    ] {
        let stayed = runtime.block_on(found(&original, edit, ""));
        assert!(!stayed.is_empty(), "{edit}: nobody noticed");
        assert_eq!(runtime.block_on(found(&original, edit, undo)), stayed, "{edit}: it was put right");
        assert_eq!(runtime.block_on(found(&original, "", edit)), [""; 0], "{edit}: it came after");
    }
}
