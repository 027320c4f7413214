//! A store that keeps rows in memory and checks nothing: what is left of a use case without its store.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use countersign::clock::{Clock as _, SystemClock};
use countersign::domain::primitives::time::Timestamp;
use countersign::store::change::{Change, RowWrite};
use countersign::store::label::{Label, Labelled};
use countersign::store::row::{Row, Table};
use countersign::store::{Cursor, Direction, Duty, Filter, OnDuty, Page, Store, StoreError};

#[derive(Default)]
pub struct Memory(Mutex<Rows>);

#[derive(Default)]
struct Rows {
    rows: HashMap<Table, HashMap<String, Row>>,
    aliases: HashMap<Table, HashMap<String, String>>,
}

impl Rows {
    fn get(&self, table: Table, id: &str) -> Option<Row> {
        self.rows.get(&table)?.get(id).cloned()
    }
}

#[async_trait]
impl Store for Memory {
    async fn commit(&self, change: Change) -> Result<(), StoreError> {
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

    async fn get(&self, table: Table, id: &str) -> Result<Option<Row>, StoreError> {
        Ok(self.0.lock().unwrap().get(table, id))
    }

    async fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<Row>, StoreError> {
        let kept = self.0.lock().unwrap();
        let id = kept.aliases.get(&table).and_then(|it| it.get(alias));
        Ok(id.and_then(|id| kept.get(table, id)))
    }

    async fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<Row>, StoreError> {
        let kept = self.0.lock().unwrap();
        Ok(ids.iter().filter_map(|id| kept.get(table, id)).collect())
    }

    async fn list(&self, table: Table, _: Filter<'_>, after: Option<&Cursor>, _: u32) -> Result<Vec<Row>, StoreError> {
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
    ) -> Result<Vec<Labelled>, StoreError> {
        Ok(Vec::new())
    }

    async fn labels(&self, _: Option<&Label>, _: u32) -> Result<Vec<Label>, StoreError> {
        Ok(Vec::new())
    }

    async fn walk(&self, _: &mut (dyn FnMut(Page) + Send)) -> Result<(), StoreError> {
        Ok(())
    }

    async fn by_alias_prefix(&self, _: Table, _: &str, _: u32) -> Result<Vec<Row>, StoreError> {
        Ok(Vec::new())
    }

    async fn last_of(&self, _: Table, _: &str) -> Result<Option<Row>, StoreError> {
        Ok(None)
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(SystemClock.now())
    }

    async fn take(&self, _: Duty) -> Result<Option<Box<dyn OnDuty>>, StoreError> {
        Ok(None)
    }

    fn queued(&self) -> usize {
        0
    }
    async fn changed(&self, patience: Duration) {
        tokio::time::sleep(patience).await;
    }
}
