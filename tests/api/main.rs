//! Tests the gateway over HTTP, as hosts, agents and writers use it.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[macro_use]
mod both;
mod aap_adapters;
mod aap_instances;
mod amendments;
mod amendments_signed;
mod approval_requests;
mod approval_suites;
mod attacks;
mod attempts;
mod audits;
mod boundary;
mod bounded;
mod branches;
mod caching;
mod checkpoints;
mod clock;
mod coding_agents;
mod contract;
mod copying;
mod costly;
mod creating;
mod delegations;
#[path = "../support/description.rs"]
mod description;
mod doorkeeping;
mod edits;
mod envelopes;
mod episodes;
mod examples;
mod expiring;
mod exported;
mod extensions;
mod faults;
mod for_good;
#[path = "../support/gateway.rs"]
mod gateway;
mod given;
mod guarded;
mod guesses;
mod half_said;
mod halts;
mod held_reasons;
mod imports;
mod inbox;
mod inert;
mod insight;
mod interrupts;
mod keyrings;
mod lapsing;
mod large_calls;
mod limits;
mod mail;
mod marks;
mod mcp;
mod mcp_conformance;
mod mcp_faults;
mod mcp_guard;
mod mcp_tasks;
mod mcp_tool_names;
mod mcp_upstreams;
mod meanwhile;
mod metrics;
mod node_secrets;
mod notices;
#[path = "../support/npm.rs"]
mod npm;
mod observing;
mod oidc;
mod oracles;
#[path = "../support/over.rs"]
mod over;
#[path = "../support/own_cluster.rs"]
mod own_cluster;
mod owners;
mod passkeys;
#[path = "../support/passkeys.rs"]
mod passkeys_of_people;
#[path = "../support/passwords.rs"]
mod passwords;
mod path;
mod people;
mod policy_net;
#[path = "../support/postgres.rs"]
mod postgres;
mod posts;
#[path = "../support/program.rs"]
mod program;
mod proxy;
mod put_back;
#[path = "../support/python.rs"]
mod python;
mod questions;
mod redaction;
mod reference;
mod rejections;
mod repeats;
mod replays;
mod retention;
mod revealing;
mod roles;
mod rules;
mod rust_client;
mod scripted_mcp_server;
mod second_thoughts;
mod sequencing;
mod several;
#[path = "../support/sqlite.rs"]
mod sqlite;
mod steps;
mod stopped;
mod stopping;
mod streams;
mod supposed;
mod taking_back;
mod terminal;
mod time;
mod told;
mod tools;
mod transitions;
mod turns;
mod under_new_policy;
#[path = "../support/up_to_date.rs"]
mod up_to_date;
mod ways_in;
mod webhooks;
