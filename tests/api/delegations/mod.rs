//! Tests delegations: which votes count, which are refused, and the limits of a delegation. On both databases.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::chain::jws::{self, TokenClaims, TokenType};
use countersign_domain::chain::receipt::{ApprovalMethod, Denial, Receipt};
use countersign_domain::identity::account::{Account, MachineRole, PersonRole};
use countersign_domain::identity::delegation::{
    Delegation, GIVEN_LATELY_MAX, GIVEN_MAX, LENGTH_MAX, LENGTH_MIN, RECEIVED_MAX,
};
use countersign_domain::keys::KeyUse;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Ballot, VoteRejected, VoteVerdict, WithdrawalRequest};

use countersign_adapters::clock::ClockOffset;
use countersign_service::error::{Error, Result};
use countersign_service::identity::accounts::NewAccount;
use countersign_service::identity::delegations::{DelegationOwnerFilter, NewDelegation};
use countersign_service::identity::passkeys::{ChallengePurpose, PasskeyConfirmation};
use countersign_service::identity::revocation::SignInAccess;
use countersign_service::identity::session::SignedIn;
use countersign_service::inbox::InboxFilter;
use countersign_service::inbox::list::InboxPageSelection;
use countersign_service::inbox::list::WaitingCount;
use countersign_service::reviews::vote::VoteOutcome;
use countersign_store::sqlite::SqliteStore;
use countersign_web::api::problem::vote_code;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{TestGateway, ballot, owned_token, person, spawn_on};
use crate::passkeys_of_people::authenticator::Authenticator;
use crate::passkeys_of_people::{allow_delegating, allow_removing, assertion, enrol, get, vote as vote_signed};
use crate::passwords::hashed;
use crate::rules::ApiScenario;

mod counted;
mod ended;
mod handed_on;

const PASSWORD: &str = "correct horse battery";

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn two() -> String {
    policy_with("need = 1", "need = 2").replace("ttl = \"24h\"", "ttl = \"480h\"\ndenials = 2")
}

fn signed() -> String {
    policy_with("need = 1", "need = 1\npasskey = true")
}

fn review(held: &Value) -> ReviewId {
    held["review"]["id"].as_str().unwrap().try_into().unwrap()
}

async fn inside(g: &TestGateway, who: &Account) -> SignedIn {
    g.service.identity.sign_in(&who.name, PASSWORD.to_owned()).await.unwrap().0
}

fn naming(to: &str, length: Duration) -> NewDelegation {
    NewDelegation { to: to.to_owned(), length }
}

async fn gives(g: &TestGateway, from: &Account, to: &Account, length: Duration) -> Result<Delegation> {
    let shown = PasskeyConfirmation::Password(PASSWORD.to_owned());
    g.service.identity.delegate_to(&inside(g, from).await, &naming(&to.name, length), shown).await
}

async fn given(g: &TestGateway, from: &Account, to: &Account) -> Delegation {
    gives(g, from, to, DAY).await.unwrap()
}

fn by(held: &Value, delegation: &Delegation, verdict: VoteVerdict) -> Ballot {
    Ballot { delegation: Some(delegation.id.clone()), ..ballot(held, verdict) }
}

/// Votes as a delegate.
async fn casts(g: &TestGateway, who: &Account, held: &Value, delegation: &Delegation) -> Result<VoteOutcome> {
    g.service.reviews.vote(&who.id, &review(held), &by(held, delegation, VoteVerdict::Approve), None).await
}

fn code<T: std::fmt::Debug>(done: Result<T>) -> String {
    match done {
        Ok(_) => "done".to_owned(),
        Err(Error::Vote(VoteRejected::Ineligible(why))) => format!("not_eligible: {}", why.code()),
        Err(Error::Vote(refused)) => vote_code(&refused).to_owned(),
        Err(Error::Invalid { detail, .. }) => detail,
        Err(Error::Forbidden(why) | Error::WrongState(why)) => why.to_owned(),
        Err(Error::Passkey(_)) => "passkey".to_owned(),
        Err(Error::NotFound(what)) => format!("no {what}"),
        Err(other) => panic!("{other:?}"),
    }
}

async fn told(g: &TestGateway, kind: EventType) -> Vec<Value> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (events, _) = g.service.log.events_after(0, None, 1000).await.unwrap();
    events.into_iter().map(|it| it.event).filter(|it| it.kind == kind).map(|it| it.data).collect()
}

async fn administrator(g: &TestGateway, name: &str) -> Account {
    let new = NewAccount { name: name.to_owned(), role: PersonRole::Admin, groups: BTreeSet::new() };
    g.service.identity.add_account_hashed(&new, &hashed(PASSWORD).await).await.unwrap()
}

fn verified<C: TokenClaims>(g: &TestGateway, token: &str, typ: TokenType) -> C {
    let (claims, keys) = (jws::read::<C>(token, typ).unwrap(), g.service.core.keys().unwrap());
    let key = keys.public(KeyUse::Chain, claims.kid()).unwrap();
    claims.verify(key).unwrap()
}
