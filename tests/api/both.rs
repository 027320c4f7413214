//! Runs one test on both databases.

/// Each of them on SQLite and on PostgreSQL, in an `ApiScenario` or the scenario that is named, with the policy that is
/// named, or else with the file's own `policy()`.
macro_rules! on_both {
    (in $scenario:ident; $($name:ident,)*) => {
        on_both! { in $scenario; $($name(super::policy()),)* }
    };
    (in $scenario:ident; $($name:ident($policy:expr),)*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::$scenario::on_sqlite(&$policy).await).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::$scenario::on_postgres(&$policy).await).await;
            })*
        }
    };
    ($($name:ident,)*) => {
        on_both! { in ApiScenario; $($name(super::policy()),)* }
    };
    ($($name:ident($policy:expr),)*) => {
        on_both! { in ApiScenario; $($name($policy),)* }
    };
}
