//! `serve …`, and where a gateway listens.

use std::net::SocketAddr;

use crate::cli::demo::DemoDetail;
use crate::cli::serve::ClockPolicy;

/// `serve …`
#[derive(clap::Args, Debug)]
pub struct ServeArgs {
    /// The address to listen on.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Start although the clock is behind the newest event. Use it once, if the clock was ahead before and is correct now.
    #[arg(long)]
    pub clock_was_ahead: bool,
}

impl ServeArgs {
    /// Whether to start with a clock that is behind the newest event.
    pub const fn clock_back(&self) -> ClockPolicy {
        if self.clock_was_ahead { ClockPolicy::Allowed } else { ClockPolicy::Refused }
    }
}

/// `demo …`
#[derive(clap::Args, Debug)]
pub struct DemoArgs {
    /// The address to listen on.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Print the bodies of requests and responses.
    #[arg(long)]
    pub verbose: bool,
    /// The time in which reviewers can decide, such as `30s` or `10m`.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub deadline: String,
}

impl DemoArgs {
    /// Returns how much of each request is printed.
    pub const fn detail(&self) -> DemoDetail {
        if self.verbose { DemoDetail::Bodies } else { DemoDetail::Brief }
    }
}

/// The address to listen on.
#[derive(clap::Args, Debug)]
pub struct ListenArgs {
    /// The IP address and port to listen on.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
}
