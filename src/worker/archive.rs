//! Moves states to archives and erases them, as the retention of their policy says.

use countersign_service::Service;
use countersign_service::archive::move_versions::ArchiveScanCursor;
use countersign_service::error::Result;
use tokio::sync::Mutex;

/// Scans in one run, so that a busy gateway can still stop.
const LOOKS_MAX: usize = 20;

/// The position of the last run, where the next one continues.
#[derive(Debug, Default)]
pub struct Archiver {
    place: Mutex<ArchiveScanCursor>,
}

impl Archiver {
    /// Processes the next threads, up to the end of the list. Returns how many archives were written or
    /// erased.
    pub async fn run_once(&self, service: &Service) -> Result<usize> {
        let mut place = self.place.lock().await;
        let mut done = 0;
        for _ in 0..LOOKS_MAX {
            done += service.archive.retain(&mut place).await?;
            if *place == ArchiveScanCursor::default() {
                break;
            }
        }
        Ok(done)
    }
}
