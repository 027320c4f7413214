//! The contract of labels: they change together with their row, and lists by label are ordered in both directions.

use countersign_store::change::ChangeSet;
use countersign_store::label::{Label, LabelChange, Labels};
use countersign_store::row::{Facets, SealedRow, Table};
use countersign_store::{Cursor, Direction, LIST_ROWS_MAX, Store, StoreError};

use crate::database::{TestDatabase, insert, next, replace, sealed, unchanged};

/// Moments that repeat, and ids that any collation but that of bytes would order otherwise.
const ROWS: [(&str, i64); 6] = [("b", 7), ("a", 7), ("Z", -5), ("é", 0), ("_", 7), ("0", i64::MAX - 1)];

fn labelled(id: &str, words: &[&str], due: i64) -> (SealedRow, Vec<LabelChange>) {
    let facets = Facets { alias: Some(format!("alias of {id}")), ..Facets::default() };
    let words = words.iter().map(|it| (*it).to_owned()).collect();
    let labels = Labels { due, words }.on(Table::Holds, id).into_iter().map(LabelChange::Put);
    (sealed(Table::Holds, id, facets, 1), labels.collect())
}

fn with(change: ChangeSet, labels: Vec<LabelChange>) -> ChangeSet {
    ChangeSet { labels, ..change }
}

async fn fill(store: &dyn Store) {
    for (id, due) in ROWS {
        let (row, labels) = labelled(id, &["all", if due == 7 { "seven" } else { "other" }], due);
        store.commit(with(insert(&[&row]), labels)).await.unwrap();
    }
}

async fn ids(store: &dyn Store, word: &str, direction: Direction, after: Option<&Cursor>, limit: u32) -> Vec<String> {
    let found = store.labelled(Table::Holds, word, direction, after, limit).await.unwrap();
    found.into_iter().map(|it| it.row.id).collect()
}

pub async fn lists_by_a_label_are_in_order_either_way_and_page(database: TestDatabase) {
    let store = database.open().await;
    fill(&*store).await;
    let whole = ["Z", "é", "_", "a", "b", "0"];
    assert_eq!(ids(&*store, "all", Direction::Forward, None, 100).await, whole);
    assert_eq!(ids(&*store, "seven", Direction::Forward, None, 100).await, ["_", "a", "b"]);
    assert_eq!(ids(&*store, "nothing", Direction::Forward, None, 100).await, [""; 0]);
    for direction in [Direction::Forward, Direction::Backward] {
        let mut expected: Vec<&str> = whole.to_vec();
        if direction == Direction::Backward {
            expected.reverse();
        }
        for size in [1, 2, 5] {
            let (mut pages, mut after): (Vec<String>, Option<Cursor>) = (Vec::new(), None);
            loop {
                let page = store.labelled(Table::Holds, "all", direction, after.as_ref(), size).await.unwrap();
                let Some(last) = page.last() else { break };
                after = Some(Cursor { due: last.due, id: last.row.id.clone() });
                pages.extend(page.into_iter().map(|it| it.row.id));
            }
            assert_eq!(pages, expected, "{direction:?} by {size}");
        }
    }
}

pub async fn a_row_is_found_whole_with_the_moment_of_its_label(database: TestDatabase) {
    let store = database.open().await;
    let (row, labels) = labelled("one", &["word"], 12);
    store.commit(with(insert(&[&row]), labels)).await.unwrap();
    let found = store.labelled(Table::Holds, "word", Direction::Forward, None, 1).await.unwrap().remove(0);
    assert_eq!((found.due, found.row), (12, row));
}

pub async fn labels_come_and_go_with_their_change_or_not_at_all(database: TestDatabase) {
    let store = database.open().await;
    let (row, labels) = labelled("one", &["old", "both"], 1);
    store.commit(with(insert(&[&row]), labels.clone())).await.unwrap();
    // Once more, and one that is not there: nothing comes of it.
    let remove = |word: &str, due| {
        let label = Label { kept_in: "holds".to_owned(), word: word.to_owned(), due, id: "one".to_owned() };
        LabelChange::Remove(label)
    };
    let again = ChangeSet { labels: [labels, vec![remove("old", 2)]].concat(), ..insert(&[]) };
    store.commit(again).await.unwrap();
    let new = |due| labelled("one", &["new"], due).1;
    let moved = [vec![remove("old", 1)], new(5)].concat();
    let second = next(&row, "{}");
    store.commit(with(replace(&row, second.clone()), moved.clone())).await.unwrap();
    for (word, expected) in [("old", 0), ("both", 1), ("new", 1)] {
        assert_eq!(ids(&*store, word, Direction::Forward, None, 9).await.len(), expected, "{word}");
    }
    // The same change again is a conflict, and what it would do to labels is not done either.
    let late = with(replace(&row, next(&row, "[]")), [vec![remove("both", 1)], new(6)].concat());
    assert!(matches!(store.commit(late).await, Err(StoreError::Conflict(_))));
    let late = ChangeSet { guards: vec![unchanged(&row)], labels: new(7), ..insert(&[]) };
    assert!(matches!(store.commit(late).await, Err(StoreError::Conflict(_))));
    let all = store.labels(None, 100).await.unwrap();
    let ours: Vec<(&str, i64)> = all.iter().filter(|it| it.kept_in == "holds").map(|it| (&*it.word, it.due)).collect();
    assert_eq!(ours, [("both", 1), ("new", 5)]);
}

pub async fn a_label_without_its_row_takes_no_place_on_a_page(database: TestDatabase) {
    let store = database.open().await;
    fill(&*store).await;
    database.intrude().await.run("DELETE FROM holds WHERE id IN ('Z', 'é', '_')").await;
    assert_eq!(ids(&*store, "all", Direction::Forward, None, 2).await, ["a", "b"]);
    assert_eq!(ids(&*store, "all", Direction::Backward, None, 100).await, ["0", "b", "a"]);
}

pub async fn labels_are_told_whole_and_in_order(database: TestDatabase) {
    let store = database.open().await;
    fill(&*store).await;
    let whole = store.labels(None, 100).await.unwrap();
    let mut sorted = whole.clone();
    sorted.sort();
    assert_eq!(whole, sorted);
    // Those of a new database say that all its rows bear theirs.
    assert_eq!(whole.len(), 2 * ROWS.len() + 1);
    let (mut pages, mut after): (Vec<Label>, Option<Label>) = (Vec::new(), None);
    while let Some(last) = {
        pages.extend(store.labels(after.as_ref(), 3).await.unwrap());
        pages.last().cloned()
    } {
        if after.as_ref() == Some(&last) {
            break;
        }
        after = Some(last);
    }
    assert_eq!(pages, whole);
}

pub async fn rows_are_found_by_the_beginning_of_their_alias(database: TestDatabase) {
    let store = database.open().await;
    fill(&*store).await;
    let found = async |prefix: &str, limit| -> Vec<String> {
        let rows = store.by_alias_prefix(Table::Holds, prefix, limit).await.unwrap();
        rows.into_iter().map(|it| it.id).collect()
    };
    assert_eq!(found("alias of ", 100).await, ["0", "Z", "_", "a", "b", "é"]);
    assert_eq!(found("alias of ", 2).await, ["0", "Z"]);
    assert_eq!(found("alias of a", 9).await, ["a"]);
    assert_eq!(found("alias of %", 9).await, [""; 0]);
    assert_eq!(found("a\0", 9).await, [""; 0]);
}

pub async fn where_there_are_no_labels_none_is_looked_for(database: TestDatabase) {
    let store = database.open().await;
    for table in Table::ALL {
        let listed = store.labelled(*table, "word", Direction::Forward, None, LIST_ROWS_MAX).await;
        assert_eq!(listed.is_ok(), table.is_labelled(), "{}", table.name());
    }
}
