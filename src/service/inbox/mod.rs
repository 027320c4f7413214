//! The inbox: lists pending reviews, ended reviews and search results, page by page.
//!
//! A page reads a bounded number of rows with a few queries, however many reviews there are. It reads the list with the
//! most selective label, checks the other conditions on the rows, and loads all related rows at once.

pub mod bulk_decisions;
mod filter;
mod interrupts;
pub mod list;

pub use filter::{InboxFilter, InboxOwnerFilter, InboxSearch, InboxStateFilter};
pub use interrupts::InterruptListing;
