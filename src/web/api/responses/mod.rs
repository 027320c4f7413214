//! What calls are answered, as the description tells it. Every answer in the tests of the API is held against these.

mod admin;
pub mod endpoints;
mod problem_extensions;
mod proposals;
mod reviews;
mod threads;

pub use admin::*;
pub use problem_extensions::*;
pub use proposals::*;
pub use reviews::*;
pub use threads::*;
