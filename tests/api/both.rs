//! One test, written once, on both databases.

/// Each of them on SQLite and on PostgreSQL, in the file's own `Scene`, with the policy that is named, or else with its `policy()`.
macro_rules! on_both {
    ($($name:ident,)*) => {
        on_both! { $($name(super::policy()),)* }
    };
    ($($name:ident($policy:expr),)*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::Scene::on_sqlite(&$policy).await).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::Scene::on_postgres(&$policy).await).await;
            })*
        }
    };
}
