//! The checks of changes for both databases. They share this code so that they cannot diverge.

use std::collections::HashSet;
use std::time::Duration;

use countersign_domain::primitives::time::Timestamp;

use super::change::{ChangeSet, Precondition, RowWrite};
use super::label::LabelChange;
use super::row::{Seal, SealedRow, Table};
use super::{CLOCK_SKEW_MILLIS_MAX, Cursor, Direction, LIST_ROWS_MAX, RowFilter, StoreError};

/// The length limit of names on both databases. PostgreSQL limits an index entry to a third of a page, and real names
/// are far shorter.
pub const NAME_BYTES_MAX: usize = 1_024;

/// The limit of rows per change, because all rows of a change are locked at once. The sequencer's batches are the
/// largest changes.
pub const CHANGE_ROWS_MAX: usize = 4_096;

/// The rows inside the transaction, protected by locks or by the only writer.
pub(super) trait LockedRows {
    /// Returns the seal of a row, if it exists.
    fn seal(&mut self, table: Table, id: &str) -> Result<Option<Seal>, StoreError>;

    /// Returns the id of the row with an alias, if there is one.
    fn holder(&mut self, table: Table, alias: &str) -> Result<Option<String>, StoreError>;
}

/// The time of a check.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckTime {
    /// The time of the database's clock after the locks were taken.
    pub(super) now: Timestamp,
    /// The time that the change has been in the store.
    pub(super) waited: Duration,
}

impl RowWrite {
    pub(super) fn name(&self) -> (Table, &str) {
        match self {
            Self::Insert(row) | Self::Replace { row, .. } => (row.table, &row.id),
            Self::Remove { table, id, .. } => (*table, id),
        }
    }

    /// Returns the seal that the row must have, or `None` for a new row.
    pub(super) fn expected(&self) -> Option<&Seal> {
        match self {
            Self::Insert(_) => None,
            Self::Replace { over: seal, .. } | Self::Remove { seal, .. } => Some(seal),
        }
    }

    fn row(&self) -> Option<&SealedRow> {
        match self {
            Self::Insert(row) | Self::Replace { row, .. } => Some(row),
            Self::Remove { .. } => None,
        }
    }
}

impl ChangeSet {
    /// Returns the aliases that must be free or belong to the row itself.
    pub(super) fn aliases(&self) -> impl Iterator<Item = (Table, &str, &str)> {
        let rows = self.writes.iter().filter_map(RowWrite::row);
        rows.filter_map(|row| row.facets.alias.as_deref().map(|alias| (row.table, alias, row.id.as_str())))
    }
}

/// Refuses, before queuing, changes that a database cannot apply or that the two databases would handle differently.
pub(super) fn well_formed(change: &ChangeSet) -> Result<(), StoreError> {
    if change.writes.len() + change.guards.len() + change.labels.len() > CHANGE_ROWS_MAX {
        return Err(StoreError::Database(format!("a change of more than {CHANGE_ROWS_MAX} rows")));
    }
    let mut names = HashSet::with_capacity(change.writes.len());
    for write in &change.writes {
        let (table, id) = write.name();
        // The result would depend on the order of the writes.
        if !names.insert((table, id)) {
            return Err(StoreError::Database(format!("a change writes one row of {} twice", table.name())));
        }
        if !write.row().is_none_or(can_be_kept) {
            return Err(StoreError::Database(format!("a row of {} has a form that cannot be stored", table.name())));
        }
    }
    for label in change.labels.iter().map(LabelChange::label) {
        if ![&label.kept_in, &label.word, &label.id].iter().all(|it| can_be_asked(it)) {
            return Err(StoreError::Database("a label has a form that cannot be stored".to_owned()));
        }
    }
    let mut aliases = HashSet::new();
    for (table, alias, _) in change.aliases() {
        // Two new rows of one change must not share an alias either.
        if !aliases.insert((table, alias)) {
            return Err(StoreError::Conflict(table.name()));
        }
    }
    Ok(())
}

/// Checks that a row can be stored. PostgreSQL does not store NUL in text, and no database should index a very long
/// name.
fn can_be_kept(row: &SealedRow) -> bool {
    let alias = row.facets.alias.as_deref().unwrap_or_default();
    // These columns are indexed or compared.
    let names = [&row.id, alias, &row.facets.owner, &row.facets.state, &row.key_id];
    !row.id.is_empty() && row.revision >= 1 && names.iter().all(|it| can_be_asked(it)) && !row.body.contains('\0')
}

/// Checks that a row could have this name. A request for an impossible name finds nothing.
pub(super) fn can_be_asked(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX && !name.contains('\0')
}

/// Checks that a list can have rows. Returns an error for lists that no index serves.
pub(super) fn can_be_listed(table: Table, filter: RowFilter<'_>, after: Option<&Cursor>) -> Result<bool, StoreError> {
    let word = match filter {
        RowFilter::All => "",
        RowFilter::Latest if table.is_listed_by_moment() => "",
        RowFilter::Latest => {
            return Err(StoreError::Database(format!("rows of {} cannot be listed by due time", table.name())));
        }
        RowFilter::OwnerByDue(word) if table.is_owned_for_a_time() => word,
        RowFilter::OwnerByDue(_) => {
            return Err(StoreError::Database(format!(
                "rows of {} cannot be listed by owner and due time",
                table.name()
            )));
        }
        RowFilter::Owner(word) | RowFilter::State(word) | RowFilter::DueBy(word, _) => {
            listed_by_facets(table)?;
            word
        }
    };
    Ok(can_be_asked(word) && after.is_none_or(|cursor| can_be_asked(&cursor.id)))
}

/// Returns the start of a backward list: before the cursor, or after every possible time.
pub(super) fn before(after: Option<&Cursor>) -> (i64, &str) {
    after.map_or((i64::MAX, ""), |cursor| (cursor.due, cursor.id.as_str()))
}

/// Returns the start of a list by label: at the cursor, or before the first row in that direction.
pub(super) fn beginning(direction: Direction, after: Option<&Cursor>) -> (i64, &str) {
    match direction {
        Direction::Forward => after.map_or((i64::MIN, ""), |cursor| (cursor.due, cursor.id.as_str())),
        Direction::Backward => before(after),
    }
}

/// Checks that a row could have this label. Returns an error for tables without labels.
pub(super) fn can_be_labelled(table: Table, word: &str, after: Option<&Cursor>) -> Result<bool, StoreError> {
    if table.is_labelled() {
        return Ok(can_be_asked(word) && after.is_none_or(|cursor| can_be_asked(&cursor.id)));
    }
    Err(StoreError::Database(format!("rows of {} have no labels", table.name())))
}

/// Returns a text that sorts after all texts with a prefix.
pub(super) fn beyond(prefix: &str) -> String {
    format!("{prefix}{}", char::MAX)
}

/// Checks that an owner could have rows. Returns an error for tables without lists by owner.
pub(super) fn can_have_last(table: Table, owner: &str) -> Result<bool, StoreError> {
    listed_by_facets(table)?;
    Ok(can_be_asked(owner))
}

fn listed_by_facets(table: Table) -> Result<(), StoreError> {
    if table.is_listed_by_facets() {
        return Ok(());
    }
    Err(StoreError::Database(format!("rows of {} cannot be listed by owner or state", table.name())))
}

/// Refuses requests for too many rows, which would make one read arbitrarily long.
pub(super) fn few_enough(ids: &[String]) -> Result<(), StoreError> {
    if ids.len() <= LIST_ROWS_MAX as usize {
        return Ok(());
    }
    Err(StoreError::Database(format!("more than {LIST_ROWS_MAX} rows were requested at once")))
}

/// Checks all preconditions of a change: clocks, unchanged rows, and the previous revision of each written row.
pub(super) fn check(change: &ChangeSet, moment: CheckTime, standing: &mut impl LockedRows) -> Result<(), StoreError> {
    check_clocks(change.decided_at, moment)?;
    check_relied_on(change, standing)?;
    check_written(change, standing)?;
    check_in_time(change, moment)
}

/// Checks all preconditions except those of the written rows. It is only for a database whose writes fail if these rows
/// are not as expected.
pub(super) fn check_but_written(
    change: &ChangeSet,
    moment: CheckTime,
    standing: &mut impl LockedRows,
) -> Result<(), StoreError> {
    check_clocks(change.decided_at, moment)?;
    check_relied_on(change, standing)?;
    check_in_time(change, moment)
}

fn check_relied_on(change: &ChangeSet, standing: &mut impl LockedRows) -> Result<(), StoreError> {
    for guard in &change.guards {
        if let Precondition::Unchanged { table, id, seal } = guard
            && standing.seal(*table, id)?.as_ref() != Some(seal)
        {
            return Err(StoreError::Conflict(table.name()));
        }
    }
    Ok(())
}

fn check_written(change: &ChangeSet, standing: &mut impl LockedRows) -> Result<(), StoreError> {
    for write in &change.writes {
        let (table, id) = write.name();
        if standing.seal(table, id)?.as_ref() != write.expected() {
            return Err(StoreError::Conflict(table.name()));
        }
    }
    for (table, alias, id) in change.aliases() {
        // A row may keep its own alias.
        if standing.holder(table, alias)?.is_some_and(|holder| holder != id) {
            return Err(StoreError::Conflict(table.name()));
        }
    }
    Ok(())
}

fn check_in_time(change: &ChangeSet, moment: CheckTime) -> Result<(), StoreError> {
    let kept = |guard: &Precondition| match guard {
        // The end itself is excluded here and included in `NotBefore`, so exactly one of two competing changes
        // succeeds.
        Precondition::Before(end) if moment.now >= *end => Err(StoreError::TooLate),
        Precondition::NotBefore(end) if moment.now < *end => Err(StoreError::TooSoon),
        Precondition::Unchanged { .. } | Precondition::Before(_) | Precondition::NotBefore(_) => Ok(()),
    };
    change.guards.iter().try_for_each(kept)
}

/// Checks the age of a change. It must not exceed the allowed clock skew, because its times are signed. If the change
/// waited in the store for that long, the clocks may be right and the caller should try again.
fn check_clocks(decided_at: Timestamp, moment: CheckTime) -> Result<(), StoreError> {
    let within = |apart: i64| apart.saturating_abs() <= CLOCK_SKEW_MILLIS_MAX;
    // Saturation treats extreme times as far apart instead of overflowing.
    let apart = moment.now.millis().saturating_sub(decided_at.millis());
    let waited = i64::try_from(moment.waited.as_millis()).unwrap_or(i64::MAX);
    match (within(apart), within(apart.saturating_sub(waited))) {
        (true, _) => Ok(()),
        (false, true) => Err(StoreError::Busy),
        (false, false) => Err(StoreError::ClockSkew),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(decided: i64, now: i64, waited: u64) -> Result<(), StoreError> {
        let moment = CheckTime { now: Timestamp::from_millis(now), waited: Duration::from_millis(waited) };
        check_clocks(Timestamp::from_millis(decided), moment)
    }

    #[test]
    fn clocks_may_differ_by_two_seconds_either_way_and_no_more() {
        for now in [10_000, 8_000, 12_000] {
            assert!(at(10_000, now, 0).is_ok(), "{now}");
        }
        for now in [7_999, 12_001, i64::MAX, i64::MIN] {
            assert!(matches!(at(10_000, now, 0), Err(StoreError::ClockSkew)), "{now}");
        }
    }

    #[test]
    fn a_long_wait_in_the_store_is_not_blamed_on_the_clocks() {
        assert!(matches!(at(10_000, 13_000, 1_500), Err(StoreError::Busy)));
        assert!(matches!(at(10_000, 13_000, 500), Err(StoreError::ClockSkew)));
    }
}
