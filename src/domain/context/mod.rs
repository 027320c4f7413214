//! Context for a node before a model call: its view, as much of it as fits, signed so that every reader can verify its
//! origin.

mod envelope;
mod folding;
mod input_schema;
mod node_mac;
mod tokenizer;
mod truncate;
mod verify;

pub use envelope::{Envelope, EnvelopeClaims, EnvelopeCode, EnvelopeMac, Epoch, MacAlg};
pub use folding::{Folded, Kind, Told};
pub use input_schema::{Misfit, Receives};
pub use node_mac::{NodeSecrets, Rotation, ShownSecret, ShownSecrets};
pub use tokenizer::Encoding;
pub use truncate::{Fitted, How, NotFitted, Truncated, Wish, count_given, fit};
pub use verify::{Expected, check, check_signed, check_sound};
