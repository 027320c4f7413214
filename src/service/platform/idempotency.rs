//! Requests that have a key: carried out once, and answered as before whenever they come again.
//!
//! The answer is kept in the change that makes it true, so neither is ever there without the other. What a use case
//! commits is decided far below the handler that knows the words; so a handler leaves here how it would tell what was
//! done, for as long as the request runs, and the use case puts the answer into its change by [`Service::put_answer`].
//! Where nobody asked for that, it puts nothing.

use std::any::Any;
use std::collections::HashSet;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::domain::keys::Keys;
use crate::domain::platform::idempotency::{IdempotencyError, IdempotencyRecord, IdempotentRequest, StoredResponse};
use crate::random;
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::store::RowFilter;
use crate::store::change::Draft;
use crate::store::record::Stored;
use crate::store::records::KEPT;

/// A night, and the day on which somebody sees what went wrong in it.
pub const ANSWERS_KEPT: Duration = Duration::from_secs(24 * 3600);

/// A request that had nothing to change may be sent under any number of keys. What it is answered is kept up to here; what is
/// longer is told anew, and nothing is done twice by that.
const ALONE_BYTES_MAX: usize = 16 * 1024;

/// Rows that one change forgets. Each may be as long as an answer.
const AT_ONCE: u32 = 16;

tokio::task_local! {
    static ASKED: IdempotentExecution;
}

/// How the request that runs is to be answered, for who keeps that.
struct IdempotentExecution {
    request: IdempotentRequest,
    /// What was kept under the key before, and is kept no longer.
    before: Option<Stored<IdempotencyRecord>>,
    tell: ResponseEncoder,
}

/// What was done, in words; nothing, if it did not succeed.
type ResponseEncoder = Box<dyn Fn(&dyn Any) -> Option<StoredResponse>>;

/// The keys of the requests that run here.
#[derive(Debug, Default)]
pub(in crate::service) struct InFlightKeys(Mutex<HashSet<String>>);

/// One of them, for as long as it runs.
struct ExecutionGuard<'a> {
    running: &'a InFlightKeys,
    id: String,
}

impl InFlightKeys {
    fn begin(&self, id: &str) -> Result<ExecutionGuard<'_>> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if running.insert(id.to_owned()) {
            Ok(ExecutionGuard { running: self, id: id.to_owned() })
        } else {
            Err(IdempotencyError::Running.into())
        }
    }
}

impl Drop for ExecutionGuard<'_> {
    fn drop(&mut self) {
        self.running.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// An answer, and whether it was given before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IdempotentResponse {
    First(StoredResponse),
    Again(StoredResponse),
}

impl Service {
    /// The same service, which keeps answers for so long.
    #[must_use]
    pub fn with_response_ttl(self, time: Duration) -> Self {
        Self { answers_kept: time, ..self }
    }

    /// Carries a request out, unless it was before: then the answer is the one of that time. `tell` says what was done
    /// in the words of the answer. Of any number that run at once, on any gateways, one is carried out.
    pub async fn once<T: Any>(
        &self,
        request: &IdempotentRequest,
        tell: impl Fn(&T) -> Result<StoredResponse> + Clone + 'static,
        work: impl Future<Output = Result<T>>,
    ) -> Result<IdempotentResponse> {
        let _run = self.running.begin(&request.id)?;
        let keys = self.keys()?;
        let before = self.fetch::<IdempotencyRecord>(&keys, &request.id).await?;
        if let Some(kept) = before.as_ref().filter(|it| it.record.is_kept(self.now())) {
            return again(&keys, &kept.record, request).map(IdempotentResponse::Again);
        }
        let told = tell.clone();
        let tell_any: ResponseEncoder = Box::new(move |done| done.downcast_ref::<T>().and_then(|it| told(it).ok()));
        let asked = IdempotentExecution { request: request.clone(), before: before.clone(), tell: tell_any };
        let done = ASKED.scope(asked, work).await.and_then(|done| tell(&done));
        match self.current_response_record(&keys, request).await? {
            // With the effect, a moment ago; or by another gateway that was faster with the same request.
            Some(kept) => answered(done, again(&keys, &kept, request)),
            None => self.store_response_alone(&keys, request, before, done.map_err(Error::busy_if_conflict)?).await,
        }
    }

    async fn current_response_record(
        &self,
        keys: &Keys,
        request: &IdempotentRequest,
    ) -> Result<Option<IdempotencyRecord>> {
        let kept = self.fetch::<IdempotencyRecord>(keys, &request.id).await?.map(|it| it.record);
        Ok(kept.filter(|it| it.is_kept(self.now())))
    }

    /// Keeps the answer to a request that had nothing to change: it was done before, or asks only.
    async fn store_response_alone(
        &self,
        keys: &Keys,
        request: &IdempotentRequest,
        before: Option<Stored<IdempotencyRecord>>,
        told: StoredResponse,
    ) -> Result<IdempotentResponse> {
        if told.body.expose().len() > ALONE_BYTES_MAX {
            return Ok(IdempotentResponse::First(told));
        }
        let mut draft = Draft::new(keys.row(), self.now());
        self.put(&mut draft, keys, (request, before.as_ref()), &told)?;
        match self.commit(draft.finish()).await {
            Ok(()) => Ok(IdempotentResponse::First(told)),
            Err(error) if error.is_conflict() => match self.current_response_record(keys, request).await? {
                Some(kept) => answered(Ok(told), again(keys, &kept, request)),
                None => Err(Error::Busy),
            },
            Err(error) => Err(error),
        }
    }

    /// Adds the answer to the change that makes it true, if the request that runs has a key. `done` is what the use
    /// case gives back once the change is committed.
    pub(in crate::service) fn store_response<T: Any>(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        done: &T,
    ) -> Result<()> {
        let put = |asked: &IdempotentExecution| {
            let told = (asked.tell)(done);
            debug_assert!(told.is_some(), "what is kept is what the use case gives back");
            told.map_or(Ok(()), |told| self.put(draft, keys, (&asked.request, asked.before.as_ref()), &told))
        };
        ASKED.try_with(put).unwrap_or(Ok(()))
    }

    fn put(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        (request, before): (&IdempotentRequest, Option<&Stored<IdempotencyRecord>>),
        told: &StoredResponse,
    ) -> Result<()> {
        let until = self.now().plus(self.answers_kept);
        let kept = IdempotencyRecord::new(keys.row(), request, told, until, random::bytes());
        match before {
            Some(before) => draft.replace(before, &kept)?,
            None => drop(draft.insert(&kept)?),
        }
        Ok(())
    }

    /// Forgets answers that are kept no longer. Says how many.
    pub async fn prune_responses(&self) -> Result<usize> {
        let (keys, now) = (self.keys()?, self.now());
        let old = self.reader(&keys).list::<IdempotencyRecord>(RowFilter::DueBy(KEPT, now), None, AT_ONCE).await?;
        if old.is_empty() {
            return Ok(0);
        }
        let mut draft = Draft::new(keys.row(), now);
        for stored in &old {
            draft.remove(stored);
        }
        match self.commit(draft.finish()).await {
            // Another gateway forgets, too, or a key was used again: the next run looks again.
            Err(error) if error.is_conflict() => Ok(0),
            done => done.map(|()| old.len()),
        }
    }
}

fn again(keys: &Keys, kept: &IdempotencyRecord, request: &IdempotentRequest) -> Result<StoredResponse> {
    let answer = kept.answer(keys.row(), request).ok_or(Error::Broken("an answer that was kept"))?;
    Ok(answer?)
}

/// What was kept counts. What is too long for that is given this once.
fn answered(done: Result<StoredResponse>, kept: Result<StoredResponse>) -> Result<IdempotentResponse> {
    match (done, kept) {
        (Ok(done), Err(Error::NotRepeated(IdempotencyError::TooLong))) => Ok(IdempotentResponse::First(done)),
        (Ok(done), Ok(kept)) if done == kept => Ok(IdempotentResponse::First(done)),
        (_, kept) => kept.map(IdempotentResponse::Again),
    }
}
