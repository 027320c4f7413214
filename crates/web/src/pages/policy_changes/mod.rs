//! Pages about policy changes and replays.

pub mod change_request;
pub mod change_request_view;
pub mod replay;
pub mod replay_view;
