//! Tests webhooks: deliveries, their signatures, and failed deliveries. Receivers are real servers on localhost.

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
