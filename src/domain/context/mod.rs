//! What a node is given before a model is called: its view, as much of it as fits, sealed so that whoever holds it can
//! tell what it is a view of.

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
