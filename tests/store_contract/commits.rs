//! What a commit promises.

use countersign::store::StoreError;
use countersign::store::row::{Facets, Table};
use futures_util::future::join_all;

use crate::database::{Database, insert, next, replace, row, sealed};

pub async fn what_was_committed_is_read_back_in_every_column(database: Database) {
    let store = database.open().await;
    for (at, table) in Table::ALL.iter().enumerate() {
        let facets = Facets {
            alias: (at % 2 == 0).then(|| "other name".to_owned()),
            owner: "owner".to_owned(),
            state: "open".to_owned(),
            due: i64::MIN,
        };
        let row = sealed(*table, "größer \"quoted\" 📎", facets, 1);
        store.commit(insert(&[&row])).await.unwrap();
        assert_eq!(store.get(*table, &row.id).await.unwrap().as_ref(), Some(&row));
        let next = next(&row, "{}");
        store.commit(replace(next.clone())).await.unwrap();
        assert_eq!(store.get(*table, &row.id).await.unwrap().as_ref(), Some(&next));
        assert_eq!(next.open(crate::database::key()).unwrap(), "{}");
    }
}

pub async fn of_twenty_racing_replacements_exactly_one_wins(database: Database) {
    let store = database.open().await;
    let first = row("t");
    store.commit(insert(&[&first])).await.unwrap();
    let racers = (0..20).map(|at| store.commit(replace(next(&first, &at.to_string()))));
    let outcomes = join_all(racers).await;
    let won: Vec<usize> = (0..20).filter(|at| outcomes[*at].is_ok()).collect();
    assert_eq!(won.len(), 1);
    let refused = outcomes.iter().filter(|it| matches!(it, Err(StoreError::Conflict("threads")))).count();
    assert_eq!(refused, 19);
    assert_eq!(store.get(Table::Threads, "t").await.unwrap().unwrap().body, won[0].to_string());
}
