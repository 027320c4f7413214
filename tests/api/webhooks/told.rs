//! Tests that administrators get an email notification when a receiver is down.

use countersign_domain::delivery::mail_contact::MailPace;
use countersign_domain::identity::account::{Account, PersonRole};

use countersign_service::Service;
use countersign_service::identity::accounts::NewAccount;
use serde_json::json;

use super::receiver::{FINE, ReceiverReply, WebhookReceiver};
use super::scene::{WebhookScenario, path};
use crate::mail::{MailServer, PATIENCE, tell, told_at, write};
use crate::passwords::hashed;

on_both! {
    administrators_are_notified_when_an_endpoint_is_disabled_and_back,
    endpoint_that_recovers_before_the_notification_is_not_reported,
}

async fn administrator(service: &Service, name: &str) -> Account {
    let new = NewAccount { name: name.to_owned(), role: PersonRole::Admin, groups: Default::default() };
    let account = service.identity.add_account_hashed(&new, &hashed("correct horse battery").await).await.unwrap();
    told_at(service, &account, &format!("{name}@example.org"), MailPace::Each).await;
    account
}

/// Gus is an administrator, Gil is not any more, and Alice decides reviews.
async fn ready(s: &WebhookScenario) {
    administrator(&s.g.service, "gus").await;
    administrator(&s.g.service, "gil").await;
    s.g.service
        .identity
        .set_admission("gil", countersign_service::identity::revocation::SignInAccess::Barred)
        .await
        .unwrap();
    told_at(&s.g.service, &s.g.alice, "alice@example.org", MailPace::Each).await;
    write(&s.g.service).await;
}

async fn administrators_are_notified_when_an_endpoint_is_disabled_and_back(s: WebhookScenario) {
    let (receiver, mut post) = (WebhookReceiver::start().await, MailServer::start("plain"));
    ready(&s).await;
    let endpoint = s.endpoint(&receiver, &["thread.*"]).await;
    receiver.now(ReceiverReply::Says("410 Gone"));
    s.g.thread().await;
    s.send().await;
    write(&s.g.service).await;
    s.g.pass(PATIENCE);
    assert_eq!(tell(&s.g.service, &post).await, 1);
    receiver.now(FINE);
    s.g.post(&path(&endpoint, "/test"), &s.g.admin, json!({})).await.expect(200);
    write(&s.g.service).await;
    s.g.pass(PATIENCE);
    assert_eq!(tell(&s.g.service, &post).await, 1);
    let page = format!("{}/endpoints/{}", s.g.url, endpoint["id"].as_str().unwrap());
    for word in ["Endpoint disabled", "Endpoint enabled again"] {
        let mail = post.mail();
        assert_eq!(mail["to"], json!(["gus@example.org"]));
        let data = mail["data"].as_str().unwrap().replace("=\r\n", "");
        for told in [word, "ops", page.as_str()] {
            assert!(data.contains(told), "{told}: {data}");
        }
        let origin = receiver.url.strip_suffix("/hook").unwrap();
        assert!(!data.contains(origin) && !data.contains("/hook"), "{data}");
    }
    s.is_sound().await;
}

async fn endpoint_that_recovers_before_the_notification_is_not_reported(s: WebhookScenario) {
    let (receiver, mut post) = (WebhookReceiver::start().await, MailServer::start("plain"));
    ready(&s).await;
    let endpoint = s.endpoint(&receiver, &["thread.*"]).await;
    let disable = async || {
        receiver.now(ReceiverReply::Says("410 Gone"));
        s.g.thread().await;
        s.send().await;
        write(&s.g.service).await;
    };
    disable().await;
    receiver.now(FINE);
    s.g.post(&path(&endpoint, "/test"), &s.g.admin, json!({})).await.expect(200);
    write(&s.g.service).await;
    s.g.pass(PATIENCE);
    assert_eq!(tell(&s.g.service, &post).await, 1, "one letter about it, which is done with");
    disable().await;
    s.g.pass(PATIENCE);
    assert_eq!(tell(&s.g.service, &post).await, 1);
    assert!(post.mail()["data"].as_str().unwrap().contains("Endpoint disabled"), "the first mail of all");
}
