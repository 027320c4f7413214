//! Webhooks: what arrives where, signed how, and what becomes of what does not. Receivers are real ones on this machine.

mod agents;
pub mod receiver;
#[macro_use]
mod scene;
mod chats;
mod counted;
mod docs;
mod exported;
mod langgraph;
mod managing;
mod order;
mod resuming;
mod retries;
mod secrets;
mod signatures;
mod templates;
mod told;
mod traces;
