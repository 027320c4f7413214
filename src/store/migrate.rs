//! Migrations: only ever added, applied in order, and never to a database that a newer version has had.

use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::StoreError;

/// One migration, in one database's words. The other's has the same name.
#[derive(Debug)]
pub(super) struct Migration {
    pub(super) version: i64,
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
}

macro_rules! migrations {
    ($folder:literal: $($version:literal $name:literal),*) => {
        &[$(Migration {
            version: $version,
            name: $name,
            sql: include_str!(concat!("../../migrations/", $folder, "/", $name, ".sql")),
        },)*]
    };
}

pub(super) const SQLITE: &[Migration] = migrations!("sqlite": 1 "0001_tables", 2 "0002_rejections_by_moment", 3 "0003_amendments", 4 "0004_labels", 5 "0005_sign_ins", 6 "0006_passkeys", 7 "0007_figures", 8 "0008_delegations", 9 "0009_marks", 10 "0010_interrupts", 11 "0011_posts", 12 "0012_endpoints", 13 "0013_letters", 14 "0014_answers", 15 "0015_episode_events", 16 "0016_archives", 17 "0017_imports", 18 "0018_steps", 19 "0019_whereabouts", 20 "0020_sessions_by_end");
pub(super) const POSTGRES: &[Migration] = migrations!("postgres": 1 "0001_tables", 2 "0002_rejections_by_moment", 3 "0003_amendments", 4 "0004_labels", 5 "0005_sign_ins", 6 "0006_passkeys", 7 "0007_figures", 8 "0008_delegations", 9 "0009_marks", 10 "0010_interrupts", 11 "0011_posts", 12 "0012_endpoints", 13 "0013_letters", 14 "0014_answers", 15 "0015_episode_events", 16 "0016_archives", 17 "0017_imports", 18 "0018_steps", 19 "0019_whereabouts", 20 "0020_sessions_by_end");

/// Which migrations the database has had. Both databases take this text.
pub(super) const CREATE_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations \
    (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)";

/// What was applied, in order.
pub(super) const SELECT_APPLIED: &str = "SELECT version, checksum FROM schema_migrations ORDER BY version";

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("not an address of a PostgreSQL database: {0}")]
    Url(String),
    /// A newer version of this program has had the database; an older one would misread it.
    #[error("the database has migration {found}, this version knows them up to {known}: use a newer one")]
    Newer { found: i64, known: i64 },
    /// It lacks migrations, and was opened only to be read.
    #[error(
        "the database has migrations up to {found}, this version reads it with {known}: run `countersign migrate` on it, or on a copy, first"
    )]
    Older { found: i64, known: i64 },
    /// Another gateway serves from the database.
    #[error(
        "another gateway serves from {}: stop it first. One gateway serves from a SQLite database; several can share PostgreSQL",
        database.display()
    )]
    Served { database: PathBuf },
    /// The database's file has several names, so another gateway could lock and serve it by another one.
    #[error(
        "{} is one of {links} hard links to the same file, so another gateway could serve from it by another name: remove the \
         other links, or serve from a copy made with `sqlite3 {} \".backup copy.db\"`",
        database.display(),
        database.display()
    )]
    HardLinked {
        database: PathBuf,
        /// How many names its file has.
        links: u64,
    },
    /// It cannot be made sure that no other gateway serves from the database.
    #[error(
        "{} cannot be locked, so another gateway could serve from the same database: put the data directory on a local disk",
        file.display()
    )]
    Unlockable { file: PathBuf, source: std::io::Error },
    /// A migration that was applied is not the one of that number here.
    #[error("migration {version} of the database is not this version's")]
    Altered { version: i64 },
    /// The file could not be made or opened.
    #[error("the database file cannot be used")]
    File(#[source] std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Migration {
    pub(super) fn checksum(&self) -> String {
        Sha256::digest(self.sql.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The migrations still to be applied, given those that were, in order.
pub(super) fn pending(
    known: &'static [Migration],
    applied: &[(i64, String)],
) -> Result<&'static [Migration], OpenError> {
    let newest = known.last().map_or(0, |it| it.version);
    if let Some((found, _)) = applied.last().filter(|(version, _)| *version > newest) {
        return Err(OpenError::Newer { found: *found, known: newest });
    }
    for (migration, (version, checksum)) in known.iter().zip(applied) {
        if migration.version != *version || migration.checksum() != *checksum {
            return Err(OpenError::Altered { version: *version });
        }
    }
    Ok(known.get(applied.len()..).unwrap_or_default())
}

/// Refuses a database that cannot be read as it is.
pub(super) fn must_be_current(known: &'static [Migration], applied: &[(i64, String)]) -> Result<(), OpenError> {
    match pending(known, applied)?.last() {
        None => Ok(()),
        Some(newest) => {
            Err(OpenError::Older { found: applied.last().map_or(0, |(version, _)| *version), known: newest.version })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static KNOWN: &[Migration] =
        &[Migration { version: 1, name: "one", sql: "a" }, Migration { version: 2, name: "two", sql: "b" }];

    fn applied(count: usize) -> Vec<(i64, String)> {
        KNOWN.iter().take(count).map(|it| (it.version, it.checksum())).collect()
    }

    #[test]
    fn what_was_not_applied_is_pending() {
        for count in 0..=2 {
            assert_eq!(pending(KNOWN, &applied(count)).unwrap().len(), 2 - count);
        }
    }

    #[test]
    fn a_database_that_lacks_migrations_is_not_read_as_it_is() {
        assert!(must_be_current(KNOWN, &applied(2)).is_ok());
        assert!(matches!(must_be_current(KNOWN, &applied(1)), Err(OpenError::Older { found: 1, known: 2 })));
    }

    #[test]
    fn a_database_that_is_ahead_or_went_another_way_is_refused() {
        let mut ahead = applied(2);
        ahead.push((3, "c".to_owned()));
        assert!(matches!(pending(KNOWN, &ahead), Err(OpenError::Newer { found: 3, known: 2 })));
        let mut altered = applied(2);
        altered[0].1.push('x');
        assert!(matches!(pending(KNOWN, &altered), Err(OpenError::Altered { version: 1 })));
        assert!(matches!(pending(KNOWN, &applied(2)[1..]), Err(OpenError::Altered { version: 2 })));
    }

    #[test]
    fn both_databases_have_the_same_migrations_numbered_without_gaps() {
        let names = |known: &[Migration]| known.iter().map(|it| (it.version, it.name)).collect::<Vec<_>>();
        assert_eq!(names(SQLITE), names(POSTGRES));
        assert!(SQLITE.iter().zip(1..).all(|(it, version)| it.version == version));
    }
}
