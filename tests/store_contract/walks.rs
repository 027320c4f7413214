//! The contract of a walk: it returns every row and label as of one moment.

use countersign_store::change::{ChangeSet, RowWrite};
use countersign_store::label::{Label, LabelChange, Labels};
use countersign_store::row::{Facets, SealedRow, Table};
use countersign_store::{LIST_ROWS_MAX, ScanPage, Store};

use crate::database::{TestDatabase, change, insert, next, over, remove, sealed};

/// Rows of a table that a walk comes by early, of one that it comes by late, and what is met in between on several pages.
fn filling() -> Vec<SealedRow> {
    let rows = |table, count: u32| (0..count).map(move |at| sealed(table, &format!("{at:04}"), Facets::default(), 1));
    let many = LIST_ROWS_MAX + 3;
    rows(Table::Threads, 2).chain(rows(Table::Holds, many)).chain(rows(Table::Log, 2)).collect()
}

fn labels() -> Vec<Label> {
    let words = ["all", "some"].map(str::to_owned).into();
    Labels { due: 7, words }.on(Table::Holds, "0001").into_iter().collect()
}

async fn fill(store: &dyn Store) -> Vec<SealedRow> {
    let rows = filling();
    let labels = labels().into_iter().map(LabelChange::Put).collect();
    store.commit(ChangeSet { labels, ..insert(&rows.iter().collect::<Vec<_>>()) }).await.unwrap();
    rows
}

/// Everything that is met, and what is done as soon as anything was.
async fn walked(store: &dyn Store, mut then: impl FnMut() + Send) -> (Vec<SealedRow>, Vec<Label>) {
    let (mut rows, mut labels, mut pages) = (Vec::new(), Vec::new(), 0);
    let mut meet = |page| {
        match page {
            ScanPage::Rows(page) => {
                assert!(labels.is_empty() && (1..=LIST_ROWS_MAX as usize).contains(&page.len()));
                assert!(page.iter().all(|it| it.table == page[0].table));
                rows.extend(page);
            }
            // A new database has one of its own, on no row.
            ScanPage::Labels(page) => labels.extend(page.into_iter().filter(|it| it.kept_in != "labels")),
        }
        pages += 1;
        if pages == 1 {
            then();
        }
    };
    store.walk(&mut meet).await.unwrap();
    (rows, labels)
}

fn in_order(mut rows: Vec<SealedRow>) -> Vec<SealedRow> {
    let place = |table: Table| Table::ALL.iter().position(|it| *it == table);
    rows.sort_by(|one, other| (place(one.table), &one.id).cmp(&(place(other.table), &other.id)));
    rows
}

pub async fn a_walk_comes_by_every_row_and_label_in_order(database: TestDatabase) {
    let store = database.open().await;
    assert_eq!(walked(&*store, || ()).await, (Vec::new(), Vec::new()));
    let rows = fill(&*store).await;
    let (met, labelled) = walked(&*store, || ()).await;
    assert!(met == in_order(rows), "not what is there, or in another order");
    assert_eq!(labelled, labels());
}

pub async fn a_walk_sees_one_moment_whatever_is_committed_meanwhile(database: TestDatabase) {
    let store = database.open().await;
    let rows = in_order(fill(&*store).await);
    let (first, last) = (&rows[0], rows.last().unwrap());
    let of_holds: Vec<&SealedRow> = rows.iter().filter(|it| it.table == Table::Holds).collect();
    // In tables and pages that were met, and in those that were not.
    let new = [Table::Threads, Table::Holds, Table::Log].map(|it| sealed(it, "new", Facets::default(), 1));
    let (begin, end) = (of_holds[0], of_holds[of_holds.len() - 1]);
    let mut writes = remove(last).writes;
    writes.extend([first, begin, end].map(|it| over(it, next(it, r#"{"a":"other"}"#))));
    writes.extend(new.into_iter().map(RowWrite::Insert));
    let meanwhile =
        ChangeSet { labels: labels().into_iter().map(LabelChange::Remove).collect(), ..change(Vec::new(), writes) };
    let runtime = tokio::runtime::Handle::current();
    let mut meanwhile = Some(meanwhile);
    let commit = || {
        let done = store.commit(meanwhile.take().unwrap());
        tokio::task::block_in_place(|| runtime.block_on(done)).unwrap();
    };
    let (met, labelled) = walked(&*store, commit).await;
    assert!(met == rows, "it met what was committed meanwhile, or missed what was removed");
    assert_eq!(labelled, labels());
    let (met, labelled) = walked(&*store, || ()).await;
    assert_eq!((met.len(), labelled.len()), (rows.len() - 1 + 3, 0), "the next walk sees it");
}
