//! A walk through everything, in one transaction that sees one moment.

use deadpool_postgres::Pool;
use tokio::sync::mpsc::Sender;

use super::super::label::Label;
use super::super::row::Table;
use super::connect::PooledConnection;
use super::failure::database;
use super::reader::{self, ReadQuery};
use crate::store::{Cursor, LIST_ROWS_MAX, RowFilter, ScanPage, StoreError, write_queue};

/// It sees what was committed when it first reads. Whoever is told takes their time with a page, which is not silence.
const BEGIN: &str = "
    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL idle_in_transaction_session_timeout = '5min';
";

/// Reads page after page for whoever takes them. If nobody does any more, the connection is closed, and all ends with it.
pub(super) async fn walk(pool: Pool, pages: Sender<ScanPage>) -> Result<(), StoreError> {
    let client = PooledConnection::take(&pool).await?;
    client.batch_execute(BEGIN).await.map_err(|error| database(&error))?;
    for table in Table::ALL {
        let mut after: Option<Cursor> = None;
        loop {
            let query = ReadQuery::list(*table, RowFilter::All, after.as_ref(), LIST_ROWS_MAX);
            let rows = reader::page(&client, query, reader::decode).await?;
            let Some(last) = rows.last() else { break };
            after = Some(Cursor { due: last.facets.due, id: last.id.clone() });
            pages.send(ScanPage::Rows(rows)).await.map_err(|_| write_queue::ended())?;
        }
    }
    let mut after: Option<Label> = None;
    loop {
        let labels = reader::page(&client, ReadQuery::labels(after.as_ref(), LIST_ROWS_MAX), reader::label).await?;
        let Some(last) = labels.last() else { break };
        after = Some(last.clone());
        pages.send(ScanPage::Labels(labels)).await.map_err(|_| write_queue::ended())?;
    }
    client.batch_execute("COMMIT").await.map_err(|error| database(&error))?;
    client.give_back();
    Ok(())
}
