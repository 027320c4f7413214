//! The contract of lists and look-ups.

use countersign_domain::primitives::time::Timestamp;
use countersign_store::row::{Facets, SealedRow, Table};
use countersign_store::{Cursor, LIST_ROWS_MAX, RowFilter, Store, StoreError};

use crate::database::{TestDatabase, insert, named_row, row, sealed};

/// Spread over bytes of one to four, upper and lower case, digits and punctuation: any collation but that of
/// bytes would order them otherwise.
const IDS: [&str; 16] = ["", "-", "0", "10", "9", "A", "Z", "_", "a", "a b", "a-b", "ab", "z", "Ä", "é", "日本"];

fn due_row(id: &str, state: &str, due: i64) -> SealedRow {
    let facets = Facets { owner: format!("owner of {state}"), state: state.to_owned(), due, ..Facets::default() };
    sealed(Table::Holds, id, facets, 1)
}

async fn ids(store: &dyn Store, filter: RowFilter<'_>, after: Option<&Cursor>, limit: u32) -> Vec<String> {
    let rows = store.list(Table::Holds, filter, after, limit).await.unwrap();
    rows.into_iter().map(|row| row.id).collect()
}

/// Three states, and due moments that repeat.
async fn fill(store: &dyn Store) -> Vec<SealedRow> {
    let mut rows = Vec::new();
    for (at, id) in IDS.iter().enumerate() {
        for (number, state) in ["open", "öffnen", "Open"].iter().enumerate() {
            let due = [-5, 0, 7][(at + number) % 3];
            rows.push(due_row(&format!("{id}.{number}"), state, due));
        }
    }
    store.commit(insert(&rows.iter().collect::<Vec<_>>())).await.unwrap();
    rows
}

pub async fn lists_come_in_the_order_of_bytes(database: TestDatabase) {
    let store = database.open().await;
    let mut rows = fill(&*store).await;
    rows.sort_by(|a, b| a.id.as_bytes().cmp(b.id.as_bytes()));
    let expected = |keep: &dyn Fn(&SealedRow) -> bool| -> Vec<String> {
        rows.iter().filter(|row| keep(row)).map(|row| row.id.clone()).collect()
    };
    assert_eq!(ids(&*store, RowFilter::All, None, 100).await, expected(&|_| true));
    let owner = "owner of öffnen";
    assert_eq!(ids(&*store, RowFilter::Owner(owner), None, 100).await, expected(&|row| row.facets.owner == owner));
    rows.sort_by(|a, b| (a.facets.due, a.id.as_bytes()).cmp(&(b.facets.due, b.id.as_bytes())));
    let expected: Vec<&String> = rows.iter().filter(|row| row.facets.state == "open").map(|row| &row.id).collect();
    assert_eq!(ids(&*store, RowFilter::State("open"), None, 100).await.iter().collect::<Vec<_>>(), expected);
}

pub async fn pages_of_any_list_make_up_the_whole(database: TestDatabase) {
    let store = database.open().await;
    fill(&*store).await;
    let filters = [
        RowFilter::All,
        RowFilter::Owner("owner of open"),
        RowFilter::State("öffnen"),
        RowFilter::DueBy("open", Timestamp::from_millis(6)),
    ];
    for filter in filters {
        let whole = store.list(Table::Holds, filter, None, 100).await.unwrap();
        assert!(whole.len() > 9, "{filter:?}");
        for size in [1, 2, 7] {
            let mut pages: Vec<SealedRow> = Vec::new();
            loop {
                let after = pages.last().map(|row| Cursor { due: row.facets.due, id: row.id.clone() });
                let page = store.list(Table::Holds, filter, after.as_ref(), size).await.unwrap();
                assert!(page.len() <= size as usize);
                if page.is_empty() {
                    break;
                }
                pages.extend(page);
            }
            assert_eq!(pages, whole, "{filter:?} by {size}");
        }
    }
}

pub async fn lists_by_due_moment_stop_at_the_moment(database: TestDatabase) {
    let store = database.open().await;
    let rows = [due_row("b", "open", 10), due_row("a", "open", 20), due_row("c", "open", 20), due_row("d", "ended", 5)];
    store.commit(insert(&rows.iter().collect::<Vec<_>>())).await.unwrap();
    for (by, expected) in [(9, ""), (10, "b"), (19, "b"), (20, "bac"), (i64::MAX, "bac")] {
        let found = ids(&*store, RowFilter::DueBy("open", Timestamp::from_millis(by)), None, 10).await;
        assert_eq!(found.concat(), expected, "due by {by}");
    }
}

pub async fn no_list_is_longer_than_the_bound(database: TestDatabase) {
    let store = database.open().await;
    let rows: Vec<SealedRow> = (0..LIST_ROWS_MAX + 1).map(|at| due_row(&format!("{at:05}"), "open", 0)).collect();
    store.commit(insert(&rows.iter().collect::<Vec<_>>())).await.unwrap();
    let bound = LIST_ROWS_MAX as usize;
    let filters = [RowFilter::All, RowFilter::Owner("owner of open"), RowFilter::State("open")];
    for filter in filters {
        assert_eq!(ids(&*store, filter, None, u32::MAX).await.len(), bound);
        assert_eq!(ids(&*store, filter, None, 0).await.len(), 0);
    }
    let all: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
    assert_eq!(store.get_many(Table::Holds, &all[..bound]).await.unwrap().len(), bound);
    assert!(matches!(store.get_many(Table::Holds, &all).await, Err(StoreError::Database(_))));
}

pub async fn an_empty_owner_or_state_belongs_to_no_list(database: TestDatabase) {
    let store = database.open().await;
    let plain = sealed(Table::Holds, "plain", Facets::default(), 1);
    store.commit(insert(&[&plain])).await.unwrap();
    assert_eq!(ids(&*store, RowFilter::All, None, 10).await, ["plain"]);
    let none = [RowFilter::Owner(""), RowFilter::State(""), RowFilter::DueBy("", Timestamp::from_millis(i64::MAX))];
    for filter in none {
        assert!(ids(&*store, filter, None, 10).await.is_empty(), "{filter:?}");
    }
    assert_eq!(store.last_of(Table::Holds, "").await.unwrap(), None);
}

pub async fn the_last_of_an_owner_is_the_last_in_order(database: TestDatabase) {
    let store = database.open().await;
    assert_eq!(store.last_of(Table::Holds, "owner of open").await.unwrap(), None);
    let rows = fill(&*store).await;
    for state in ["open", "öffnen", "Open"] {
        let own = rows.iter().filter(|row| row.facets.state == state);
        let last = own.max_by(|a, b| a.id.as_bytes().cmp(b.id.as_bytes()));
        assert_eq!(store.last_of(Table::Holds, &format!("owner of {state}")).await.unwrap().as_ref(), last);
    }
}

pub async fn rows_are_found_by_alias_and_many_at_once(database: TestDatabase) {
    let store = database.open().await;
    let rows = [named_row("a", "ä"), named_row("b", "é"), row("c")];
    store.commit(insert(&rows.iter().collect::<Vec<_>>())).await.unwrap();
    assert_eq!(store.get_by_alias(Table::Threads, "é").await.unwrap().as_ref(), Some(&rows[1]));
    assert_eq!(store.get_by_alias(Table::Threads, "b").await.unwrap(), None);
    assert_eq!(store.get_by_alias(Table::Holds, "é").await.unwrap(), None);
    let asked = ["c", "absent", "a", "c", "nul\0"].map(str::to_owned);
    let mut found = store.get_many(Table::Threads, &asked).await.unwrap();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(found, [rows[0].clone(), rows[2].clone()]);
    assert!(store.get_many(Table::Threads, &[]).await.unwrap().is_empty());
}

pub async fn names_that_cannot_be_are_not_found(database: TestDatabase) {
    let store = database.open().await;
    store.commit(insert(&[&row("row")])).await.unwrap();
    for name in ["", "nul\0", &"x".repeat(10_000)] {
        assert_eq!(store.get(Table::Threads, name).await.unwrap(), None);
        assert_eq!(store.get_by_alias(Table::Threads, name).await.unwrap(), None);
        assert_eq!(store.last_of(Table::Threads, name).await.unwrap(), None);
        for filter in [RowFilter::Owner(name), RowFilter::State(name)] {
            assert!(store.list(Table::Threads, filter, None, 10).await.unwrap().is_empty());
        }
    }
    let after = Cursor { due: 0, id: "nul\0".to_owned() };
    assert!(store.list(Table::Threads, RowFilter::All, Some(&after), 10).await.unwrap().is_empty());
}

pub async fn a_list_that_no_index_serves_is_refused(database: TestDatabase) {
    let store = database.open().await;
    for table in Table::ALL {
        let due = RowFilter::DueBy("x", Timestamp::from_millis(0));
        for filter in [RowFilter::Owner("x"), RowFilter::State("x"), due] {
            let listed = store.list(*table, filter, None, 10).await;
            assert_eq!(listed.is_ok(), table.is_listed_by_facets(), "{table:?} {filter:?}");
        }
        assert_eq!(store.last_of(*table, "x").await.is_ok(), table.is_listed_by_facets(), "{table:?}");
        assert_eq!(
            store.list(*table, RowFilter::Latest, None, 10).await.is_ok(),
            table.is_listed_by_moment(),
            "{table:?}"
        );
        let by_due = store.list(*table, RowFilter::OwnerByDue("x"), None, 10).await;
        assert_eq!(by_due.is_ok(), table.is_owned_for_a_time(), "{table:?}");
        assert!(store.list(*table, RowFilter::All, None, 10).await.is_ok());
    }
}

pub async fn an_owners_rows_are_listed_by_moment_and_page(database: TestDatabase) {
    let store = database.open().await;
    let row = |id: &str, owner: &str, due| {
        let facets = Facets { owner: owner.to_owned(), due, ..Facets::default() };
        sealed(Table::Sessions, id, facets, 1)
    };
    let own = [row("z", "é", 3), row("y", "é", 7), row("a", "é", 9), row("b", "é", 9), row("c", "é", 1_000_000)];
    let others = [row("d", "e", 3), row("e", "éa", 9), row("f", "", 9)];
    store.commit(insert(&own.iter().rev().chain(&others).collect::<Vec<_>>())).await.unwrap();
    let filter = RowFilter::OwnerByDue("é");
    assert!(store.list(Table::Sessions, RowFilter::OwnerByDue(""), None, 10).await.unwrap().is_empty());
    for (from, first) in [(i64::MIN, 0), (4, 1), (9, 2), (10, 4), (1_000_001, 5)] {
        for size in [1, 2, 10] {
            let (mut pages, mut after) = (Vec::new(), Cursor { due: from, id: String::new() });
            loop {
                let page = store.list(Table::Sessions, filter, Some(&after), size).await.unwrap();
                let Some(last) = page.last() else { break };
                after = Cursor { due: last.facets.due, id: last.id.clone() };
                pages.extend(page);
            }
            assert_eq!(pages, own[first..], "from {from} by {size}");
        }
    }
}

pub async fn lists_of_the_latest_go_backwards_and_page(database: TestDatabase) {
    let store = database.open().await;
    let moments = [7, 3, 3, 1_000_000, 0, 9, 3];
    let named = moments.iter().enumerate();
    let facets = |due: i64| Facets { due, ..Facets::default() };
    let mut rows: Vec<SealedRow> =
        named.map(|(at, due)| sealed(Table::Rejections, &format!("é{at}"), facets(*due), 1)).collect();
    store.commit(insert(&rows.iter().collect::<Vec<_>>())).await.unwrap();
    rows.sort_by(|a, b| (b.facets.due, b.id.as_bytes()).cmp(&(a.facets.due, a.id.as_bytes())));
    for size in [1, 2, 10] {
        let mut pages: Vec<SealedRow> = Vec::new();
        loop {
            let after = pages.last().map(|row| Cursor { due: row.facets.due, id: row.id.clone() });
            let page = store.list(Table::Rejections, RowFilter::Latest, after.as_ref(), size).await.unwrap();
            if page.is_empty() {
                break;
            }
            pages.extend(page);
        }
        assert_eq!(pages, rows, "by {size}");
    }
}
