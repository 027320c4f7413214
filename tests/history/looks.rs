//! An audit that found something looks again before it says so, and replays again what has changed meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::clock::{Clock as _, SystemClock};
use countersign::keyring::Keyring;
use countersign::service::audit::audit_with;
use countersign::store::sqlite::{SqliteOptions, SqliteStore};

use crate::database_edits::{Original, opened};
use crate::lived;
use crate::over::{Asked, Over};

/// Whatever an audit reads, and last of all the labels: a page with all of them, and an empty one.
const PAGES_OF_LABELS: usize = 2;

/// What becomes of these edits if they are undone when everything was read once.
async fn found_once(original: &Original, edit: &'static str, undo: &'static str) -> Vec<String> {
    let copy = original.edited(|it| it.execute_batch(edit).unwrap());
    let folder = copy.path().to_owned();
    let inner = SqliteStore::open(folder.join("countersign.db"), SqliteOptions::default()).unwrap();
    let pages = Arc::new(AtomicUsize::new(0));
    let (asked, place) = (Arc::clone(&pages), folder.clone());
    let ear = move |what: Asked<'_>| {
        if what == Asked::Labels && asked.fetch_add(1, Ordering::SeqCst) + 1 == PAGES_OF_LABELS {
            opened(&place).execute_batch(undo).unwrap();
        }
    };
    let store = Over::new(Arc::new(inner), ear);
    let keys = Keyring::open(&folder.join("keyring.json"), None).unwrap().current().unwrap();
    let archives = lived::archives::in_folder(&folder);
    let report = audit_with(&*store, Some(&archives), &keys, SystemClock.now()).await.unwrap();
    assert_eq!(pages.load(Ordering::SeqCst), 2 * PAGES_OF_LABELS, "{edit}: it looked twice");
    report.findings.iter().map(|it| format!("{} {}: {}", it.table, it.id, it.finding)).collect()
}

#[test]
fn what_is_so_no_more_at_the_second_look_is_no_finding() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let original = Original::shared(&runtime);
    for (edit, undo) in [
        // Rows that are missing, one that bears no seal, and labels, which are no rows.
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
        let stayed = runtime.block_on(found_once(&original, edit, ""));
        assert!(!stayed.is_empty(), "{edit}: nobody noticed");
        assert_eq!(runtime.block_on(found_once(&original, edit, undo)), [""; 0], "{edit}: it was put right");
    }
}
