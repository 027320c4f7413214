//! Limits on size, depth, rate and waiting time.

use std::num::NonZeroU32;
use std::time::Duration;

use countersign_domain::json::size::STATE_DEPTH_CEILING;

use super::ConfigError;
use super::settings::ConfigLayers;

#[derive(Clone, Debug)]
pub struct LimitsConfig {
    pub body_bytes: usize,
    pub depth: usize,
    pub state_bytes: usize,
    /// The largest number of leaves in a state.
    pub leaves: usize,
    /// Requests per second and token. `None` means no limit.
    pub rate_per_sec: Option<NonZeroU32>,
    /// Requests that a token can make at once before the rate applies.
    pub burst: u32,
    /// Failed sign-ins within the window before the throttle applies.
    pub sign_in_attempts: u32,
    pub sign_in_window: Duration,
    /// The longest wait of a long-polling request.
    pub wait: Duration,
    /// How many requests of one token can wait for decisions at the same time.
    pub waiting: usize,
    /// How long responses are stored, for requests that are repeated with the same idempotency key.
    pub idempotency: Duration,
}

impl LimitsConfig {
    pub(super) fn read(settings: &mut ConfigLayers) -> Result<Self, ConfigError> {
        Ok(Self {
            body_bytes: settings.number("limits.body_bytes", 1_024..=268_435_456)?,
            // Parsing, canonicalization and diff are recursive, so the stack size bounds the depth.
            depth: settings.number("limits.depth", 1..=STATE_DEPTH_CEILING)?,
            state_bytes: settings.number("limits.state_bytes", 2..=268_435_456)?,
            leaves: settings.number("limits.leaves", 1..=1_000_000)?,
            // Zero disables the limit, so it becomes `None`, and no code can divide by it.
            rate_per_sec: NonZeroU32::new(settings.number("limits.rate_per_sec", 0..=1_000_000)?),
            burst: settings.number("limits.burst", 1..=10_000_000)?,
            sign_in_attempts: settings.number("limits.sign_in_attempts", 1..=1_000)?,
            sign_in_window: settings.secs("limits.sign_in_window_secs", 1..=86_400)?,
            wait: settings.secs("limits.wait_secs", 0..=600)?,
            waiting: settings.number("limits.waiting", 1..=10_000)?,
            idempotency: settings.secs("limits.idempotency_secs", 60..=2_592_000)?,
        })
    }
}
