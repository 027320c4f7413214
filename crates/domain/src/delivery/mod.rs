//! Webhooks, chat messages and email: payloads, signatures and retry schedules.

pub mod chat;
pub mod decision_payload;
pub mod delivery_record;
pub mod endpoint;
pub mod endpoint_kind;
pub mod failure;
pub mod instance_receiver;
pub mod langgraph;
pub mod mail_contact;
pub mod preflight;
pub mod retry_schedule;
pub mod signature;
pub mod template;
