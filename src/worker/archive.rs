//! Takes states out of the database that policies let go, and erases those whose time is over.

use tokio::sync::Mutex;

use crate::service::Service;
use crate::service::archive::ArchiveScanCursor;
use crate::service::error::Result;

/// A run goes through so many stretches of threads, so that a busy gateway can still be stopped.
const LOOKS_MAX: usize = 20;

/// Where the last run stopped: the next goes on there.
#[derive(Debug, Default)]
pub struct Archiver {
    place: Mutex<ArchiveScanCursor>,
}

impl Archiver {
    /// Goes through the next threads, to the end of all at most; says how many archives were made or erased.
    pub async fn run_once(&self, service: &Service) -> Result<usize> {
        let mut place = self.place.lock().await;
        let mut done = 0;
        for _ in 0..LOOKS_MAX {
            done += service.retain(&mut place).await?;
            if *place == ArchiveScanCursor::default() {
                break;
            }
        }
        Ok(done)
    }
}
