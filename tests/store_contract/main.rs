//! Every promise of the store, on every database.

#![expect(clippy::unwrap_used, reason = "a test says by its failure what could not be")]

mod commits;
mod database;
#[path = "../support/postgres.rs"]
mod server;

use database::Database;

macro_rules! promises {
    ($($file:ident: { $($claim:ident,)* })*) => {
        mod sqlite {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $claim() {
                    super::$file::$claim(super::Database::sqlite()).await;
                }
            )*)*
        }

        mod postgres {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $claim() {
                    super::$file::$claim(super::Database::postgres().await).await;
                }
            )*)*
        }
    };
}

promises! {
    commits: {
        what_was_committed_is_read_back_in_every_column,
        of_twenty_racing_replacements_exactly_one_wins,
    }
}
