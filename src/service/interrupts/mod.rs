//! Interrupts from host applications: receives the request, counts the votes, and answers the host application.

mod duplicates;
pub mod lifecycle;
pub mod signed_posts;
mod view;

pub use view::InterruptView;
pub(super) use view::{end_data, end_event, posted_data, received_data, vote_data};
