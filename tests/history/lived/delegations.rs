//! The delegations of the history, confirmed by password and by passkey, and an extended deadline.

use std::time::Duration;

use countersign_domain::reviews::{Ballot, ExtensionRequest, VoteVerdict, WithdrawalRequest};

use countersign_service::Service;
use countersign_service::identity::delegations::{DelegationOwnerFilter, NewDelegation};
use countersign_service::identity::passkeys::PasskeyConfirmation;
use countersign_service::identity::session::SignedIn;
use serde_json::json;

use super::passkeys::authenticator::Authenticator;
use super::{HistoryActors, PASSWORD, ballot, held, make, passkeys, person, propose};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Ada names Eve, confirmed by her passkey.
pub(super) async fn names_by_passkey(service: &Service, ada: &SignedIn, key: &mut Authenticator) {
    person(service, "eve", &["support"]).await;
    let naming = NewDelegation { to: "eve".to_owned(), length: DAY };
    let shown = passkeys::allow_delegating(service, ada, (key, &naming)).await;
    service.identity.delegate_to(ada, &naming, shown).await.unwrap();
}

/// Ben delegates to Eve, withdraws her vote for him, and ends the delegation after she has voted again.
pub(super) async fn lets_another_vote(service: &Service, cast: &HistoryActors) {
    let (ben, _) = service.identity.sign_in("ben", PASSWORD.to_owned()).await.unwrap();
    let (eve, _) = service.identity.sign_in("eve", PASSWORD.to_owned()).await.unwrap();
    let naming = NewDelegation { to: "eve".to_owned(), length: DAY };
    let shown = PasskeyConfirmation::Password(PASSWORD.to_owned());
    let delegation = service.identity.delegate_to(&ben, &naming, shown).await.unwrap();
    make(service, &cast.two_host, "handed-on").await;
    let (transition, review) =
        held(&propose(service, &cast.two_agent, "handed-on", "planner", json!({"target_user_id": 42})).await);
    let hold = service.reviews.review(&review, &ben.account.record).await.unwrap().hold;
    let (deadline, until) = (hold.expires_at, hold.expires_at.plus(Duration::from_secs(60)));
    let longer = ExtensionRequest { transition, deadline, until, reason: "the bank is closed".to_owned() };
    service.reviews.extend(&cast.ada, &review, &longer).await.unwrap();
    let (eve, by) = (&eve.account.record.id, Some(delegation.id.clone()));
    let for_ben = || Ballot { delegation: by.clone(), ..ballot(transition, 1, VoteVerdict::Approve) };
    service.reviews.vote(eve, &review, &for_ben(), None).await.unwrap();
    let nonce = "nonce-of-taking-back".to_owned();
    service.reviews.withdraw_vote(&cast.ben, &review, &WithdrawalRequest { transition, vote: 0, nonce }).await.unwrap();
    service.reviews.vote(eve, &review, &for_ben(), None).await.unwrap();
    service.reviews.vote(&cast.ada, &review, &ballot(transition, 0, VoteVerdict::Approve), None).await.unwrap();
    service.identity.end_delegation(&cast.ben, &delegation.id).await.unwrap();
}

pub(super) async fn ends(service: &Service, cast: &HistoryActors) {
    for delegation in service.identity.delegations(&cast.ada, DelegationOwnerFilter::Own).await.unwrap().given {
        service.identity.end_delegation(&cast.ada, &delegation.id).await.unwrap();
    }
}
