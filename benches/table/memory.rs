//! A store that keeps rows in memory and checks nothing: what is left of a use case without its store.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use countersign_domain::primitives::time::Timestamp;

use async_trait::async_trait;
use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_store::change::{ChangeSet, RowWrite};
use countersign_store::label::{Label, LabelledRow};
use countersign_store::row::{SealedRow, Table};
use countersign_store::{Cursor, Direction, LeaderLock, LeaderTask, RowFilter, ScanPage, Store, StoreError};

#[derive(Default)]
pub struct MemoryStore(Mutex<MemoryRows>);

#[derive(Default)]
struct MemoryRows {
    rows: HashMap<Table, HashMap<String, SealedRow>>,
    aliases: HashMap<Table, HashMap<String, String>>,
}

impl MemoryRows {
    fn get(&self, table: Table, id: &str) -> Option<SealedRow> {
        self.rows.get(&table)?.get(id).cloned()
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, change: ChangeSet) -> Result<(), StoreError> {
        let mut kept = self.0.lock().unwrap();
        for write in change.writes {
            let (RowWrite::Insert(row) | RowWrite::Replace { row, .. }) = write else { continue };
            if let Some(alias) = &row.facets.alias {
                kept.aliases.entry(row.table).or_default().insert(alias.clone(), row.id.clone());
            }
            kept.rows.entry(row.table).or_default().insert(row.id.clone(), row);
        }
        Ok(())
    }

    async fn get(&self, table: Table, id: &str) -> Result<Option<SealedRow>, StoreError> {
        Ok(self.0.lock().unwrap().get(table, id))
    }

    async fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<SealedRow>, StoreError> {
        let kept = self.0.lock().unwrap();
        let id = kept.aliases.get(&table).and_then(|it| it.get(alias));
        Ok(id.and_then(|id| kept.get(table, id)))
    }

    async fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<SealedRow>, StoreError> {
        let kept = self.0.lock().unwrap();
        Ok(ids.iter().filter_map(|id| kept.get(table, id)).collect())
    }

    async fn list(
        &self,
        table: Table,
        _: RowFilter<'_>,
        after: Option<&Cursor>,
        _: u32,
    ) -> Result<Vec<SealedRow>, StoreError> {
        // Only short tables (accounts) are listed here, and whole.
        let kept = self.0.lock().unwrap();
        let rows = kept.rows.get(&table).filter(|_| after.is_none());
        Ok(rows.into_iter().flat_map(HashMap::values).cloned().collect())
    }

    async fn labelled(
        &self,
        _: Table,
        _: &str,
        _: Direction,
        _: Option<&Cursor>,
        _: u32,
    ) -> Result<Vec<LabelledRow>, StoreError> {
        Ok(Vec::new())
    }

    async fn labels(&self, _: Option<&Label>, _: u32) -> Result<Vec<Label>, StoreError> {
        Ok(Vec::new())
    }

    async fn walk(&self, _: &mut (dyn FnMut(ScanPage) + Send)) -> Result<(), StoreError> {
        Ok(())
    }

    async fn by_alias_prefix(&self, _: Table, _: &str, _: u32) -> Result<Vec<SealedRow>, StoreError> {
        Ok(Vec::new())
    }

    async fn last_of(&self, _: Table, _: &str) -> Result<Option<SealedRow>, StoreError> {
        Ok(None)
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(SystemClock.now())
    }

    async fn take(&self, _: LeaderTask) -> Result<Option<Box<dyn LeaderLock>>, StoreError> {
        Ok(None)
    }

    fn queued(&self) -> usize {
        0
    }
    async fn changed(&self, patience: Duration) {
        tokio::time::sleep(patience).await;
    }
}
