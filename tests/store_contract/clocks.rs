//! By whose clock a change is judged.

use std::time::Duration;

use countersign_domain::primitives::time::Timestamp;
use countersign_store::change::{ChangeSet, Precondition, RowWrite};
use countersign_store::{CLOCK_SKEW_MILLIS_MAX, StoreError};

use crate::database::{TestDatabase, change, now, row};

const MINUTE: Duration = Duration::from_secs(60);

fn before(moment: Timestamp, decided_at: Timestamp, id: &str) -> ChangeSet {
    let guards = vec![Precondition::Before(moment)];
    ChangeSet { decided_at, ..change(guards, vec![RowWrite::Insert(row(id))]) }
}

pub async fn a_change_is_refused_from_its_deadline_on_by_the_databases_clock(database: TestDatabase) {
    let store = database.open().await;
    let deadline = now().plus(MINUTE);
    store.commit(before(deadline, now(), "in time")).await.unwrap();
    let passed = store.commit(before(Timestamp::from_millis(now().millis() - 1), now(), "passed")).await;
    assert!(matches!(passed, Err(StoreError::TooLate)), "{passed:?}");
    // A minute later the gateway says so too; that it still asks does not help it.
    database.offset.set_millis(60_000);
    let later = now().plus(MINUTE);
    let passed = store.commit(before(deadline, later, "a minute later")).await;
    assert!(matches!(passed, Err(StoreError::TooLate)), "{passed:?}");
    store.commit(before(deadline.plus(MINUTE), later, "later, in time")).await.unwrap();
    for (id, kept) in [("in time", true), ("passed", false), ("a minute later", false), ("later, in time", true)] {
        let found = store.get(countersign_store::row::Table::Threads, id).await.unwrap();
        assert_eq!(found.is_some(), kept, "{id}");
    }
}

pub async fn a_gateway_whose_clock_is_off_is_refused_either_way(database: TestDatabase) {
    let store = database.open().await;
    let decided = |offset: i64, id: &str| {
        let decided_at = Timestamp::from_millis(now().millis() + offset);
        ChangeSet { decided_at, ..change(Vec::new(), vec![RowWrite::Insert(row(id))]) }
    };
    // Room for the commit itself, on a machine that has much else to do: how long it waited is not the clocks' fault.
    // The unit tests of the check cover the exact limit.
    const ROOM: i64 = 1_500;
    store.commit(decided(-CLOCK_SKEW_MILLIS_MAX + ROOM, "a little behind")).await.unwrap();
    store.commit(decided(CLOCK_SKEW_MILLIS_MAX - ROOM, "a little ahead")).await.unwrap();
    for offset in [-CLOCK_SKEW_MILLIS_MAX - ROOM, CLOCK_SKEW_MILLIS_MAX + ROOM] {
        let refused = store.commit(decided(offset, "far off")).await;
        assert!(matches!(refused, Err(StoreError::ClockSkew)), "{offset}: {refused:?}");
    }
    database.offset.set_millis(60_000);
    assert!(matches!(store.commit(decided(0, "the other is off")).await, Err(StoreError::ClockSkew)));
    store.commit(decided(60_000, "both agree")).await.unwrap();
}

pub async fn the_store_tells_the_databases_time(database: TestDatabase) {
    let store = database.open().await;
    let (earliest, told, latest) = (now(), store.now().await.unwrap(), now());
    assert!(earliest.millis() <= told.millis() + 1 && told <= latest, "{earliest} {told} {latest}");
    database.offset.set_millis(-3_600_000);
    let told = store.now().await.unwrap();
    assert!(told.plus(MINUTE * 60) >= earliest && told < earliest, "{told}");
}
