//! Tests of a whole history of the gateway. `lived/` makes the history, and every test uses it or a part of it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says by its failure what could not be")]

mod clocks;
mod database_edits;
#[path = "../support/full.rs"]
mod full;
mod lived;
mod looks;
#[path = "../support/over.rs"]
mod over;
#[path = "../support/passwords.rs"]
mod passwords;
#[path = "../support/postgres.rs"]
mod postgres;
mod same_bytes;
#[path = "../support/sqlite.rs"]
mod sqlite;
#[path = "../support/up_to_date.rs"]
mod up_to_date;
mod warm_gateway;
mod workers;
