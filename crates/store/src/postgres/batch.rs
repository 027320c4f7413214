//! Locks, checks and statements for a group of changes.

use std::collections::{BTreeMap, HashMap};

use sha2::{Digest as _, Sha256};
use tokio_postgres::types::ToSql;

use crate::StoreError;
use crate::change::{ChangeSet, Precondition, RowWrite};
use crate::label::{Label, LabelChange};
use crate::preconditions::LockedRows;
use crate::row::{Seal, SealedRow, Table};
use crate::sql::{LabelStatements, PostgresStatements, SqlDialect};

/// The strength of a row lock. If a group requests two strengths, the greater one applies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum LockStrength {
    /// The row must not exist. It is only read, without a lock.
    Absent,
    /// No other transaction may change the row.
    Rely,
    /// No other transaction may change the row or rely on it.
    Write,
}

/// Rows of one table that one statement locks, in this order.
#[derive(Debug)]
pub(super) struct RowLock<'c> {
    pub(super) table: Table,
    strength: LockStrength,
    pub(super) ids: Vec<&'c str>,
}

impl RowLock<'_> {
    /// Returns the statement. A row that is only relied on needs no row lock if it has an advisory lock, because every
    /// transaction that relies on or replaces it holds that lock. A row lock would write to the row each time.
    pub(super) fn text(&self) -> &'static str {
        let statements = PostgresStatements::of(self.table);
        match self.strength {
            LockStrength::Absent => &statements.look,
            LockStrength::Rely if RELIED_ON.contains(&self.table) => &statements.look,
            LockStrength::Rely => &statements.lock_to_rely,
            LockStrength::Write => &statements.lock_to_write,
        }
    }
}

/// Returns all rows that the changes rely on or write, by table and id. All transactions lock in this order, so no
/// deadlock can occur. Adjacent rows of equal strength share a statement.
pub(super) fn locks<'c>(changes: impl Iterator<Item = &'c ChangeSet>) -> Vec<RowLock<'c>> {
    let mut wishes: BTreeMap<(Table, &str), LockStrength> = BTreeMap::new();
    for change in changes {
        let relied = change.guards.iter().filter_map(|guard| match guard {
            Precondition::Unchanged { table, id, .. } => Some(((*table, id.as_str()), LockStrength::Rely)),
            Precondition::Before(_) | Precondition::NotBefore(_) => None,
        });
        let written = change.writes.iter().map(|write| match write {
            RowWrite::Insert(_) => (write.name(), LockStrength::Absent),
            RowWrite::Replace { .. } | RowWrite::Remove { .. } => (write.name(), LockStrength::Write),
        });
        for (name, strength) in relied.chain(written) {
            let wish = wishes.entry(name).or_insert(strength);
            // A row that one change relies on and another writes needs the stronger lock from the start, because
            // upgrading can deadlock.
            *wish = strength.max(*wish);
        }
    }
    let mut locks: Vec<RowLock<'_>> = Vec::new();
    for ((table, id), strength) in wishes {
        match locks.last_mut().filter(|it| it.table == table) {
            // A new row locks nothing, so it can be part of any statement.
            Some(last) if strength == LockStrength::Absent || strength == last.strength => last.ids.push(id),
            Some(last) if last.strength == LockStrength::Absent => {
                last.strength = strength;
                last.ids.push(id);
            }
            _ => locks.push(RowLock { table, strength, ids: vec![id] }),
        }
    }
    locks
}

/// Tables whose rows nearly every change relies on and few replace, such as halts, policies and revoked tokens.
const RELIED_ON: [Table; 3] = [Table::Gateway, Table::Flows, Table::Tokens];

/// Advisory locks for rows that many changes rely on. They are taken before the rows are read, in one order. Row locks
/// are not fair: transactions that share a lock can starve one that needs it alone. Under load an administrator could
/// then not halt anything.
#[derive(Debug, Default)]
pub(super) struct AdvisoryLocks {
    pub(super) keys: Vec<i64>,
    pub(super) alone: Vec<bool>,
}

/// Takes advisory locks, shared or exclusive.
pub(super) const TAKE_TURNS: &str = "SELECT CASE WHEN alone THEN pg_advisory_xact_lock(key) \
     ELSE pg_advisory_xact_lock_shared(key) END FROM unnest($1::bigint[], $2::boolean[]) AS turn (key, alone)";

/// Returns the advisory locks for a set of row locks.
pub(super) fn turns(locks: &[RowLock<'_>]) -> AdvisoryLocks {
    let asked = locks.iter().filter(|it| RELIED_ON.contains(&it.table) && it.strength != LockStrength::Absent);
    let each = asked
        .flat_map(|it| it.ids.iter().map(|id| (advisory_lock_key(it.table, id), it.strength == LockStrength::Write)));
    let mut wishes: BTreeMap<i64, bool> = BTreeMap::new();
    for (key, alone) in each {
        // Two ids may have the same key. The exclusive lock covers both.
        *wishes.entry(key).or_default() |= alone;
    }
    AdvisoryLocks { keys: wishes.keys().copied().collect(), alone: wishes.into_values().collect() }
}

/// Returns the key of a row's advisory lock.
fn advisory_lock_key(table: Table, id: &str) -> i64 {
    let hash = Sha256::new().chain_update(table.name()).chain_update([0]).chain_update(id).finalize();
    let (first, _) = hash.split_first_chunk().expect("a hash has 32 bytes");
    i64::from_be_bytes(*first)
}

/// Returns all aliases that the changes need, by table.
pub(super) fn aliases<'c>(changes: impl Iterator<Item = &'c ChangeSet>) -> BTreeMap<Table, Vec<&'c str>> {
    let mut aliases: BTreeMap<Table, Vec<&str>> = BTreeMap::new();
    for (table, alias, _) in changes.flat_map(ChangeSet::aliases) {
        aliases.entry(table).or_default().push(alias);
    }
    aliases
}

/// The locked rows, and the effect of the group's earlier changes on them.
#[derive(Debug, Default)]
pub(super) struct LockedBatchRows {
    seals: HashMap<Table, HashMap<String, Seal>>,
    holders: HashMap<Table, HashMap<String, String>>,
}

/// The seal of a row that a change of the group has written. No change expects it: two changes of one group never write
/// the same row, so each statement writes each row once.
const WRITTEN: Seal = Seal::new();

impl LockedBatchRows {
    pub(super) fn stands_with(&mut self, table: Table, id: String, seal: Seal) {
        self.seals.entry(table).or_default().insert(id, seal);
    }

    pub(super) fn is_held(&mut self, table: Table, alias: String, id: String) {
        self.holders.entry(table).or_default().insert(alias, id);
    }

    pub(super) fn write(&mut self, change: &ChangeSet) {
        for write in &change.writes {
            let (table, id) = write.name();
            // A later change of the group that relies on this row now fails its check.
            self.stands_with(table, id.to_owned(), WRITTEN);
        }
        for (table, alias, id) in change.aliases() {
            self.is_held(table, alias.to_owned(), id.to_owned());
        }
    }
}

impl LockedRows for LockedBatchRows {
    fn seal(&mut self, table: Table, id: &str) -> Result<Option<Seal>, StoreError> {
        Ok(self.seals.get(&table).and_then(|rows| rows.get(id)).cloned())
    }

    fn holder(&mut self, table: Table, alias: &str) -> Result<Option<String>, StoreError> {
        Ok(self.holders.get(&table).and_then(|rows| rows.get(alias)).cloned())
    }
}

/// The kinds of statements, in their order within a table. Names are freed before they are used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum WriteVerb {
    Delete,
    Update,
    Insert,
}

/// Rows of one table that one statement writes, with a list per column.
#[derive(Debug, Default)]
pub(super) struct ColumnBatch<'c> {
    ids: Vec<&'c str>,
    aliases: Vec<Option<&'c str>>,
    owners: Vec<&'c str>,
    states: Vec<&'c str>,
    dues: Vec<i64>,
    revisions: Vec<i64>,
    bodies: Vec<&'c str>,
    key_ids: Vec<&'c str>,
    macs: Vec<&'c [u8]>,
}

impl<'c> ColumnBatch<'c> {
    fn push(&mut self, row: &'c SealedRow) {
        self.ids.push(&row.id);
        self.aliases.push(row.facets.alias.as_deref());
        self.owners.push(&row.facets.owner);
        self.states.push(&row.facets.state);
        self.dues.push(row.facets.due);
        self.revisions.push(row.revision);
        self.bodies.push(&row.body);
        self.key_ids.push(&row.key_id);
        self.macs.push(&row.mac);
    }
}

/// One statement that writes.
#[derive(Debug)]
pub(super) struct WriteStatement<'c> {
    pub(super) table: Table,
    verb: WriteVerb,
    columns: ColumnBatch<'c>,
}

impl WriteStatement<'_> {
    pub(super) fn text(&self) -> &'static str {
        let statements = PostgresStatements::of(self.table);
        match self.verb {
            WriteVerb::Delete => &statements.delete,
            WriteVerb::Update => &statements.update,
            WriteVerb::Insert => &statements.insert,
        }
    }

    pub(super) fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        let it = &self.columns;
        match self.verb {
            WriteVerb::Delete => vec![&it.ids],
            WriteVerb::Update | WriteVerb::Insert => vec![
                &it.ids,
                &it.aliases,
                &it.owners,
                &it.states,
                &it.dues,
                &it.revisions,
                &it.bodies,
                &it.key_ids,
                &it.macs,
            ],
        }
    }

    /// Returns the number of rows that it must write.
    pub(super) fn count(&self) -> u64 {
        self.columns.ids.len() as u64
    }
}

/// Returns the label changes in order, because two changes of a group may concern the labels of one row.
pub(super) fn labellings<'c>(changes: impl Iterator<Item = &'c ChangeSet>) -> Vec<(&'static str, &'c Label)> {
    let texts = LabelStatements::of(SqlDialect::Postgres);
    let text = |it: &LabelChange| match it {
        LabelChange::Put(_) => texts.put.as_str(),
        LabelChange::Remove(_) => texts.remove.as_str(),
    };
    changes.flat_map(|change| &change.labels).map(|it| (text(it), it.label())).collect()
}

/// Returns the statements for all writes, ordered by table and id.
pub(super) fn writings<'c>(changes: impl Iterator<Item = &'c ChangeSet>) -> Vec<WriteStatement<'c>> {
    let mut ordered: BTreeMap<(Table, WriteVerb, &str), &RowWrite> = BTreeMap::new();
    for write in changes.flat_map(|change| &change.writes) {
        let verb = match write {
            RowWrite::Insert(_) => WriteVerb::Insert,
            RowWrite::Replace { .. } => WriteVerb::Update,
            RowWrite::Remove { .. } => WriteVerb::Delete,
        };
        let (table, id) = write.name();
        // The order by id makes concurrent transactions write in the same order.
        ordered.insert((table, verb, id), write);
    }
    let mut writings: Vec<WriteStatement<'_>> = Vec::new();
    for ((table, verb, id), write) in ordered {
        if writings.last().is_none_or(|it| (it.table, it.verb) != (table, verb)) {
            writings.push(WriteStatement { table, verb, columns: ColumnBatch::default() });
        }
        if let Some(WriteStatement { columns, .. }) = writings.last_mut() {
            match write {
                RowWrite::Insert(row) | RowWrite::Replace { row, .. } => columns.push(row),
                RowWrite::Remove { .. } => columns.ids.push(id),
            }
        }
    }
    writings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::FacetChange;
    use crate::row::Facets;
    use countersign_domain::primitives::time::Timestamp;

    fn row(table: Table, id: &str) -> SealedRow {
        let (key_id, body) = ("key".to_owned(), "{}".to_owned());
        SealedRow { table, id: id.to_owned(), facets: Facets::default(), revision: 2, body, key_id, mac: vec![0] }
    }

    fn change(relied: &[&str], replaced: &[&str], inserted: &[&str]) -> ChangeSet {
        let guard = |id: &&str| Precondition::Unchanged { table: Table::Threads, id: (*id).to_owned(), seal: vec![1] };
        let replace = replaced.iter().map(|id| RowWrite::Replace {
            row: row(Table::Threads, id),
            over: vec![1],
            moves: FacetChange::Names,
        });
        let insert = inserted.iter().map(|id| RowWrite::Insert(row(Table::Threads, id)));
        let guards = relied.iter().map(guard).collect();
        let writes = replace.chain(insert).collect();
        ChangeSet { decided_at: Timestamp::default(), guards, writes, labels: Vec::new() }
    }

    fn told(changes: &[ChangeSet]) -> Vec<(LockStrength, String)> {
        locks(changes.iter()).iter().map(|it| (it.strength, it.ids.concat())).collect()
    }

    #[test]
    fn rows_are_locked_in_one_order_for_all_groups() {
        let (one, other) = (change(&["c", "a"], &["d"], &[]), change(&["e"], &["b"], &[]));
        let expected = [
            (LockStrength::Rely, "a"),
            (LockStrength::Write, "b"),
            (LockStrength::Rely, "c"),
            (LockStrength::Write, "d"),
        ];
        let told_so = told(&[one.clone(), other.clone()]);
        assert_eq!(told_so, told(&[other, one]));
        assert!(told_so.iter().zip(expected).all(|(told, (strength, ids))| *told == (strength, ids.to_owned())));
        assert_eq!(told_so.len(), 5);
    }

    #[test]
    fn adjacent_rows_share_a_statement_and_new_rows_join_any() {
        let told_so = told(&[change(&["b", "c"], &["e", "f"], &["a", "d", "g"])]);
        assert_eq!(told_so, [(LockStrength::Rely, "abcd".to_owned()), (LockStrength::Write, "efg".to_owned())]);
    }

    #[test]
    fn row_that_is_relied_on_and_written_is_locked_for_writing() {
        let both = [change(&["a"], &[], &[]), change(&[], &["a"], &[])];
        assert_eq!(told(&both), [(LockStrength::Write, "a".to_owned())]);
    }

    #[test]
    fn row_written_in_a_group_fails_later_expectations() {
        let mut rows = LockedBatchRows::default();
        rows.stands_with(Table::Threads, "a".to_owned(), vec![1]);
        rows.write(&change(&[], &["a"], &["b"]));
        for id in ["a", "b"] {
            assert_eq!(rows.seal(Table::Threads, id).unwrap(), Some(WRITTEN));
        }
    }

    #[test]
    fn a_table_is_written_by_one_statement_of_each_kind_in_the_order_of_ids() {
        let changes = [change(&[], &["d", "a"], &["c"]), change(&[], &["b"], &[])];
        let told: Vec<(WriteVerb, String)> =
            writings(changes.iter()).iter().map(|it| (it.verb, it.columns.ids.concat())).collect();
        assert_eq!(told, [(WriteVerb::Update, "abd".to_owned()), (WriteVerb::Insert, "c".to_owned())]);
    }
}
