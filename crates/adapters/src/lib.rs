//! Everything outside the process but the database: time, randomness, key file, archive files, HTTP, email, OpenID Connect
//! and telemetry.

pub mod archives;
pub mod clock;
pub mod http_client;
pub mod keyring;
pub mod log_sink;
pub mod mail;
pub mod metrics;
pub mod network;
pub mod oidc_provider;
pub mod random;
pub mod tls;
pub mod traces;
