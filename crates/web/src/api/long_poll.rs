//! Long polling for decisions, with `Prefer: wait=N`.

use std::time::Duration;

use actix_web::HttpRequest;
use countersign_domain::identity::account::Token;
use countersign_service::Stored;
use countersign_service::error::{Error, Result};
use countersign_service::log::Log;
use countersign_service::platform::core::Core;
use tokio::sync::Semaphore;

use crate::state::{Capability, EdgeConfig, capabilities};

/// The interval of checks without a commit, so that an expired deadline is noticed in time.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The pause after a check, as a multiple of the check's duration, if many requests wait.
const REST: u32 = 3;

/// The concurrency limit for checks. A commit wakes all waiting requests. Without the limit the next commit would queue
/// behind all of their checks.
static LOOKING: Semaphore = Semaphore::const_new(2);

capabilities! {
    /// The capabilities of a request that waits.
    pub struct LongPoll {
        core: Capability<Core>,
        edge: Capability<EdgeConfig>,
        log: Capability<Log>,
    }
}

impl LongPoll {
    /// Returns whether the token has lost its access.
    pub async fn is_revoked(&self, token: &Stored<Token>) -> bool {
        self.log.token_is_current(token).await.is_err()
    }
}

/// Calls `look` until it returns a result or the requested time is over, and returns `None` then. Refuses the request
/// if the token has too many waits.
pub async fn poll_until<T, Look>(
    app: &LongPoll,
    token: &Stored<Token>,
    wished: Duration,
    look: impl Fn() -> Look,
) -> Result<Option<T>>
where
    Look: Future<Output = Result<Option<T>>>,
{
    // The client's wish is capped, because each wait occupies a connection.
    let until = app.core.now().plus(wished.min(app.edge.wait_max));
    // The first look comes before the quota, so that an existing decision is always returned.
    let mut found = look().await?;
    // A seat is taken only for a real wait, and is released when the function returns.
    let _seat = match found.is_none() && !wished.is_zero() {
        true => Some(app.edge.waits.take(token.record.id.as_str()).ok_or(Error::TooMany)?),
        false => None,
    };
    loop {
        if found.is_some() {
            return Ok(found);
        }
        let left = app.core.now().until(until);
        if left.is_zero() {
            return Ok(None);
        }
        // A gateway that shuts down ends the wait. The client repeats its request at another gateway.
        tokio::select! {
            () = app.core.changed(left.min(LOOK_AGAIN)) => {}
            () = app.edge.streams.closed() => return Ok(None),
        }
        // The semaphore is never closed, so this cannot fail.
        let _turn = LOOKING.acquire().await.ok();
        let begun = app.core.instant();
        // The token may have been revoked during the wait.
        app.log.token_is_current(token).await?;
        found = look().await?;
        if found.is_none() && LOOKING.available_permits() == 0 {
            // The pause leaves most of the database's time to requests that change something, even if many requests
            // wait.
            let took = app.core.instant().saturating_duration_since(begun);
            tokio::time::sleep(took.saturating_mul(REST)).await;
        }
    }
}

/// Returns the wait that a request asks for.
pub fn requested_wait(request: &HttpRequest) -> Duration {
    let wishes = request.headers().get_all("prefer").filter_map(|it| it.to_str().ok());
    let wait = wishes.flat_map(|it| it.split(',')).find_map(|it| it.trim().strip_prefix("wait=")?.parse().ok());
    // `Prefer` is a hint (RFC 7240), so an unreadable wait means no wait and is not an error.
    Duration::from_secs(wait.unwrap_or(0))
}
