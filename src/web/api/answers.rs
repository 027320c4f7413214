//! What calls are answered, as the description tells it. Every answer in the tests of the API is held against these.

mod facts;
mod others;
mod proposals;
mod reviews;
mod threads;

pub use facts::*;
pub use others::*;
pub use proposals::*;
pub use reviews::*;
pub use threads::*;
