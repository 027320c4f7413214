//! Runs one test on both databases.

/// Each of them on SQLite and on PostgreSQL, in an `ApiScenario` or the scenario that is named, with the policy that is
/// named, or else with the file's own `policy()`.
macro_rules! on_both {
    ($($tests:tt)*) => {
        on_databases! { (sqlite, postgres); $($tests)* }
    };
}

/// The same for tests that do not depend on the store: they do not race, move the clock, page through a list, archive,
/// or edit or watch the database. `./test` runs them on PostgreSQL only with `TEST_FULL=1`, by the name of this module.
macro_rules! on_both_in_full {
    ($($tests:tt)*) => {
        on_databases! { (sqlite_in_full, postgres_in_full); $($tests)* }
    };
}

macro_rules! on_databases {
    (($sqlite:ident, $postgres:ident); in $scenario:ident; $($name:ident,)*) => {
        on_databases! { ($sqlite, $postgres); in $scenario; $($name(super::policy()),)* }
    };
    (($sqlite:ident, $postgres:ident); in $scenario:ident; $($name:ident($policy:expr),)*) => {
        mod $sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::$scenario::on_sqlite(&$policy).await).await;
            })*
        }
        mod $postgres {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::$scenario::on_postgres(&$policy).await).await;
            })*
        }
    };
    (($sqlite:ident, $postgres:ident); $($name:ident,)*) => {
        on_databases! { ($sqlite, $postgres); in ApiScenario; $($name(super::policy()),)* }
    };
    (($sqlite:ident, $postgres:ident); $($name:ident($policy:expr),)*) => {
        on_databases! { ($sqlite, $postgres); in ApiScenario; $($name($policy),)* }
    };
}
