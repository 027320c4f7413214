//! Countersign: the second signature that makes an order valid.

pub mod archives;
pub mod cli;
pub mod clock;
pub mod config;
pub mod domain;
pub mod episode_folder;
pub mod http_client;
pub mod keyring;
pub mod log_sink;
pub mod mail;
pub mod metrics;
pub mod oidc_provider;
pub mod random;
pub mod service;
pub mod state_file;
pub mod store;
pub mod tls;
pub mod traces;
pub mod web;
pub mod wiring;
pub mod worker;
