//! The HTTP layer: API, pages, MCP, assets, authentication and limits.

pub mod api;
pub mod assets;
pub mod auth;
mod body_limit;
pub mod client_ip;
pub mod limits;
pub mod mcp;
pub mod metrics_access;
pub mod pages;
mod rate_limit_key;
pub mod request_log;
pub mod server;
pub mod state;
