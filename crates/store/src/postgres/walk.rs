//! Scans the whole database in one transaction with one snapshot.

use deadpool_postgres::Pool;
use tokio::sync::mpsc::Sender;

use super::super::label::Label;
use super::super::row::Table;
use super::connect::PooledConnection;
use super::failure::database;
use super::reader::{self, ReadQuery};
use crate::{Cursor, LIST_ROWS_MAX, RowFilter, ScanPage, StoreError, write_queue};

/// The snapshot is taken at the first read. The longer idle timeout gives the consumer time to process a page.
const BEGIN: &str = "
    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL idle_in_transaction_session_timeout = '5min';
";

/// Reads page after page for a consumer. If the consumer stops, the connection is closed and the transaction ends.
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
            // Sending waits for the consumer, which limits the memory for pages.
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
    // The transaction is read-only. The commit only ends it, so the connection can be used again.
    client.batch_execute("COMMIT").await.map_err(|error| database(&error))?;
    client.give_back();
    Ok(())
}
