//! Ids, times, secrets and text that is safe to show.

pub mod confusable;
pub mod id;
pub(crate) mod named_enum;
pub mod nearest;
pub mod openapi_schema;
pub mod sanitize;
pub mod secret;
pub mod time;
