//! The reviewer's pages, served by a real gateway and used in a real Chromium.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says by its failure what could not be")]

mod amendments;
mod axe;
mod chromium;
mod day;
mod delegations;
mod doors;
mod edge;
mod edits;
mod emergency;
mod endpoints;
mod episodes;
mod extensions;
mod forms;
#[path = "../support/full.rs"]
mod full;
mod gateway;
mod history;
mod inert;
mod interrupts;
mod journey;
mod keyboard;
mod live;
mod log;
#[path = "../support/npm.rs"]
mod npm;
mod oidc;
mod passkeys;
#[path = "../support/passwords.rs"]
mod passwords;
mod people;
mod person;
mod proof;
#[expect(dead_code, reason = "other suites use the rest")]
#[path = "../support/provider.rs"]
mod provider;
#[expect(dead_code, reason = "other suites use the rest")]
#[path = "../api/webhooks/receiver.rs"]
mod receiver;
mod reference;
mod replays;
mod revealing;
mod rollback;
mod screens;
mod second_thoughts;
mod several;
#[path = "../support/sqlite.rs"]
mod sqlite;
mod tool_calls;
mod typing;
mod weight;
