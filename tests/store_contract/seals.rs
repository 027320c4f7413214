//! The seal detects direct edits of the database.

use countersign_store::row::{Facets, SealedRow, Table};
use countersign_store::{RowFilter, Store, StoreError};

use crate::database::{Intruder, TestDatabase, another_keyring, insert, key, sealed};

async fn only_row(store: &dyn Store, table: Table) -> SealedRow {
    store.list(table, RowFilter::All, None, 10).await.unwrap().remove(0)
}

fn is_unsealed(row: &SealedRow) -> bool {
    matches!(row.open(key()), Err(StoreError::Unsealed(name)) if name == row.table.name())
}

fn full_row(table: Table, id: &str) -> SealedRow {
    let facets =
        Facets { alias: Some(format!("alias of {id}")), owner: "owner".to_owned(), state: "open".to_owned(), due: 5 };
    sealed(table, id, facets, 1)
}

/// How an intruder changes a column. A column that is not known here has no stated outcome, and fails.
fn edits(column: &str, intruder: &Intruder) -> Vec<String> {
    let mac = match intruder {
        Intruder::Sqlite(_) => ["zeroblob(32)", "x''", "substr(mac, 1, 31)"],
        Intruder::Postgres(_) => ["decode(repeat('00', 32), 'hex')", "''::bytea", "substr(mac, 1, 31)"],
    };
    match column {
        // An empty id is no id: such a row is as good as deleted, and the schema refuses it.
        "id" => vec!["id = id || ' '".to_owned(), "id = 'other'".to_owned()],
        "owner" | "state" | "body" | "key_id" => {
            vec![format!("{column} = {column} || ' '"), format!("{column} = ''")]
        }
        "alias" => vec!["alias = alias || ' '".to_owned(), "alias = ''".to_owned(), "alias = NULL".to_owned()],
        "due" | "revision" => vec![format!("{column} = {column} + 1"), format!("{column} = -{column}")],
        "mac" => mac.iter().map(|value| format!("mac = {value}")).collect(),
        other => unreachable!("what an edited {other} does is not stated"),
    }
}

pub async fn a_row_edited_in_any_column_is_unsealed(database: TestDatabase) {
    let store = database.open().await;
    let intruder = database.intrude().await;
    for table in Table::ALL {
        let name = table.name();
        store.commit(insert(&[&full_row(*table, "row")])).await.unwrap();
        intruder.run(&format!("CREATE TABLE kept_{name} AS SELECT * FROM {name}")).await;
        let columns = intruder.columns(*table).await;
        assert_eq!(columns.len(), 9, "{columns:?}");
        for edit in columns.iter().flat_map(|column| edits(column, &intruder)) {
            intruder.run(&format!("UPDATE {name} SET {edit}")).await;
            assert!(is_unsealed(&only_row(&*store, *table).await), "{name}: {edit}");
            intruder.run(&format!("DELETE FROM {name}; INSERT INTO {name} SELECT * FROM kept_{name}")).await;
            assert!(!is_unsealed(&only_row(&*store, *table).await), "{name}");
        }
    }
}

pub async fn rows_that_were_swapped_are_unsealed(database: TestDatabase) {
    let store = database.open().await;
    let intruder = database.intrude().await;
    for table in Table::ALL {
        let rows = [full_row(*table, "one"), full_row(*table, "two")];
        store.commit(insert(&[&rows[0], &rows[1]])).await.unwrap();
        let name = table.name();
        for (from, to) in [("one", "spare"), ("two", "one"), ("spare", "two")] {
            intruder.run(&format!("UPDATE {name} SET id = '{to}' WHERE id = '{from}'")).await;
        }
        for row in store.list(*table, RowFilter::All, None, 10).await.unwrap() {
            assert!(is_unsealed(&row), "{name} {}", row.id);
        }
    }
}

pub async fn a_row_put_into_another_table_is_unsealed(database: TestDatabase) {
    let store = database.open().await;
    let intruder = database.intrude().await;
    store.commit(insert(&[&full_row(Table::Gateway, "row")])).await.unwrap();
    for table in Table::ALL.iter().filter(|it| **it != Table::Gateway) {
        intruder.run(&format!("INSERT INTO {} SELECT * FROM gateway", table.name())).await;
        assert!(is_unsealed(&only_row(&*store, *table).await), "{}", table.name());
    }
}

pub async fn a_row_of_another_key_is_unsealed(database: TestDatabase) {
    let store = database.open().await;
    let other = another_keyring();
    let forged = SealedRow::seal(other.row(), Table::Tokens, "row".to_owned(), Facets::default(), 1, "{}".to_owned());
    store.commit(insert(&[&forged])).await.unwrap();
    let intruder = database.intrude().await;
    assert!(is_unsealed(&only_row(&*store, Table::Tokens).await));
    intruder.run(&format!("UPDATE tokens SET key_id = '{}'", key().id())).await;
    assert!(is_unsealed(&only_row(&*store, Table::Tokens).await));
}
