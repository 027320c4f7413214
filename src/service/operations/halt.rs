//! Stops: proposing and verifying, of one flow or of all; who pulls them, and who lets things go on.

pub use super::halt_request::{Foreseen, Puller, Wish};

use serde_json::{Value, json};

use crate::domain::identity::account::{Account, Token};
use crate::domain::keys::Keys;
use crate::domain::log::event::EventType;
use crate::domain::operations::halt;
use crate::domain::operations::halt::{Halt, Lift, LiftNeeds, LiftRefused, Lifter, Lifting, Stop, Stops};
use crate::domain::primitives::id::{AccountId, FlowId, PrincipalId};
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::flow::{Flow, Gateway};
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::platform::event_recorder;
use crate::service::platform::retry::retrying;
use crate::service::writes::outcome::cut_reason;
use crate::store::change::Draft;
use crate::store::record::Stored;
use crate::store::{Filter, LIST_ROWS_MAX};

/// Whoever may run commands on the gateway's own machine, with its keyring: nobody else lifts alone what needs two.
pub const OPERATOR: &str = "command-line";

/// What is stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Everything.
    All,
    /// One flow.
    Flow(FlowId),
}

impl Scope {
    /// Which flow, unless it is all of them.
    const fn flow(&self) -> Option<&FlowId> {
        match self {
            Self::All => None,
            Self::Flow(flow) => Some(flow),
        }
    }
}

/// Two people who lift together.
struct Pair<'a> {
    first: &'a Lifting,
    second: AccountId,
}

const MOVED_ON: &str =
    "Somebody else has asked to lift it, or lifted it, since you read this. Nothing was done: look again";

/// How a scope stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Halting {
    /// Of what.
    pub scope: Scope,
    /// What is stopped.
    pub halt: Halt,
    /// By whom, and how it may go on.
    pub stops: Option<Stops>,
}

/// The row that a scope's halt stands in.
enum Row {
    Gateway(Stored<Gateway>),
    Flow(Stored<Flow>),
}

impl Row {
    const fn halt(&self) -> &Halt {
        match self {
            Self::Gateway(row) => &row.record.halt,
            Self::Flow(row) => &row.record.halt,
        }
    }

    const fn stops(&self) -> Option<&Stops> {
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

    /// Which revision of it is next: an audit sees by it that a lifted halt was not put back, or the reverse.
    const fn next_revision(&self) -> i64 {
        match self {
            Self::Gateway(row) => row.revision + 1,
            Self::Flow(row) => row.revision + 1,
        }
    }

    fn replace(&self, draft: &mut Draft<'_>, halt: Halt, stops: Option<Stops>) -> Result<()> {
        match self {
            Self::Gateway(row) => draft.replace(row, &Gateway { halt, stops, ..row.record.clone() })?,
            Self::Flow(row) => draft.replace(row, &Flow { halt, stops, ..row.record.clone() })?,
        }
        Ok(())
    }

    fn standing(&self) -> Halting {
        let scope = self.flow().map_or(Scope::All, |it| Scope::Flow(it.clone()));
        Halting { scope, halt: self.halt().clone(), stops: self.stops().cloned() }
    }
}

/// Somebody in particular, as they stand now, with the rows that say so.
struct Somebody {
    account: Stored<Account>,
    token: Option<Stored<Token>>,
}

impl Somebody {
    fn lifter(&self) -> Lifter<'_> {
        let account = &self.account.record;
        let token = self.token.as_ref().map(|it| it.record.created_at);
        Lifter { account, since: token.map_or(account.settled_at(), |it| it.max(account.settled_at())) }
    }

    /// Whether it is who asked, and still one of those who may. A token says itself what it may.
    fn is_still(&self, asked: &Lifting) -> bool {
        let account = &self.account.record;
        account.id == asked.person && (self.token.is_some() || account.administers())
    }

    fn rely(&self, draft: &mut Draft<'_>) {
        draft.rely_on(&self.account);
        if let Some(token) = &self.token {
            draft.rely_on(token);
        }
    }
}

impl Service {
    /// How the whole and each flow stand.
    pub async fn halts(&self) -> Result<Vec<Halting>> {
        let keys = self.keys()?;
        let mut all = vec![Row::Gateway(self.gateway(&keys).await?).standing()];
        let flows = self.reader(&keys).list::<Flow>(Filter::All, None, LIST_ROWS_MAX).await?;
        all.extend(flows.into_iter().map(|it| Row::Flow(it).standing()));
        Ok(all)
    }

    /// How many people lift a halt that stands so, or would be set now.
    pub fn lift_needs(&self, stops: Option<&Stops>) -> LiftNeeds {
        self.settings.people.lift_needs.max(stops.map_or(LiftNeeds::One, |it| it.lift_needs))
    }

    /// Sets the stops of a scope as they shall be, by whoever holds the keyring: nobody else is asked. What is in
    /// progress is not undone, but asking again is refused.
    pub async fn set_halt(&self, by: &PrincipalId, scope: &Scope, halt: &Halt) -> Result<()> {
        let reason = self.masked_outside(&*self.keys()?, scope.flow(), &halt.reason).await;
        let halt = &Halt { reason, ..halt.clone() };
        retrying!(self.set_halt_once(by, scope, halt))
    }

    async fn set_halt_once(&self, by: &PrincipalId, scope: &Scope, halt: &Halt) -> Result<()> {
        let (keys, now) = (self.keys()?, self.now());
        let row = self.halt_row(&keys, scope).await?;
        let mut draft = Draft::new(keys.row(), now);
        self.put_halt(&mut draft, &row, halt, (by, by.as_str(), now), None)?;
        self.commit(draft.finish()).await
    }

    /// Stops, or lets go on, as somebody wishes; where that needs two people, the first one's wish is only written
    /// down. How the scope stands then.
    pub async fn wish_halt(&self, who: Puller<'_>, scope: &Scope, wish: &Wish) -> Result<Halting> {
        self.wish_halt_as_told(who, scope, wish, None).await
    }

    /// The same, if it comes to what they were told.
    pub async fn wish_halt_as_told(
        &self,
        who: Puller<'_>,
        scope: &Scope,
        wish: &Wish,
        told: Option<Foreseen>,
    ) -> Result<Halting> {
        // Nobody's stop fails for the length of its reason.
        let reason = cut_reason(&wish.halt().reason);
        let reason = self.masked_outside(&*self.keys()?, scope.flow(), &reason).await;
        let wish = &wish.saying(reason);
        retrying!(self.wish_halt_once(who, scope, wish, told))
    }

    /// What a wish would come to now.
    pub async fn foresee(&self, who: Puller<'_>, scope: &Scope, wish: &Wish) -> Result<Foreseen> {
        let (keys, now) = (self.keys()?, self.now());
        let row = self.halt_row(&keys, scope).await?;
        let next = wish.next(row.halt());
        let lift = self.lift_of(&mut Draft::new(keys.row(), now), &keys, &row, (who, &next, now)).await?;
        Ok(foreseen(lift.as_ref()))
    }

    async fn wish_halt_once(
        &self,
        who: Puller<'_>,
        scope: &Scope,
        wish: &Wish,
        told: Option<Foreseen>,
    ) -> Result<Halting> {
        let (keys, now) = (self.keys()?, self.now());
        let row = self.halt_row(&keys, scope).await?;
        let next = wish.next(row.halt());
        let mut draft = Draft::new(keys.row(), now);
        who.rely(&mut draft);
        let lift = self.lift_of(&mut draft, &keys, &row, (who, &next, now)).await?;
        if told.is_some_and(|it| it != foreseen(lift.as_ref())) {
            return Err(Error::WrongState(MOVED_ON));
        }
        let confirms = match lift {
            None => None,
            Some((Lift::Waiting, _)) => return Ok(row.standing()),
            Some((Lift::Asked(lifting), _)) => {
                let stops = put_lifting(&mut draft, &row, lifting, now)?;
                self.commit(draft.finish()).await?;
                return Ok(Halting { stops: Some(stops), ..row.standing() });
            }
            Some((Lift::Confirmed, second)) => {
                row.stops().and_then(|it| it.lifting.as_ref()).map(|first| Pair { first, second })
            }
        };
        let by = who.principal();
        let stops = self.put_halt(&mut draft, &row, &next, (&by, who.name(), now), confirms.as_ref())?;
        self.commit(draft.finish()).await?;
        Ok(Halting { halt: next, stops, ..row.standing() })
    }

    async fn halt_row(&self, keys: &Keys, scope: &Scope) -> Result<Row> {
        Ok(match scope {
            Scope::All => Row::Gateway(self.gateway(keys).await?),
            Scope::Flow(id) => Row::Flow(self.flow(keys, id).await?),
        })
    }

    fn put_halt(
        &self,
        draft: &mut Draft<'_>,
        row: &Row,
        halt: &Halt,
        (by, name, at): (&PrincipalId, &str, Timestamp),
        confirms: Option<&Pair<'_>>,
    ) -> Result<Option<Stops>> {
        let stop = Stop { by: by.clone(), name: name.to_owned(), at, reason: halt.reason.clone() };
        let needs = self.lift_needs(row.stops());
        let stops = Stops::after(row.stops(), halt, &stop, needs);
        row.replace(draft, halt.clone(), stops.clone())?;
        let kind = if halt.proposing || halt.verifying { EventType::Halted } else { EventType::HaltLifted };
        let data = halt_data(halt, &stop, (needs, row.next_revision()), confirms);
        event_recorder::outside(draft, row.flow(), at, kind, data)?;
        Ok(stops)
    }

    /// What a wish comes to that lifts what two people lift, and who has it; nothing for any other.
    async fn lift_of(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        row: &Row,
        (who, next, now): (Puller<'_>, &Halt, Timestamp),
    ) -> Result<Option<(Lift, AccountId)>> {
        if !halt::lifts(row.halt(), next) || self.lift_needs(row.stops()) != LiftNeeds::Two {
            return Ok(None);
        }
        self.lift(draft, keys, row, (who, next, now)).await.map(Some)
    }

    /// Judges a wish to lift where two are needed, on both people as they stand.
    async fn lift(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        row: &Row,
        (who, next, at): (Puller<'_>, &Halt, Timestamp),
    ) -> Result<(Lift, AccountId)> {
        let refused = |why: LiftRefused| Error::WrongState(why.words());
        if halt::stops(row.halt(), next) {
            return Err(refused(LiftRefused::Both));
        }
        let me = self.somebody(keys, &who.principal()).await?.ok_or(refused(LiftRefused::Nobody))?;
        let asked = row.stops().and_then(|it| it.lifting.as_ref());
        let first = match asked {
            Some(asked) => self.somebody(keys, &asked.by).await?.filter(|it| it.is_still(asked)),
            None => None,
        };
        let wish = Lifting {
            by: who.principal(),
            person: me.account.record.id.clone(),
            name: me.account.record.name.clone(),
            at,
            reason: next.reason.clone(),
            proposing: next.proposing,
            verifying: next.verifying,
        };
        let lift = halt::lift(row.stops(), wish, me.lifter(), first.as_ref().map(Somebody::lifter)).map_err(refused)?;
        me.rely(draft);
        if let (Lift::Confirmed, Some(first)) = (&lift, &first) {
            first.rely(draft);
        }
        Ok((lift, me.account.record.id))
    }

    /// Which person an account or a token is; the token of a team is nobody in particular, and a revoked one nobody.
    async fn somebody(&self, keys: &Keys, by: &PrincipalId) -> Result<Option<Somebody>> {
        let standing = |it: Stored<Account>| Stored { record: self.as_it_stands(it.record), ..it };
        if let Some(account) = self.fetch::<Account>(keys, by.as_str()).await?.map(standing) {
            return Ok(Some(Somebody { account, token: None }));
        }
        let token = self.fetch::<Token>(keys, by.as_str()).await?.filter(|it| !it.record.revoked);
        let Some(token) = token else { return Ok(None) };
        let owner = self.reader(keys).get_by_alias::<Account>(&token.record.owner).await?;
        Ok(owner.map(standing).map(|account| Somebody { account, token: Some(token) }))
    }
}

const fn foreseen(lift: Option<&(Lift, AccountId)>) -> Foreseen {
    match lift {
        Some((Lift::Asked(_) | Lift::Waiting, _)) => Foreseen::Asked,
        Some((Lift::Confirmed, _)) | None => Foreseen::Done,
    }
}

fn put_lifting(draft: &mut Draft<'_>, row: &Row, lifting: Lifting, at: Timestamp) -> Result<Stops> {
    let data = json!({
        "by": lifting.by, "person": lifting.person, "name": lifting.name, "reason": lifting.reason,
        "proposing": lifting.proposing, "verifying": lifting.verifying, "revision": row.next_revision(),
    });
    let stops = Stops::asked(row.stops(), row.halt(), lifting);
    row.replace(draft, row.halt().clone(), Some(stops.clone()))?;
    event_recorder::outside(draft, row.flow(), at, EventType::HaltLifting, data)?;
    Ok(stops)
}

fn halt_data(halt: &Halt, stop: &Stop, (needs, revision): (LiftNeeds, i64), pair: Option<&Pair<'_>>) -> Value {
    let mut data = json!({
        "by": stop.by, "name": stop.name, "proposing": halt.proposing, "verifying": halt.verifying,
        "reason": halt.reason, "revision": revision, "lift_needs": needs,
    });
    if let Some(Pair { first, second }) = pair {
        data["person"] = json!(second);
        data["confirms"] = json!({"by": first.by, "person": first.person, "at": first.at});
    }
    data
}
