//! Waiting for what is not decided yet, as long as the asker wishes: `Prefer: wait=N`.

use std::time::Duration;

use actix_web::HttpRequest;
use tokio::sync::Semaphore;

use crate::domain::identity::account::Token;
use crate::service::Stored;
use crate::service::error::{Error, Result};
use crate::web::state::AppState;

/// Whoever waits looks again at least this often, so that a deadline passes on time for them too.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// For so many times as long as a look took nobody else looks in its turn, where there are many.
const REST: u32 = 3;

/// Who of those that wait looks at the same time. A commit wakes all of them: were they to look at once, whoever commits
/// next would wait behind them.
static LOOKING: Semaphore = Semaphore::const_new(2);

/// What `look` finds, at once or within the time that is wished for; `None` if it is not there by then. Who waits
/// already as often as one may is refused.
pub async fn poll_until<T, Look>(
    app: &AppState,
    (token, wished): (&Stored<Token>, Duration),
    look: impl Fn() -> Look,
) -> Result<Option<T>>
where
    Look: Future<Output = Result<Option<T>>>,
{
    let until = app.service.now().plus(wished.min(app.edge.wait_max));
    let mut found = look().await?;
    let _seat = match found.is_none() && !wished.is_zero() {
        true => Some(app.edge.waits.take(token.record.id.as_str()).ok_or(Error::TooMany)?),
        false => None,
    };
    loop {
        if found.is_some() {
            return Ok(found);
        }
        let left = app.service.now().until(until);
        if left.is_zero() {
            return Ok(None);
        }
        // A gateway that ends keeps nobody: who asks again is answered by the next one.
        tokio::select! {
            () = app.service.changed(left.min(LOOK_AGAIN)) => {}
            () = app.edge.streams.closed() => return Ok(None),
        }
        // It is never closed.
        let _turn = LOOKING.acquire().await.ok();
        let begun = app.service.instant();
        // Whoever waited may not be let in any more.
        app.service.token_is_current(token).await?;
        found = look().await?;
        if found.is_none() && LOOKING.available_permits() == 0 {
            // Others wait to look, too: all of them together leave most of the time to whoever does something.
            let took = app.service.instant().saturating_duration_since(begun);
            tokio::time::sleep(took.saturating_mul(REST)).await;
        }
    }
}

/// How long a request wishes to wait.
pub fn requested_wait(request: &HttpRequest) -> Duration {
    let wishes = request.headers().get_all("prefer").filter_map(|it| it.to_str().ok());
    let wait = wishes.flat_map(|it| it.split(',')).find_map(|it| it.trim().strip_prefix("wait=")?.parse().ok());
    Duration::from_secs(wait.unwrap_or(0))
}
