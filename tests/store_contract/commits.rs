//! The contract of commits.

use countersign_store::change::RowWrite;
use countersign_store::row::{Facets, SealedRow, Table};
use countersign_store::{Store, StoreError};
use futures_util::future::join_all;

use crate::database::{
    TestDatabase, change, insert, key, named_row, next, over, remove, replace, row, sealed, unchanged,
};

async fn there(store: &dyn Store, row: &SealedRow) -> bool {
    store.get(row.table, &row.id).await.unwrap().as_ref() == Some(row)
}

pub async fn what_was_committed_is_read_back_in_every_column(database: TestDatabase) {
    let store = database.open().await;
    for (at, table) in Table::ALL.iter().enumerate() {
        let alias = (at % 2 == 0).then(|| "other name".to_owned());
        let facets = Facets { alias, owner: "owner".to_owned(), state: "open".to_owned(), due: i64::MIN };
        let row = sealed(*table, "größer \"quoted\" 📎", facets, 1);
        store.commit(insert(&[&row])).await.unwrap();
        assert!(there(&*store, &row).await);
        let mut next = next(&row, "{}");
        next.facets.due = i64::MAX;
        let next = SealedRow::seal(key(), next.table, next.id, next.facets, next.revision, next.body);
        store.commit(replace(&row, next.clone())).await.unwrap();
        assert!(there(&*store, &next).await);
        assert_eq!(next.open(key()).unwrap(), "{}");
    }
}

pub async fn what_was_committed_is_there_when_the_store_is_opened_again(database: TestDatabase) {
    let (first, second) = (row("first"), row("second"));
    let store = database.open().await;
    store.commit(insert(&[&first, &second])).await.unwrap();
    let (written, first) = (first.clone(), next(&first, "{}"));
    store.commit(replace(&written, first.clone())).await.unwrap();
    store.commit(remove(&second)).await.unwrap();
    drop(store);
    let store = database.open().await;
    assert!(there(&*store, &first).await);
    assert_eq!(store.get(Table::Threads, "second").await.unwrap(), None);
}

pub async fn a_change_of_many_rows_and_large_bodies_is_kept(database: TestDatabase) {
    let store = database.open().await;
    let body = format!("\"{}\"", "ä\u{1F4CE}x".repeat(150_000));
    let large = SealedRow::seal(key(), Table::States, "large".to_owned(), Facets::default(), 1, body);
    let many: Vec<SealedRow> = (0..2_000).map(|at| row(&format!("row {at:05}"))).collect();
    let all: Vec<&SealedRow> = many.iter().chain([&large]).collect();
    store.commit(insert(&all)).await.unwrap();
    assert!(there(&*store, &large).await);
    assert!(there(&*store, &many[0]).await && there(&*store, &many[1_999]).await);
}

pub async fn of_a_change_that_is_refused_nothing_is_kept(database: TestDatabase) {
    let store = database.open().await;
    let taken = row("taken");
    store.commit(insert(&[&taken])).await.unwrap();
    let event = sealed(Table::Events, "event", Facets::default(), 1);
    let holds = sealed(Table::Holds, "hold", Facets::default(), 1);
    let refused = store.commit(insert(&[&event, &row("taken"), &holds])).await;
    assert!(matches!(refused, Err(StoreError::Conflict("threads"))), "{refused:?}");
    assert!(!there(&*store, &event).await && !there(&*store, &holds).await && there(&*store, &taken).await);
}

pub async fn a_failure_in_the_middle_leaves_no_trace_and_quotes_no_content(database: TestDatabase) {
    let store = database.open().await;
    let before = row("before");
    store.commit(insert(&[&before])).await.unwrap();
    database.intrude().await.poison_events("poison").await;
    let outbox = sealed(Table::Outbox, "outbox", Facets::default(), 1);
    let body = "\"a secret\"".to_owned();
    let poison = SealedRow::seal(key(), Table::Events, "poison".to_owned(), Facets::default(), 1, body);
    let log = sealed(Table::Log, "log", Facets::default(), 1);
    let mut writes = vec![over(&before, next(&before, "half done"))];
    writes.extend([&outbox, &poison, &log].map(|row| RowWrite::Insert(row.clone())));
    let failed = store.commit(change(Vec::new(), writes)).await.unwrap_err();
    assert!(matches!(failed, StoreError::Database(_)) && !failed.to_string().contains("secret"), "{failed}");
    assert!(there(&*store, &before).await);
    for row in [&outbox, &poison, &log] {
        assert_eq!(store.get(row.table, &row.id).await.unwrap(), None);
    }
}

pub async fn a_change_that_fails_or_is_refused_harms_no_other_in_its_group(database: TestDatabase) {
    let store = database.open().await;
    let taken = row("taken");
    store.commit(insert(&[&taken])).await.unwrap();
    database.intrude().await.poison_events("poison").await;
    let poison = sealed(Table::Events, "poison", Facets::default(), 1);
    let good: Vec<SealedRow> = (0..60).map(|at| row(&format!("good {at:02}"))).collect();
    let spoiled: Vec<SealedRow> = (0..60).map(|at| row(&format!("spoiled {at:02}"))).collect();
    let commits = good.iter().zip(&spoiled).enumerate().map(|(at, (good, spoiled))| {
        let stop = if at == 30 { &poison } else { &taken };
        [store.commit(insert(&[good])), store.commit(insert(&[spoiled, stop]))]
    });
    let outcomes = join_all(commits.flatten()).await;
    for (at, pair) in outcomes.chunks(2).enumerate() {
        assert!(pair[0].is_ok(), "{:?}", pair[0]);
        match &pair[1] {
            Err(StoreError::Database(_)) => assert_eq!(at, 30),
            refused => assert!(matches!(refused, Err(StoreError::Conflict("threads"))), "{refused:?}"),
        }
    }
    for (good, spoiled) in good.iter().zip(&spoiled) {
        assert!(there(&*store, good).await);
        assert!(!there(&*store, spoiled).await);
    }
}

pub async fn a_guard_holds_only_for_the_row_as_it_was_read(database: TestDatabase) {
    let store = database.open().await;
    let first = row("relied on");
    let relying = |guarded: &SealedRow, id: &str| change(vec![unchanged(guarded)], vec![RowWrite::Insert(row(id))]);
    let absent = store.commit(relying(&first, "too soon")).await;
    assert!(matches!(absent, Err(StoreError::Conflict("threads"))), "{absent:?}");
    store.commit(insert(&[&first])).await.unwrap();
    store.commit(relying(&first, "in time")).await.unwrap();
    let second = next(&first, "{}");
    store.commit(replace(&first, second.clone())).await.unwrap();
    let changed = store.commit(relying(&first, "too late")).await;
    assert!(matches!(changed, Err(StoreError::Conflict("threads"))), "{changed:?}");
    let alike = SealedRow { mac: vec![0; 32], ..second.clone() };
    let alike = store.commit(relying(&alike, "another of that revision")).await;
    assert!(matches!(alike, Err(StoreError::Conflict("threads"))), "{alike:?}");
    store.commit(remove(&second)).await.unwrap();
    assert!(matches!(store.commit(relying(&second, "gone")).await, Err(StoreError::Conflict("threads"))));
    for (id, kept) in [
        ("too soon", false),
        ("in time", true),
        ("too late", false),
        ("another of that revision", false),
        ("gone", false),
    ] {
        assert_eq!(there(&*store, &row(id)).await, kept, "{id}");
    }
}

pub async fn a_replacement_needs_the_row_as_it_was_read(database: TestDatabase) {
    let store = database.open().await;
    let first = row("row");
    let second = next(&first, "{}");
    let absent = store.commit(replace(&first, second.clone())).await;
    assert!(matches!(absent, Err(StoreError::Conflict("threads"))), "{absent:?}");
    store.commit(insert(&[&first])).await.unwrap();
    for other in [second.clone(), SealedRow { mac: vec![0; 32], ..first.clone() }] {
        let stale = store.commit(replace(&other, next(&other, "{}"))).await;
        assert!(matches!(stale, Err(StoreError::Conflict("threads"))), "{stale:?}");
    }
    let skipping = store.commit(replace(&first, next(&second, "{}"))).await;
    assert!(matches!(skipping, Err(StoreError::Database(_))), "{skipping:?}");
    assert!(there(&*store, &first).await);
    store.commit(change(vec![unchanged(&first)], vec![over(&first, second)])).await.unwrap();
}

pub async fn a_replacement_moves_whatever_the_row_is_found_by(database: TestDatabase) {
    let store = database.open().await;
    let mut standing = row("row");
    store.commit(insert(&[&standing])).await.unwrap();
    let moves: [fn(&mut Facets); 6] = [
        |_| (),
        |it| it.alias = Some("alias".to_owned()),
        |it| it.owner = "another".to_owned(),
        |it| it.state = "open".to_owned(),
        |it| it.due = 7,
        |it| it.alias = None,
    ];
    for (at, move_on) in moves.iter().enumerate() {
        let mut facets = standing.facets.clone();
        move_on(&mut facets);
        let moved = sealed(Table::Threads, "row", facets, standing.revision + 1);
        store.commit(replace(&standing, moved.clone())).await.unwrap();
        assert!(there(&*store, &moved).await, "move {at}");
        standing = moved;
    }
}

pub async fn an_id_is_given_once(database: TestDatabase) {
    let store = database.open().await;
    let first = row("row");
    store.commit(insert(&[&first])).await.unwrap();
    let again = store.commit(insert(&[&named_row("row", "other")])).await;
    assert!(matches!(again, Err(StoreError::Conflict("threads"))), "{again:?}");
    let elsewhere = sealed(Table::Holds, "row", Facets::default(), 1);
    store.commit(insert(&[&elsewhere])).await.unwrap();
    assert!(there(&*store, &first).await && there(&*store, &elsewhere).await);
}

pub async fn an_alias_is_given_once(database: TestDatabase) {
    let store = database.open().await;
    let (first, second) = (named_row("first", "alias"), named_row("second", "other"));
    store.commit(insert(&[&first, &second])).await.unwrap();
    let inserted = store.commit(insert(&[&named_row("third", "alias")])).await;
    assert!(matches!(inserted, Err(StoreError::Conflict("threads"))), "{inserted:?}");
    let facets = |alias: &str| Facets { alias: Some(alias.to_owned()), ..Facets::default() };
    let replaced = store.commit(replace(&second, sealed(Table::Threads, "second", facets("alias"), 2))).await;
    assert!(matches!(replaced, Err(StoreError::Conflict("threads"))), "{replaced:?}");
    let twice = store.commit(insert(&[&named_row("a", "new"), &named_row("b", "new")])).await;
    assert!(matches!(twice, Err(StoreError::Conflict("threads"))), "{twice:?}");
    // Its own alias is no obstacle to a row, another table's none to anybody, and one given up is free.
    store.commit(replace(&first, next(&first, "{}"))).await.unwrap();
    store.commit(insert(&[&sealed(Table::Holds, "hold", facets("alias"), 1)])).await.unwrap();
    store.commit(replace(&second, sealed(Table::Threads, "second", facets("moved"), 2))).await.unwrap();
    store.commit(insert(&[&named_row("third", "other")])).await.unwrap();
    assert_eq!(store.get_by_alias(Table::Threads, "other").await.unwrap().unwrap().id, "third");
}

pub async fn a_row_that_was_removed_is_gone_and_its_names_are_free(database: TestDatabase) {
    let store = database.open().await;
    let first = named_row("row", "alias");
    store.commit(insert(&[&first])).await.unwrap();
    let second = next(&first, "{}");
    store.commit(replace(&first, second.clone())).await.unwrap();
    assert!(matches!(store.commit(remove(&first)).await, Err(StoreError::Conflict("threads"))));
    store.commit(remove(&second)).await.unwrap();
    assert_eq!(store.get(Table::Threads, "row").await.unwrap(), None);
    assert_eq!(store.get_by_alias(Table::Threads, "alias").await.unwrap(), None);
    assert!(matches!(store.commit(remove(&second)).await, Err(StoreError::Conflict("threads"))));
    store.commit(insert(&[&first])).await.unwrap();
    assert!(there(&*store, &first).await);
}

pub async fn what_no_database_could_keep_is_refused(database: TestDatabase) {
    let store = database.open().await;
    let facets = Facets::default;
    let seal = |id: &str, facets: Facets, revision: i64, body: &str| {
        SealedRow::seal(key(), Table::Threads, id.to_owned(), facets, revision, body.to_owned())
    };
    let long = "x".repeat(1_025);
    for bad in [
        seal("", facets(), 1, "{}"),
        seal("nul\0", facets(), 1, "{}"),
        seal(&long, facets(), 1, "{}"),
        seal("a", Facets { alias: Some("nul\0".to_owned()), ..facets() }, 1, "{}"),
        seal("b", Facets { alias: Some(long.clone()), ..facets() }, 1, "{}"),
        seal("c", Facets { owner: long.clone(), ..facets() }, 1, "{}"),
        seal("d", Facets { state: "nul\0".to_owned(), ..facets() }, 1, "{}"),
        seal("e", facets(), 1, "\"nul\0\""),
        seal("f", facets(), 0, "{}"),
    ] {
        let refused = store.commit(insert(&[&row("beside"), &bad])).await;
        assert!(matches!(refused, Err(StoreError::Database(_))), "{bad:?}: {refused:?}");
    }
    let twice = store.commit(insert(&[&row("beside"), &row("beside")])).await;
    assert!(matches!(twice, Err(StoreError::Database(_))), "{twice:?}");
    let too_many: Vec<SealedRow> = (0..5_000).map(|at| row(&format!("{at}"))).collect();
    assert!(store.commit(insert(&too_many.iter().collect::<Vec<_>>())).await.is_err());
    assert_eq!(store.get(Table::Threads, "beside").await.unwrap(), None);
}
