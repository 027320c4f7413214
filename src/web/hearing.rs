//! Hearing a request out: what is sent comes in its time, within its sender's share of the memory, and counts as said when its
//! last byte is there. Whoever was let in at the first byte may not be any more by then.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_LENGTH;

use super::app::App;
use super::seats::Seat;
use crate::service::error::Error;

/// Whoever sends for longer has hung up, or holds on to what others need.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of one sender's requests that are not all there yet. One alone may be longer.
pub const OF_ONE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of everybody's.
pub const ALL_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Whoever signs what they send is known when all of it is there. Until then they share what one sender may take.
pub const NOBODY_YET: &str = "";

/// What was heard.
pub struct Heard<T> {
    /// What was sent.
    pub sent: T,
    /// Whether it was waited for: then whoever sent it is looked at again.
    pub late: bool,
}

/// All that somebody sends. What is there at once is taken as it is; forms are too short to be counted.
pub async fn heard<T, E>(
    counted: Option<(&HttpRequest, &App, &str)>,
    sent: impl Future<Output = Result<T, E>>,
) -> Result<Heard<Result<T, E>>, Error> {
    let mut sent = pin!(sent);
    if let Poll::Ready(sent) = futures_util::poll!(&mut sent) {
        return Ok(Heard { sent, late: false });
    }
    let _seat = counted.map(seat).transpose()?;
    let late = |_| Error::invalid("", "the body was not all there within thirty seconds; send it again");
    Ok(Heard { sent: tokio::time::timeout(PATIENCE, sent).await.map_err(late)?, late: true })
}

fn seat((request, app, asker): (&HttpRequest, &App, &str)) -> Result<Seat, Error> {
    let length = request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
    // Without a length it may be as long as any.
    let bytes = length.unwrap_or(usize::MAX).min(app.edge.body_bytes_max);
    app.edge.unheard.take_so_much(asker, bytes).ok_or(Error::TooMany)
}
