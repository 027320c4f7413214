//! Halts (kill switch) of one flow or of all flows: setting them, and lifting them by one or two people.

use countersign_domain::identity::account::{Account, Token};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::operations::halt;
use countersign_domain::operations::halt::{
    ActiveHalts, Halt, HaltRecord, LiftOutcome, LiftQuorum, LiftRejected, LiftRequest, LiftRequester,
};
use countersign_domain::primitives::id::{AccountId, FlowId, PrincipalId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::flow::{Flow, Gateway};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::{LIST_ROWS_MAX, RowFilter};
use serde_json::{Value, json};

pub use super::halt_request::{HaltPreview, HaltRequest};
use crate::error::{Error, Result};
pub use crate::identity::actor::Actor;
use crate::operations::Operations;
use crate::platform::event_recorder;
use crate::platform::reason::cut_reason;
use crate::platform::retry::retrying;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HaltScope {
    All,
    Flow(FlowId),
}

impl HaltScope {
    /// Returns the flow, or `None` for all flows.
    const fn flow(&self) -> Option<&FlowId> {
        match self {
            Self::All => None,
            Self::Flow(flow) => Some(flow),
        }
    }
}

/// A requested change of a halt.
#[derive(Clone, Copy)]
struct HaltUpdate<'a> {
    row: &'a HaltRow,
    next: &'a Halt,
    who: Actor<'a>,
    at: Timestamp,
}

/// Two people who lift a halt together.
struct LiftPair<'a> {
    first: &'a LiftRequest,
    second: AccountId,
}

const MOVED_ON: &str =
    "The halt, or a request to lift it, has changed since you read this page. Check the halt and try again";

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HaltState {
    pub scope: HaltScope,
    pub halt: Halt,
    /// Who halted it, and how many people must lift it.
    pub stops: Option<ActiveHalts>,
}

/// The row that stores the halt of a scope.
enum HaltRow {
    Gateway(Stored<Gateway>),
    Flow(Stored<Flow>),
}

impl HaltRow {
    const fn halt(&self) -> &Halt {
        match self {
            Self::Gateway(row) => &row.record.halt,
            Self::Flow(row) => &row.record.halt,
        }
    }

    const fn stops(&self) -> Option<&ActiveHalts> {
        match self {
            Self::Gateway(row) => row.record.stops.as_ref(),
            Self::Flow(row) => row.record.stops.as_ref(),
        }
    }

    const fn flow(&self) -> Option<&FlowId> {
        match self {
            Self::Gateway(_) => None,
            Self::Flow(row) => Some(&row.record.id),
        }
    }

    /// Returns the next revision of the row. An audit uses it to detect a restored old row, which would undo
    /// a halt or a lift.
    const fn next_revision(&self) -> i64 {
        match self {
            Self::Gateway(row) => row.revision + 1,
            Self::Flow(row) => row.revision + 1,
        }
    }

    fn replace(&self, draft: &mut Draft<'_>, halt: Halt, stops: Option<ActiveHalts>) -> Result<()> {
        match self {
            Self::Gateway(row) => draft.replace(row, &Gateway { halt, stops, ..row.record.clone() })?,
            Self::Flow(row) => draft.replace(row, &Flow { halt, stops, ..row.record.clone() })?,
        }
        Ok(())
    }

    fn standing(&self) -> HaltState {
        let scope = self.flow().map_or(HaltScope::All, |it| HaltScope::Flow(it.clone()));
        HaltState { scope, halt: self.halt().clone(), stops: self.stops().cloned() }
    }
}

/// A person who lifts a halt, with the rows that prove the person's rights.
struct HaltApprover {
    account: Stored<Account>,
    token: Option<Stored<Token>>,
}

impl HaltApprover {
    fn lifter(&self) -> LiftRequester<'_> {
        let account = &self.account.record;
        let token = self.token.as_ref().map(|it| it.record.created_at);
        LiftRequester { account, since: token.map_or(account.settled_at(), |it| it.max(account.settled_at())) }
    }

    /// Returns whether this is the person who made the request, and whether the person may still lift halts.
    /// A token has its own scope, so the account's role does not matter for it.
    fn is_still(&self, asked: &LiftRequest) -> bool {
        let account = &self.account.record;
        account.id == asked.person && (self.token.is_some() || account.administers())
    }

    fn rely(&self, draft: &mut Draft<'_>) {
        draft.require_unchanged(&self.account);
        if let Some(token) = &self.token {
            draft.require_unchanged(token);
        }
    }
}

impl Operations {
    /// Returns the halts of the gateway and of each flow.
    pub async fn halts(&self) -> Result<Vec<HaltState>> {
        let keys = self.core.keys()?;
        let mut all = vec![HaltRow::Gateway(self.core.gateway(&keys).await?).standing()];
        // A gateway has a few flows, so one list is enough.
        let flows = self.core.reader(&keys).list::<Flow>(RowFilter::All, None, LIST_ROWS_MAX).await?;
        all.extend(flows.into_iter().map(|it| HaltRow::Flow(it).standing()));
        Ok(all)
    }

    /// Returns how many people must lift this halt, or a halt that is set now.
    pub fn lift_needs(&self, stops: Option<&ActiveHalts>) -> LiftQuorum {
        self.core.settings.people.lift_needs.max(stops.map_or(LiftQuorum::One, |it| it.lift_needs))
    }

    /// Sets the halts of a scope on behalf of an operator with the keyring, without a second person. Writes
    /// in progress continue, and new requests are refused.
    pub async fn set_halt(&self, by: &PrincipalId, scope: &HaltScope, halt: &Halt) -> Result<()> {
        let reason = self.policies.mask_reason(&*self.core.keys()?, scope.flow(), &halt.reason).await;
        let halt = &Halt { reason, ..halt.clone() };
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let row = self.halt_row(&keys, scope).await?;
            let mut draft = Draft::new(keys.row(), now);
            let stop =
                HaltRecord { by: by.clone(), name: by.as_str().to_owned(), at: now, reason: halt.reason.clone() };
            self.put_halt(&mut draft, &row, halt, &stop, None)?;
            self.core.commit(draft.finish()).await
        })
    }

    /// Halts or resumes a scope. If two people must lift the halt, the request of the first one is only
    /// stored. Returns the resulting state of the scope.
    pub async fn request_halt(&self, who: Actor<'_>, scope: &HaltScope, wish: &HaltRequest) -> Result<HaltState> {
        self.request_halt_as_previewed(who, scope, wish, None).await
    }

    /// Halts or resumes a scope, if the result still is the one that the person saw in a preview.
    pub async fn request_halt_as_previewed(
        &self,
        who: Actor<'_>,
        scope: &HaltScope,
        wish: &HaltRequest,
        told: Option<HaltPreview>,
    ) -> Result<HaltState> {
        // A long reason is cut instead of refused: an emergency halt must not fail for its length.
        let reason = cut_reason(&wish.halt().reason);
        let reason = self.policies.mask_reason(&*self.core.keys()?, scope.flow(), &reason).await;
        // Masked before the first attempt, because the masking reads policies and needs no retry.
        let wish = &wish.saying(reason);
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let row = self.halt_row(&keys, scope).await?;
            let next = wish.next(row.halt());
            let mut draft = Draft::new(keys.row(), now);
            who.rely(&mut draft);
            let lift = self.lift_of(&mut draft, &keys, HaltUpdate { row: &row, next: &next, who, at: now }).await?;
            // The person confirmed another result than the request would have now.
            if told.is_some_and(|it| it != preview_of(lift.as_ref())) {
                return Err(Error::WrongState(MOVED_ON));
            }
            let confirms = match lift {
                None => None,
                Some((LiftOutcome::Waiting, _)) => return Ok(row.standing()),
                Some((LiftOutcome::Asked(lifting), _)) => {
                    let stops = put_lifting(&mut draft, &row, lifting, now)?;
                    self.core.commit(draft.finish()).await?;
                    return Ok(HaltState { stops: Some(stops), ..row.standing() });
                }
                Some((LiftOutcome::Confirmed, second)) => {
                    row.stops().and_then(|it| it.lifting.as_ref()).map(|first| LiftPair { first, second })
                }
            };
            let stop =
                HaltRecord { by: who.principal(), name: who.name().to_owned(), at: now, reason: next.reason.clone() };
            let stops = self.put_halt(&mut draft, &row, &next, &stop, confirms.as_ref())?;
            self.core.commit(draft.finish()).await?;
            Ok(HaltState { halt: next, stops, ..row.standing() })
        })
    }

    /// Returns what a request would do now.
    pub async fn preview_halt(&self, who: Actor<'_>, scope: &HaltScope, wish: &HaltRequest) -> Result<HaltPreview> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let row = self.halt_row(&keys, scope).await?;
        let next = wish.next(row.halt());
        let lift = self
            .lift_of(&mut Draft::new(keys.row(), now), &keys, HaltUpdate { row: &row, next: &next, who, at: now })
            .await?;
        Ok(preview_of(lift.as_ref()))
    }

    async fn halt_row(&self, keys: &Keys, scope: &HaltScope) -> Result<HaltRow> {
        Ok(match scope {
            HaltScope::All => HaltRow::Gateway(self.core.gateway(keys).await?),
            HaltScope::Flow(id) => HaltRow::Flow(self.core.flow(keys, id).await?),
        })
    }

    fn put_halt(
        &self,
        draft: &mut Draft<'_>,
        row: &HaltRow,
        halt: &Halt,
        stop: &HaltRecord,
        confirms: Option<&LiftPair<'_>>,
    ) -> Result<Option<ActiveHalts>> {
        // The stricter of the setting and the stored value, so that a changed setting cannot weaken an active
        // halt.
        let needs = self.lift_needs(row.stops());
        let stops = ActiveHalts::after(row.stops(), halt, stop, needs);
        row.replace(draft, halt.clone(), stops.clone())?;
        let kind = if halt.proposing || halt.verifying { EventType::Halted } else { EventType::HaltLifted };
        let data = halt_data(halt, stop, needs, row.next_revision(), confirms);
        event_recorder::outside(draft, row.flow(), stop.at, kind, data)?;
        Ok(stops)
    }

    /// Returns the outcome of a request to lift a halt that needs two people, and the requester's account.
    /// Returns `None` for any other request.
    async fn lift_of(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        update: HaltUpdate<'_>,
    ) -> Result<Option<(LiftOutcome, AccountId)>> {
        let HaltUpdate { row, next, .. } = update;
        if !halt::lifts(row.halt(), next) || self.lift_needs(row.stops()) != LiftQuorum::Two {
            return Ok(None);
        }
        self.lift(draft, keys, update).await.map(Some)
    }

    /// Judges a request to lift a halt that needs two people, by the current rights of both.
    async fn lift(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        HaltUpdate { row, next, who, at }: HaltUpdate<'_>,
    ) -> Result<(LiftOutcome, AccountId)> {
        let refused = |why: LiftRejected| Error::WrongState(why.words());
        // One request must not both halt and lift, because only the lift needs two people.
        if halt::stops(row.halt(), next) {
            return Err(refused(LiftRejected::Both));
        }
        let me = self.halt_approver(keys, &who.principal()).await?.ok_or(refused(LiftRejected::Nobody))?;
        let asked = row.stops().and_then(|it| it.lifting.as_ref());
        let first = match asked {
            Some(asked) => self.halt_approver(keys, &asked.by).await?.filter(|it| it.is_still(asked)),
            None => None,
        };
        let wish = LiftRequest {
            by: who.principal(),
            person: me.account.record.id.clone(),
            name: me.account.record.name.clone(),
            at,
            reason: next.reason.clone(),
            proposing: next.proposing,
            verifying: next.verifying,
        };
        let lift =
            halt::lift(row.stops(), wish, me.lifter(), first.as_ref().map(HaltApprover::lifter)).map_err(refused)?;
        me.rely(draft);
        if let (LiftOutcome::Confirmed, Some(first)) = (&lift, &first) {
            first.rely(draft);
        }
        Ok((lift, me.account.record.id))
    }

    /// Returns the person who owns an account or a token. The token of a team identifies no person, and a
    /// revoked token is invalid.
    async fn halt_approver(&self, keys: &Keys, by: &PrincipalId) -> Result<Option<HaltApprover>> {
        let standing = |it: Stored<Account>| Stored { record: self.identity.with_effective_status(it.record), ..it };
        if let Some(account) = self.core.fetch::<Account>(keys, by.as_str()).await?.map(standing) {
            return Ok(Some(HaltApprover { account, token: None }));
        }
        let token = self.core.fetch::<Token>(keys, by.as_str()).await?.filter(|it| !it.record.revoked);
        let Some(token) = token else { return Ok(None) };
        let owner = self.core.reader(keys).get_by_alias::<Account>(&token.record.owner).await?;
        Ok(owner.map(standing).map(|account| HaltApprover { account, token: Some(token) }))
    }
}

const fn preview_of(lift: Option<&(LiftOutcome, AccountId)>) -> HaltPreview {
    match lift {
        Some((LiftOutcome::Asked(_) | LiftOutcome::Waiting, _)) => HaltPreview::Asked,
        Some((LiftOutcome::Confirmed, _)) | None => HaltPreview::Done,
    }
}

fn put_lifting(draft: &mut Draft<'_>, row: &HaltRow, lifting: LiftRequest, at: Timestamp) -> Result<ActiveHalts> {
    let data = json!({
        "by": lifting.by, "person": lifting.person, "name": lifting.name, "reason": lifting.reason,
        "proposing": lifting.proposing, "verifying": lifting.verifying, "revision": row.next_revision(),
    });
    let stops = ActiveHalts::asked(row.stops(), row.halt(), lifting);
    row.replace(draft, row.halt().clone(), Some(stops.clone()))?;
    event_recorder::outside(draft, row.flow(), at, EventType::HaltLifting, data)?;
    Ok(stops)
}

fn halt_data(halt: &Halt, stop: &HaltRecord, needs: LiftQuorum, revision: i64, pair: Option<&LiftPair<'_>>) -> Value {
    let mut data = json!({
        "by": stop.by, "name": stop.name, "proposing": halt.proposing, "verifying": halt.verifying,
        "reason": halt.reason, "revision": revision, "lift_needs": needs,
    });
    if let Some(LiftPair { first, second }) = pair {
        data["person"] = json!(second);
        data["confirms"] = json!({"by": first.by, "person": first.person, "at": first.at});
    }
    data
}
