//! Writes the log export for a SIEM or log collector.

use countersign_adapters::log_sink;
use countersign_adapters::log_sink::LogExportTarget;
use countersign_service::Service;
use countersign_service::error::Result;

/// Batches in one run, so that a busy gateway can still stop.
const BATCHES_MAX: usize = 100;

/// Exports every event with a position that is not exported yet. Returns how many.
pub async fn run_once(service: &Service, to: &LogExportTarget) -> Result<usize> {
    let mut copied = 0;
    for _ in 0..BATCHES_MAX {
        let to = to.clone();
        let write = |lines: String| async move {
            // File writes block, so they run on a blocking thread.
            tokio::task::spawn_blocking(move || log_sink::append(&to, &lines)).await.map_err(std::io::Error::other)?
        };
        match service.log.copy_log(write).await? {
            0 => break,
            more => copied += more,
        }
    }
    Ok(copied)
}
