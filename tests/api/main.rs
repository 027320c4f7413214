//! The gateway over HTTP, as hosts, agents and writers use it.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attacks;
#[path = "../support/description.rs"]
mod description;
mod doorkeeping;
mod edits;
#[path = "../support/gateway.rs"]
mod gateway;
mod halts;
mod inbox;
mod limits;
#[path = "../support/npm.rs"]
mod npm;
mod observing;
mod oidc;
mod oracles;
#[path = "../support/passkeys.rs"]
mod passkeys_of_people;
mod path;
mod people;
#[path = "../support/postgres.rs"]
mod postgres;
mod proxy;
mod put_back;
#[path = "../support/python.rs"]
mod python;
mod questions;
mod rejections;
mod revealing;
mod roles;
#[macro_use]
mod rules;
mod amendments;
mod amendments_signed;
mod branches;
mod contract;
mod copying;
mod delegations;
mod extensions;
mod inert;
mod insight;
mod interrupts;
mod mail;
mod mcp;
mod metrics;
mod notices;
mod passkeys;
mod posts;
mod redaction;
mod reference;
mod repeats;
mod replays;
mod second_thoughts;
mod several;
mod streams;
mod supposed;
mod taking_back;
mod time;
mod tools;
mod transitions;
mod under_new_policy;
mod ways_in;
mod webhooks;
