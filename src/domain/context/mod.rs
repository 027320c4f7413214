//! Context for a node before a model call: its view, as much of it as fits, signed so that every reader can verify its
//! origin.

mod checking;
mod encoding;
mod envelope;
mod fitting;
mod folding;
mod mac;
mod receiving;

pub use checking::{Expected, check, check_signed, check_sound};
pub use encoding::Encoding;
pub use envelope::{Envelope, EnvelopeClaims, EnvelopeCode, EnvelopeMac, Epoch, MacAlg};
pub use fitting::{Fitted, How, NotFitted, Truncated, Wish, count_given, fit};
pub use folding::{Folded, Kind, Told};
pub use mac::{NodeSecrets, Rotation, ShownSecret, ShownSecrets};
pub use receiving::{Misfit, Receives};
