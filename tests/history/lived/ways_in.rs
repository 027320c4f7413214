//! People and their ways in: passwords, links, a provider, passkeys, and what administrators do about them.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_domain::identity::account::{MachineRole, PersonRole};
use countersign_domain::identity::oidc_identity::{AdmissionRule, ClaimMapping, OidcIdentity};
use countersign_domain::primitives::id::GroupName;
use countersign_domain::reviews::VoteVerdict;

use countersign_adapters::oidc_provider::OidcConfig;
use countersign_service::Service;
use countersign_service::identity::accounts::NewAccount;
use countersign_service::identity::self_service::PasswordChangeOutcome;
use serde_json::json;

use super::passkeys::authenticator::Authenticator;
use super::{HistoryActors, PASSWORD, admin, ballot, example, held, make, passkeys, propose, token};

pub(super) async fn sign_in_and_out(service: &Service, cast: &HistoryActors) {
    service.identity.sign_in("ada", PASSWORD.to_owned()).await.unwrap();
    for name in ["ada", "nobody"] {
        assert!(service.identity.sign_in(name, "a wrong password".to_owned()).await.is_err());
    }
    for seen in [format!("account/{}", cast.ada), format!("token/{}", cast.host.record.id)] {
        service.identity.mark_seen(&seen);
    }
    service.identity.flush_last_seen().await.unwrap();
    let link = service.identity.sign_in_link(&cast.ben).await.unwrap();
    let (ben, _) = service.identity.use_sign_in_link(&link).await.unwrap();
    service.identity.sign_out(&ben).await.unwrap();
    service.identity.sign_in_link(&cast.ada).await.unwrap();
    signs_in_elsewhere(service).await;
}

/// Attempts three sign-ins by OpenID Connect: two with mapped groups, one without. A fourth is never finished.
async fn signs_in_elsewhere(service: &Service) {
    let group = |value: &str| (value.to_owned(), GroupName::try_from(value).unwrap());
    let mapping = ClaimMapping {
        groups: vec![group("finance"), group("support")],
        roles: Vec::new(),
        admit: AdmissionRule::Mapped,
    };
    let provider = OidcConfig {
        issuer: "https://id.example".to_owned(),
        client_id: "countersign".to_owned(),
        client_secret: None,
        authority: None,
        scopes: Vec::new(),
        button: "Sign in".to_owned(),
        name_claim: "name".to_owned(),
        groups_claim: "groups".to_owned(),
        mapping,
        session: Duration::from_secs(600),
    };
    let mut identity = OidcIdentity {
        issuer: provider.issuer.clone(),
        subject: "sub-1".to_owned(),
        name: Some("fay".to_owned()),
        values: BTreeSet::new(),
        hint: "a.signed.word".to_owned(),
    };
    for (state, values) in [("first", "finance"), ("second", "support"), ("third", "nothing")] {
        service.identity.store_oidc_state(state, "a browser", "/").await.unwrap();
        identity.values = BTreeSet::from([values.to_owned()]);
        assert_eq!(service.identity.let_in(&provider, &identity, state).await.is_ok(), values != "nothing");
    }
    service.identity.store_oidc_state("fourth", "a browser", "/").await.unwrap();
}

/// Ada registers two passkeys, signs in by one, has it sign what a stage asks for, and removes it.
pub(super) async fn uses_passkeys(service: &Service, cast: &HistoryActors) {
    let mut source = example("payments");
    source.text = source.text.replacen("flow = \"payments\"", "flow = \"signed\"", 1);
    source.text = source.text.replacen("need = 1", "need = 1\npasskey = true", 1);
    service.policy_changes.activate_policy(&admin(), None, source, BTreeSet::new()).await.unwrap();
    let (host, agent) = (
        token(service, MachineRole::Host, "signed", &[]).await,
        token(service, MachineRole::Agent, "signed", &["planner"]).await,
    );
    let (ada, _) = service.identity.sign_in("ada", PASSWORD.to_owned()).await.unwrap();
    let (mut key, mut phone) = (Authenticator::new(1), Authenticator::synced(2));
    passkeys::enrol(service, &ada, (&mut key, PASSWORD)).await;
    let second =
        passkeys::new_passkey(service, &ada, &mut phone, |it| passkeys::allow_adding(service, &ada, (&mut key, it)));
    service.identity.add_passkey(&ada, second).await.unwrap();
    passkeys::sign_in(service, cast.ada.as_str(), &mut phone).await.unwrap();
    make(service, &host, "signed").await;
    let (transition, review) =
        held(&propose(service, &agent, "signed", "planner", json!({"target_user_id": 42})).await);
    let yes = ballot(transition, 0, VoteVerdict::Approve);
    passkeys::vote(service, &ada, &mut key, (&review, &yes)).await.unwrap();
    let id = phone.id();
    let itself = passkeys::allow_removing(service, &ada, (&mut phone, &id));
    service.identity.remove_passkey(&ada, &id.as_str().try_into().unwrap(), itself).await.unwrap();
    super::delegations::names_by_passkey(service, &ada, &mut key).await;
}

/// Invites a reviewer, and changes the account and its password. One more invitation is withdrawn and one is open.
pub(super) async fn looks_after_people(service: &Service, cast: &HistoryActors) {
    let gus = service.identity.account_row(&cast.gus).await.unwrap();
    let new = |name: &str| {
        let groups = BTreeSet::from(["finance".try_into().unwrap()]);
        NewAccount { name: name.to_owned(), role: PersonRole::Reviewer, groups }
    };
    let secret = service.identity.invite(&gus, &new("ivy")).await.unwrap();
    let (ivy, _) = service.identity.choose_password(&secret, PASSWORD.to_owned(), None).await.unwrap();
    service.identity.invite(&gus, &new("jo")).await.unwrap();
    let open = service.identity.open_links().await.unwrap().pop().unwrap();
    service.identity.withdraw_link(&gus, &open.id).await.unwrap();
    service.identity.invite(&gus, &new("kim")).await.unwrap();
    let id = ivy.account.record.id.clone();
    service.identity.change_access(&gus, &id, PersonRole::Auditor, &BTreeSet::new()).await.unwrap();
    let secret = service.identity.reset_link(&gus, &id).await.unwrap();
    let (ivy, _) = service.identity.choose_password(&secret, PASSWORD.to_owned(), None).await.unwrap();
    let (old, new) = (PASSWORD.to_owned(), format!("{PASSWORD} again"));
    assert_eq!(service.identity.change_password(&ivy, old, new).await.unwrap(), PasswordChangeOutcome::Yes);
    service.identity.reset_link(&gus, &id).await.unwrap();
}
