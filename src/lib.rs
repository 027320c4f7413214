//! Countersign, a self-hosted approval gateway for AI agents. Agents propose state changes, a policy commits them or
//! holds them for approval, and writers execute only approved changes with a signed receipt.
//!
//! The layers below are crates: domain (rules without I/O), adapters (the outside), store (the database), service (use
//! cases) and web (pages, API and MCP). The others are modules: `worker` (background jobs) and `cli` (commands). `wiring`
//! connects them.

pub mod cli;
pub mod config;
pub mod episode_folder;
pub mod state_file;
pub mod wiring;
pub mod worker;
