//! Checks that the files of an open database are still at their paths.
//!
//! SQLite continues to write to a removed write-ahead log. No other process sees these commits, and they are lost when
//! this process ends. A log that another process creates in its place damages the database.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rustix::fs::{StatVfs, StatVfsMountFlags, statvfs};
use tokio::sync::watch;

use super::super::StoreError;
use super::super::outage::Outage;

/// The free space below which a disk counts as full. A change of some rows with their indexes needs more.
const ROOM_BYTES_MIN: u64 = 1024 * 1024;

/// An open file, identified by device and inode.
#[derive(Debug)]
struct OpenedFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// The files of an open database. Each check takes about a microsecond per file.
#[derive(Debug)]
pub(super) struct DatabaseFiles {
    opened: Vec<OpenedFile>,
    /// The event that replaced one of them. It is never reset, because later commits may be lost.
    replaced: watch::Sender<Option<String>>,
}

impl DatabaseFiles {
    /// Records the files at the paths.
    pub(super) fn at(paths: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
        let opened = paths.into_iter().map(|path| {
            let found = path.metadata()?;
            Ok(OpenedFile { device: found.dev(), inode: found.ino(), path })
        });
        Ok(Self { opened: opened.collect::<io::Result<_>>()?, replaced: watch::Sender::new(None) })
    }

    /// Returns an error if a file is no longer the one at its path.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.must_stand()?;
        for file in &self.opened {
            match file.path.metadata() {
                Ok(found) if file.is(&found) => {}
                Ok(_) => return Err(self.condemn(&file.path, "was replaced by another file")),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    return Err(self.condemn(&file.path, "was removed"));
                }
                // Another error says nothing about the file, so the database is not condemned.
                Err(error) => return Err(StoreError::of_file(&file.path.display().to_string(), &error)),
            }
        }
        Ok(())
    }

    /// Returns an error if an earlier check failed, without a new check.
    pub(super) fn must_stand(&self) -> Result<(), StoreError> {
        match &*self.replaced.borrow() {
            None => Ok(()),
            Some(how) => Err(StoreError::unavailable(Outage::Replaced, how.clone())),
        }
    }

    /// Returns an error if the disk is read-only or nearly full.
    pub(super) fn check_room(&self) -> Result<(), StoreError> {
        let Some(database) = self.opened.first() else { return Ok(()) };
        let disk = statvfs(&database.path).map_err(|error| StoreError::of_file("the disk", &error.into()))?;
        has_room(&disk)
    }

    /// Returns after a check has found a removed or replaced file.
    pub(super) async fn replaced(&self) -> String {
        let mut replaced = self.replaced.subscribe();
        let how = replaced.wait_for(Option::is_some).await.map(|it| it.clone().unwrap_or_default());
        how.unwrap_or_default()
    }

    /// Prepares a connection for closing. The last connection moves the write-ahead log into the database's file and
    /// removes it. This must not happen to files of another process.
    pub(super) fn part_from(&self, connection: &Connection) {
        if self.check().is_err()
            && let Err(error) = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        {
            tracing::error!(%error, "the write-ahead log may be moved into a file of another database");
        }
    }

    fn condemn(&self, path: &Path, how: &str) -> StoreError {
        let how = format!("{} {how}", path.display());
        // Only the first detection is logged, because every call checks the files.
        if self.replaced.send_replace(Some(how.clone())).is_none() {
            tracing::error!(
                file = %path.display(),
                "a file of the database was removed or replaced while it was open; the gateway stops using the database"
            );
        }
        StoreError::unavailable(Outage::Replaced, how)
    }
}

fn has_room(disk: &StatVfs) -> Result<(), StoreError> {
    if disk.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(StoreError::unavailable(Outage::ReadOnly, "its file system is mounted read-only"));
    }
    let room = disk.f_bavail.saturating_mul(disk.f_frsize);
    // Some file systems do not report their size.
    if disk.f_blocks > 0 && room < ROOM_BYTES_MIN {
        return Err(StoreError::unavailable(Outage::Full, format!("{room} bytes are free")));
    }
    Ok(())
}

impl OpenedFile {
    fn is(&self, found: &Metadata) -> bool {
        (self.device, self.inode) == (found.dev(), found.ino())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(disk: &StatVfs) -> Option<Outage> {
        match has_room(disk) {
            Err(StoreError::Unavailable { outage, .. }) => Some(outage),
            _ => None,
        }
    }

    #[test]
    fn full_or_read_only_disk_is_refused() {
        let disk = StatVfs { f_frsize: 4_096, f_blocks: 1_000, f_bavail: 256, ..statvfs("/").unwrap() };
        let disk = StatVfs { f_flag: StatVfsMountFlags::empty(), ..disk };
        assert_eq!(outage(&disk), None);
        assert_eq!(outage(&StatVfs { f_bavail: 255, ..disk }), Some(Outage::Full));
        assert_eq!(outage(&StatVfs { f_bavail: 0, f_blocks: 0, ..disk }), None, "it does not tell");
        assert_eq!(outage(&StatVfs { f_flag: StatVfsMountFlags::RDONLY, ..disk }), Some(Outage::ReadOnly));
    }
}
