//! Idempotency keys: a request with a key is carried out once, and a repetition gets the stored response.
//!
//! The commit that carries out the request also stores its response, so one never exists without the other.
//! Only the handler can encode the response, and the commit happens deep in a use case. Therefore the handler
//! leaves an encoder in a task-local, and the use case calls [`Service::store_response`]. Without an encoder
//! that call does nothing.

use std::any::Any;
use std::future::Future;

use countersign_adapters::random;
use countersign_domain::keys::Keys;
use countersign_domain::platform::idempotency::{
    IdempotencyError, IdempotencyRecord, IdempotentRequest, StoredResponse,
};
use countersign_store::RowFilter;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::records::KEPT;

use crate::error::{Error, Result};
use crate::platform::core::Core;

/// The longest stored response of a request that changed nothing. Such requests cost a client nothing and
/// could fill the database. A longer response is computed again, which is safe because nothing is done twice.
const ALONE_BYTES_MAX: usize = 16 * 1024;

/// Rows that one commit deletes. Each may be as long as a response.
const AT_ONCE: u32 = 16;

tokio::task_local! {
    static ASKED: IdempotentExecution;
}

/// The running request and the encoder of its response.
struct IdempotentExecution {
    request: IdempotentRequest,
    /// The expired response under the same key, which the new one replaces.
    before: Option<Stored<IdempotencyRecord>>,
    tell: ResponseEncoder,
}

/// Encodes the result of a use case. Returns `None` if the use case did not succeed.
type ResponseEncoder = Box<dyn Fn(&dyn Any) -> Option<StoredResponse>>;

/// A response, and whether it is the stored one of an earlier request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IdempotentResponse {
    First(StoredResponse),
    Again(StoredResponse),
}

impl Core {
    /// Carries a request out, or returns the stored response of an earlier one with the same key. `tell`
    /// encodes the result as a response. If several requests with one key run at once, on any gateways, one
    /// is carried out.
    pub async fn once<T: Any>(
        &self,
        request: &IdempotentRequest,
        tell: impl Fn(&T) -> Result<StoredResponse> + Clone + 'static,
        work: impl Future<Output = Result<T>>,
    ) -> Result<IdempotentResponse> {
        // Two requests with one key in this process: the second is refused. Other gateways conflict at the
        // commit.
        let _run = self.running.begin(&request.id)?;
        let keys = self.keys()?;
        let before = self.fetch::<IdempotencyRecord>(&keys, &request.id).await?;
        if let Some(kept) = before.as_ref().filter(|it| it.record.is_kept(self.now())) {
            return again(&keys, &kept.record, request).map(IdempotentResponse::Again);
        }
        // One encoder for the commit, and one for a response that is stored alone.
        let told = tell.clone();
        let tell_any: ResponseEncoder = Box::new(move |done| done.downcast_ref::<T>().and_then(|it| told(it).ok()));
        let asked = IdempotentExecution { request: request.clone(), before: before.clone(), tell: tell_any };
        let done = ASKED.scope(asked, work).await.and_then(|done| tell(&done));
        match self.current_response_record(&keys, request).await? {
            // The response was committed with the effect, or by another gateway that was faster with the same
            // request.
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

    /// Stores the response of a request that changed nothing, because it was done before or only reads.
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
        self.put(&mut draft, keys, request, before.as_ref(), &told)?;
        match self.commit(draft.finish()).await {
            Ok(()) => Ok(IdempotentResponse::First(told)),
            // Another gateway stored the response of the same request first.
            Err(error) if error.is_conflict() => match self.current_response_record(keys, request).await? {
                Some(kept) => answered(Ok(told), again(keys, &kept, request)),
                None => Err(Error::Busy),
            },
            Err(error) => Err(error),
        }
    }

    /// Adds the response to the change, if the running request has a key. `done` is the value that the use
    /// case returns after the commit.
    pub(crate) fn store_response<T: Any>(&self, draft: &mut Draft<'_>, keys: &Keys, done: &T) -> Result<()> {
        let put = |asked: &IdempotentExecution| {
            let told = (asked.tell)(done);
            debug_assert!(told.is_some(), "the use case stores the type that it returns");
            told.map_or(Ok(()), |told| self.put(draft, keys, &asked.request, asked.before.as_ref(), &told))
        };
        ASKED.try_with(put).unwrap_or(Ok(()))
    }

    fn put(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        request: &IdempotentRequest,
        before: Option<&Stored<IdempotencyRecord>>,
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

    /// Deletes expired responses. Returns how many.
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
            // Another gateway deletes too, or a key was used again. The next run deletes the rest.
            Err(error) if error.is_conflict() => Ok(0),
            done => done.map(|()| old.len()),
        }
    }
}

fn again(keys: &Keys, kept: &IdempotencyRecord, request: &IdempotentRequest) -> Result<StoredResponse> {
    let answer = kept.answer(keys.row(), request).ok_or(Error::Broken("a stored response"))?;
    Ok(answer?)
}

/// Prefers the stored response. One that was too long to store is returned this once.
fn answered(done: Result<StoredResponse>, kept: Result<StoredResponse>) -> Result<IdempotentResponse> {
    match (done, kept) {
        (Ok(done), Err(Error::NotRepeated(IdempotencyError::TooLong))) => Ok(IdempotentResponse::First(done)),
        (Ok(done), Ok(kept)) if done == kept => Ok(IdempotentResponse::First(done)),
        (_, kept) => kept.map(IdempotentResponse::Again),
    }
}
