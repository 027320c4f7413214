//! What is reached over HTTP.

pub mod api;
pub mod app;
mod asker;
pub mod assets;
pub mod auth;
pub mod form_token;
pub mod hearing;
pub mod mcp;
pub mod pages;
pub mod peers;
pub mod request_id;
pub mod roles;
pub mod seats;
pub mod site;
pub mod streams;
pub mod throttle;
pub mod unread;
