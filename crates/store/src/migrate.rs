//! Database migrations. They are only added, are applied in order, and are refused for a database of a newer version.

use std::fmt;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::StoreError;

/// The process that serves from a database, if it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServingProcess(pub Option<u32>);

impl fmt::Display for ServingProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |pid| write!(f, " (process {pid})"))
    }
}

/// One migration for one of the two databases. Both databases have migrations of the same names.
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
            sql: include_str!(concat!("../../../migrations/", $folder, "/", $name, ".sql")),
        },)*]
    };
}

pub(super) const SQLITE: &[Migration] = migrations!("sqlite": 1 "0001_tables", 2 "0002_rejections_by_moment", 3 "0003_amendments", 4 "0004_labels", 5 "0005_sign_ins", 6 "0006_passkeys", 7 "0007_figures", 8 "0008_delegations", 9 "0009_marks", 10 "0010_interrupts", 11 "0011_posts", 12 "0012_endpoints", 13 "0013_letters", 14 "0014_answers", 15 "0015_episode_events", 16 "0016_archives", 17 "0017_imports", 18 "0018_steps", 19 "0019_whereabouts", 20 "0020_sessions_by_end");
pub(super) const POSTGRES: &[Migration] = migrations!("postgres": 1 "0001_tables", 2 "0002_rejections_by_moment", 3 "0003_amendments", 4 "0004_labels", 5 "0005_sign_ins", 6 "0006_passkeys", 7 "0007_figures", 8 "0008_delegations", 9 "0009_marks", 10 "0010_interrupts", 11 "0011_posts", 12 "0012_endpoints", 13 "0013_letters", 14 "0014_answers", 15 "0015_episode_events", 16 "0016_archives", 17 "0017_imports", 18 "0018_steps", 19 "0019_whereabouts", 20 "0020_sessions_by_end");

/// The table of applied migrations. Both databases accept this statement.
pub(super) const CREATE_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations \
    (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)";

/// Selects the applied migrations in order.
pub(super) const SELECT_APPLIED: &str = "SELECT version, checksum FROM schema_migrations ORDER BY version";

/// The reason why a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("not a PostgreSQL URL: {0}")]
    Url(String),
    /// A newer version has migrated the database. An older one would misread it.
    #[error(
        "the database has migration {found}, but this version of countersign knows migrations only up to {known}: use a newer version"
    )]
    Newer { found: i64, known: i64 },
    /// The database lacks migrations and was opened for reading only.
    #[error(
        "the database has migrations up to {found}, this version reads it with {known}: run `countersign migrate` on it, or on a copy, first"
    )]
    Older { found: i64, known: i64 },
    #[error(
        "another gateway{by} serves from {}: stop it first. One gateway serves from a SQLite database; several can share PostgreSQL",
        database.display()
    )]
    Served { database: PathBuf, by: ServingProcess },
    /// The database's file has several names, so another gateway could lock and use it by another name.
    #[error(
        "{} is one of {links} hard links to the same file, so another gateway could serve from it. Remove the \
         other links, or serve from a copy made with `sqlite3 {} \".backup copy.db\"`",
        database.display(),
        database.display()
    )]
    HardLinked {
        database: PathBuf,
        /// The number of names of the file.
        links: u64,
    },
    /// The lock file cannot be locked, so a second gateway cannot be excluded.
    #[error(
        "{} cannot be locked, so another gateway could serve from the same database: put the data directory on a local disk",
        file.display()
    )]
    Unlockable { file: PathBuf, source: std::io::Error },
    /// An applied migration differs from this version's migration of the same number.
    #[error(
        "migration {version} of the database differs from this version's: use the version of countersign that created it"
    )]
    Altered { version: i64 },
    /// The file cannot be created or opened.
    #[error("the database file cannot be created or opened")]
    File(#[source] std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Migration {
    pub(super) fn checksum(&self) -> String {
        Sha256::digest(self.sql.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the migrations that are not applied yet.
pub(super) fn pending(
    known: &'static [Migration],
    applied: &[(i64, String)],
) -> Result<&'static [Migration], OpenError> {
    let newest = known.last().map_or(0, |it| it.version);
    // A newer version may have stored data that this version would misread or overwrite.
    if let Some((found, _)) = applied.last().filter(|(version, _)| *version > newest) {
        return Err(OpenError::Newer { found: *found, known: newest });
    }
    for (migration, (version, checksum)) in known.iter().zip(applied) {
        // A changed migration means another schema than this version expects.
        if migration.version != *version || migration.checksum() != *checksum {
            return Err(OpenError::Altered { version: *version });
        }
    }
    Ok(known.get(applied.len()..).unwrap_or_default())
}

/// Refuses a database with missing migrations.
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
    fn unapplied_migrations_are_pending() {
        for count in 0..=2 {
            assert_eq!(pending(KNOWN, &applied(count)).unwrap().len(), 2 - count);
        }
    }

    #[test]
    fn database_without_all_migrations_is_not_read() {
        assert!(must_be_current(KNOWN, &applied(2)).is_ok());
        assert!(matches!(must_be_current(KNOWN, &applied(1)), Err(OpenError::Older { found: 1, known: 2 })));
    }

    #[test]
    fn newer_or_altered_database_is_refused() {
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
