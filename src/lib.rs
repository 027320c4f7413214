//! Countersign, a self-hosted approval gateway for AI agents. Agents propose state changes, a policy commits them or
//! holds them for approval, and writers execute only approved changes with a signed receipt.
//!
//! Each layer is a module: `domain` (rules without I/O), `service` (use cases), `store` (the database), `web` (pages,
//! API and MCP), `worker` (background jobs) and `cli` (commands). `wiring` connects them.

pub mod cli;
pub mod config;
pub mod episode_folder;
pub mod service;
pub mod state_file;
pub mod web;
pub mod wiring;
pub mod worker;
