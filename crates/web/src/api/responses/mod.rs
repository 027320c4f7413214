//! Response schemas of the OpenAPI document. The API tests check every response against them.

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
