//! Countersign: the second signature that makes an order valid.

pub mod archives;
pub mod cli;
pub mod clock;
pub mod config;
pub mod domain;
pub mod episode_folder;
pub mod feed;
pub mod gateway;
pub mod keyring;
pub mod mail;
pub mod metrics;
pub mod outgoing;
pub mod provider;
pub mod random;
pub mod service;
pub mod state_file;
pub mod store;
pub mod tls;
pub mod traces;
pub mod web;
pub mod worker;
