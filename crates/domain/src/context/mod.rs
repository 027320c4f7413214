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
pub use folding::{EnvelopeRefusalKind, EnvelopeRefusalLog, RefusalCounts};
pub use input_schema::{InputMismatch, InputSchema};
pub use node_mac::{NodeSecretView, NodeSecrets, NodeSecretsView, Rotation};
pub use tokenizer::Encoding;
pub use truncate::{FittedView, Truncated, TruncationKind, ViewRejected, ViewRequirements, count_given, fit};
pub use verify::{ExpectedEnvelope, check, check_signed, check_sound};
