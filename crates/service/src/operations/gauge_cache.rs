//! Remembers the gauges that are counted in the database.

use countersign_adapters::metrics::DatabaseGauges;
use countersign_domain::primitives::time::Timestamp;
use tokio::sync::Mutex;

/// The last result and its time. The result is `None` if the database could not be read.
#[derive(Debug, Default)]
pub(crate) struct GaugeCache(pub(crate) Mutex<Option<(Timestamp, Option<DatabaseGauges>)>>);
