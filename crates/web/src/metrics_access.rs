//! Access to the metrics.

/// Who can read the metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricsAccess {
    Off,
    /// Clients with a token for metrics.
    Token,
    /// Every client that can reach the gateway.
    Open,
}
