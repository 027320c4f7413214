//! Tests email notifications with a real mail server: who gets them, their content and their time, and that none is
//! lost.

use std::io::{BufRead as _, BufReader};
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use countersign_domain::delivery::mail_contact::{MailAddress, MailContact, MailNotification, MailPace};
use countersign_domain::identity::account::Account;
use countersign_domain::primitives::id::{AccountId, InterruptId};
use countersign_domain::primitives::secret::Secret;
use countersign_domain::reviews::VoteVerdict;

use countersign::worker::{escalate, mail as letters};
use countersign_adapters::mail::Mailer;
use countersign_adapters::mail::{MailConfig, MailTls};
use countersign_service::Service;
use countersign_service::error::Error;
use countersign_service::identity::revocation::SignInAccess;
use countersign_store::change::Draft;
use countersign_store::record::{Record as _, RecordReader, Stored};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_store::{Cursor, LIST_ROWS_MAX, RowFilter, Store as _};
use reqwest::Method;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{POLICY, TestGateway, ballot, person, spawn_gateway, spawn_with_policy};
use crate::interrupts::asked;
use crate::program::ChildProcess;
use crate::python;
use crate::rules::ApiScenario;

on_both! {
    only_eligible_reviewers_are_notified_and_once(crate::gateway::POLICY),
    decided_review_is_not_notified(crate::gateway::POLICY),
    only_one_of_several_gateways_sends_mail(crate::gateway::POLICY),
    reminder_and_escalation_notify_their_reviewers(super::reminding()),
    mail_about_an_interrupt_has_no_text_of_its_host(crate::gateway::POLICY),
}

const AUTHORITY: &[u8] = include_bytes!("../provider/tls/authority.pem");
pub const HOUR: Duration = Duration::from_secs(3600);
pub const PATIENCE: Duration = Duration::from_secs(16);

/// A mail server that runs until it is dropped.
pub struct MailServer {
    _process: ChildProcess,
    said: BufReader<ChildStdout>,
    port: u16,
}

impl MailServer {
    pub fn start(mode: &str) -> Self {
        let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
        let mut command = Command::new(python::python());
        command.arg(format!("{ours}/oracle/smtp.py")).arg(mode);
        command.arg(format!("{ours}/provider/tls/certificate.pem")).arg(format!("{ours}/provider/tls/key.pem"));
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        let port = line(&mut said)["port"].as_u64().unwrap().try_into().unwrap();
        Self { _process: ChildProcess(process), said, port }
    }

    /// Returns the next mail that the server receives.
    pub fn mail(&mut self) -> Value {
        line(&mut self.said)
    }

    fn settings(&self, tls: MailTls) -> MailConfig {
        MailConfig {
            server: "localhost".to_owned(),
            port: self.port,
            tls,
            login: None,
            from: address("gate@example.org"),
            authority: Some(AUTHORITY.to_vec()),
            digests: HOUR,
        }
    }

    fn mailer(&self) -> Mailer {
        Mailer::new(&self.settings(MailTls::None)).unwrap()
    }
}

fn line(said: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn address(text: &str) -> MailAddress {
    text.to_owned().try_into().unwrap()
}

pub async fn told_at(service: &Service, who: &Account, mail: &str, pace: MailPace) {
    let contact = MailContact { account: who.id.clone(), mail: address(mail), pace, at: service.core.now() };
    service.delivery.set_contact(&who.id, Some(contact)).await.unwrap();
}

/// Sets the addresses. Alice and Bob can decide and are notified. Carol is in another group and is not notified.
async fn ready(g: &TestGateway) {
    let carol = person(&g.service, "carol", &["others"]).await;
    for (who, mail) in [(&g.alice, "alice@example.org"), (&g.bob, "bob@example.org"), (&carol, "carol@example.org")] {
        told_at(&g.service, who, mail, MailPace::Each).await;
    }
    write(&g.service).await;
}

/// Sequences every event and queues its notifications.
pub async fn write(service: &Service) {
    while service.log.sequence().await.unwrap() > 0 {}
    // The server frees the lock of a closed connection with a delay, so the previous holder may still have it.
    while service.delivery.queue_mail(HOUR).await.unwrap() != Some(0) {}
}

pub async fn tell(service: &Service, post: &MailServer) -> usize {
    loop {
        if let Some(told) = letters::run_once(service, &post.mailer(), HOUR).await.unwrap() {
            return told;
        }
    }
}

async fn only_eligible_reviewers_are_notified_and_once(scene: ApiScenario) {
    let (g, mut post) = (&scene.gateway, MailServer::start("plain"));
    ready(g).await;
    let thread = g.thread().await;
    let patch = json!({"target_user_id": 918_273_645, "requested_action": "update_email"});
    let held = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(202);
    write(&g.service).await;
    assert_eq!(tell(&g.service, &post).await, 0, "somebody may be looking already");
    g.pass(PATIENCE);
    assert_eq!(tell(&g.service, &post).await, 2);
    assert_eq!(tell(&g.service, &post).await, 0);
    let mut mails = [post.mail(), post.mail()];
    mails.sort_by_key(|it| it["to"].to_string());
    let review = held["review"]["id"].as_str().unwrap();
    for (mail, to) in mails.iter().zip(["alice@example.org", "bob@example.org"]) {
        assert_eq!((&mail["to"], &mail["from"]), (&json!([to]), &json!("gate@example.org")));
        let data = mail["data"].as_str().unwrap().replace("=\r\n", "");
        for told in ["payments", review, "target_user_id", &format!("{}/reviews/{review}", g.url), "Message-ID: <"] {
            assert!(data.contains(told), "{told}: {data}");
        }
        // The mail has none of the proposed values, and no link that decides.
        for never in ["918273645", "update_email", "4111111111111111", "approve", "/decision", "csrf"] {
            assert!(!data.replace(review, "").contains(never), "{never}: {data}");
        }
    }
    scene.passes_an_audit().await;
}

async fn decided_review_is_not_notified(scene: ApiScenario) {
    let (g, mut post) = (&scene.gateway, MailServer::start("plain"));
    ready(g).await;
    let denied = g.held(&g.thread().await).await;
    write(&g.service).await;
    g.vote(&g.alice, &denied, VoteVerdict::Deny).await.unwrap();
    g.pass(PATIENCE);
    assert_eq!(tell(&g.service, &post).await, 2, "both letters are done with");
    // A reviewer who may not decide any more is not notified either.
    g.held(&g.thread().await).await;
    write(&g.service).await;
    g.service.identity.set_admission("alice", SignInAccess::Barred).await.unwrap();
    g.pass(PATIENCE);
    tell(&g.service, &post).await;
    assert_eq!(post.mail()["to"], json!(["bob@example.org"]), "the first mail of all");
    scene.passes_an_audit().await;
}

fn reminding() -> String {
    let notices = "ttl = \"24h\"\nremind_after = \"4h\"\nescalate_after = \"12h\"\nescalate_to = [\"security\"]";
    policy_with("need = 1", "need = 2").replace("ttl = \"24h\"", notices)
}

/// Returns the recipient and the Message-ID of the next mail.
fn to_and_name(post: &mut MailServer) -> (String, String) {
    let mail = post.mail();
    let data = mail["data"].as_str().unwrap().to_owned();
    let name = data.lines().find_map(|it| it.strip_prefix("Message-ID: ")).unwrap();
    (mail["to"][0].as_str().unwrap().to_owned(), name.to_owned())
}

async fn reminder_and_escalation_notify_their_reviewers(scene: ApiScenario) {
    let (g, mut post) = (&scene.gateway, MailServer::start("plain"));
    ready(g).await;
    let sid = person(&g.service, "sid", &["security"]).await;
    told_at(&g.service, &sid, "sid@example.org", MailPace::Each).await;
    let held = g.held(&g.thread().await).await;
    write(&g.service).await;
    g.pass(PATIENCE);
    assert_eq!(tell(&g.service, &post).await, 2);
    let mut first = [to_and_name(&mut post), to_and_name(&mut post)];
    first.sort();
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    g.pass(4 * HOUR);
    escalate::run_once(&g.service).await.unwrap();
    write(&g.service).await;
    g.pass(PATIENCE);
    assert_eq!(tell(&g.service, &post).await, 1, "alice has voted");
    let again = to_and_name(&mut post);
    assert_eq!(again.0, first[1].0);
    assert_ne!(again.1, first[1].1, "a mailbox would take it for the one that it has");
    g.pass(8 * HOUR);
    escalate::run_once(&g.service).await.unwrap();
    write(&g.service).await;
    g.pass(PATIENCE);
    assert_eq!(tell(&g.service, &post).await, 1, "bob is not told of others");
    assert_eq!(to_and_name(&mut post).0, "sid@example.org");
    scene.passes_an_audit().await;
}

async fn mail_about_an_interrupt_has_no_text_of_its_host(scene: ApiScenario) {
    let (g, mut post) = (&scene.gateway, MailServer::start("plain"));
    ready(g).await;
    let taken = g.post("/v1/interrupts", &g.host, asked()).await.expect(202);
    write(&g.service).await;
    g.service.identity.set_admission("alice", SignInAccess::Barred).await.unwrap();
    g.pass(PATIENCE);
    assert_eq!(tell(&g.service, &post).await, 2);
    let mail = post.mail();
    assert_eq!(mail["to"], json!(["bob@example.org"]));
    let data = mail["data"].as_str().unwrap().replace("=\r\n", "");
    let id = taken["id"].as_str().unwrap();
    for told in ["Interrupt", "payments", &format!("{}/interrupts/{id}", g.url)] {
        assert!(data.contains(told), "{told}: {data}");
    }
    for never in ["target_user_id", "order-8812", "Another user", "the customer wrote so", "7652e9dcf1db4576"] {
        assert!(!data.contains(never), "{never}: {data}");
    }
    // An interrupt that has ended by then notifies no reviewer.
    let mut other = asked();
    other["transition_digest"] = json!("e".repeat(64));
    let taken = g.post("/v1/interrupts", &g.host, other).await.expect(202);
    write(&g.service).await;
    let denial = ballot(&json!({"transition": taken["digest"]}), VoteVerdict::Deny);
    let id = InterruptId::try_from(taken["id"].as_str().unwrap()).unwrap();
    g.service.interrupts.vote_on_interrupt(&g.bob.id, &id, &denial, None).await.unwrap();
    g.pass(PATIENCE);
    assert_eq!(tell(&g.service, &post).await, 1, "done with, and not sent");
    let third = g.held(&g.thread().await).await["review"]["id"].as_str().unwrap().to_owned();
    write(&g.service).await;
    g.pass(PATIENCE);
    assert_eq!(tell(&g.service, &post).await, 1);
    assert!(post.mail()["data"].as_str().unwrap().contains(&third), "the second mail of all");
    scene.passes_an_audit().await;
}

async fn only_one_of_several_gateways_sends_mail(scene: ApiScenario) {
    let (g, mut post) = (&scene.gateway, MailServer::start("plain"));
    ready(g).await;
    g.held(&g.thread().await).await;
    let others = [scene.another().await, scene.another().await];
    let all = [&*g.service, &others[0], &others[1]];
    while g.service.log.sequence().await.unwrap() > 0 {}
    futures_util::future::join_all(all.map(|it| it.delivery.queue_mail(HOUR)))
        .await
        .into_iter()
        .for_each(|it| assert!(it.is_ok()));
    write(&g.service).await;
    g.pass(PATIENCE);
    let mailer = post.mailer();
    let sent: usize = futures_util::future::join_all(all.map(|it| letters::run_once(it, &mailer, HOUR)))
        .await
        .into_iter()
        .map(|it| it.unwrap().unwrap_or_default())
        .sum();
    assert_eq!(sent + tell(&g.service, &post).await, 2);
    assert_ne!(post.mail()["to"], post.mail()["to"]);
}

#[tokio::test]
async fn digest_is_one_mail_for_all_new_reviews() {
    let (g, mut post) = (spawn_gateway().await, MailServer::start("plain"));
    ready(&g).await;
    g.service.delivery.set_contact(&g.bob.id, None).await.unwrap();
    told_at(&g.service, &g.alice, "alice@example.org", MailPace::Digest).await;
    let mut reviews = Vec::new();
    for _ in 0..3 {
        reviews.push(g.held(&g.thread().await).await["review"]["id"].as_str().unwrap().to_owned());
    }
    write(&g.service).await;
    g.pass(HOUR * 2);
    assert_eq!(tell(&g.service, &post).await, 3);
    let data = post.mail()["data"].as_str().unwrap().replace("=\r\n", "");
    assert!(data.contains("Subject: 3 reviews wait"), "{data}");
    assert!(reviews.iter().all(|it| data.contains(&format!("/reviews/{it}"))), "{data}");
    g.held(&g.thread().await).await;
    write(&g.service).await;
    g.pass(HOUR * 2);
    assert_eq!(tell(&g.service, &post).await, 1);
    assert!(post.mail()["data"].as_str().unwrap().contains("Subject: A review waits: payments"));
}

#[tokio::test]
async fn redacted_key_is_not_named() {
    let policy = POLICY.replace("hide = [\"payment.card\"]", "hide = [\"payment.card\", \"target_user_id\"]");
    let (g, mut post) = (spawn_with_policy(&policy).await, MailServer::start("plain"));
    ready(&g).await;
    g.held(&g.thread().await).await;
    write(&g.service).await;
    g.pass(PATIENCE);
    tell(&g.service, &post).await;
    let data = post.mail()["data"].as_str().unwrap().to_owned();
    assert!(data.contains("a redacted key") && !data.contains("target_user_id"), "{data}");
}

/// If the mail server is down, does not know the gateway, is an impostor or offers no encryption, no notification is
/// lost or sent.
#[tokio::test]
async fn unusable_mail_server_gets_no_mail_and_is_tried_again() {
    let g = spawn_gateway().await;
    ready(&g).await;
    g.service.delivery.set_contact(&g.bob.id, None).await.unwrap();
    let (plain, starttls, tls) =
        (MailServer::start("plain"), MailServer::start("starttls+login"), MailServer::start("tls"));
    let gone = MailConfig { port: MailServer::start("plain").port, ..plain.settings(MailTls::None) };
    let login = |password: &str| Some(("gate".to_owned(), Secret::new(password.to_owned())));
    let unusable = [
        gone,
        plain.settings(MailTls::StartTls),
        plain.settings(MailTls::Tls),
        MailConfig { authority: None, ..tls.settings(MailTls::Tls) },
        MailConfig { server: "127.0.0.1".to_owned(), ..tls.settings(MailTls::Tls) },
        MailConfig { authority: None, login: login("sesame"), ..starttls.settings(MailTls::StartTls) },
        MailConfig { login: login("wrong"), ..starttls.settings(MailTls::StartTls) },
    ];
    let mut plain = plain;
    for settings in &unusable {
        let held = g.held(&g.thread().await).await;
        write(&g.service).await;
        g.pass(PATIENCE);
        let told = letters::run_once(&g.service, &Mailer::new(settings).unwrap(), HOUR).await;
        let Err(Error::Mail(error)) = told else { panic!("{settings:?}: {told:?}") };
        assert!(!error.to_string().contains("sesame") && !error.to_string().contains("wrong"), "{error}");
        assert_eq!(tell(&g.service, &plain).await, 0, "it is not asked again at once");
        g.pass(Duration::from_secs(31));
        assert_eq!(tell(&g.service, &plain).await, 1);
        let mail = plain.mail();
        assert!(mail["data"].as_str().unwrap().contains(held["review"]["id"].as_str().unwrap()), "{mail}");
    }
}

#[tokio::test]
async fn mail_is_handed_over_encrypted_and_by_login() {
    let mut starttls = MailServer::start("starttls+login");
    let mut tls = MailServer::start("tls");
    let login = Some(("gate".to_owned(), Secret::new("sesame".to_owned())));
    let settings = MailConfig { login, ..starttls.settings(MailTls::StartTls) };
    let one = countersign_adapters::mail::MailMessage {
        to: address("alice@example.org"),
        id: "one".to_owned(),
        subject: "Grüße".to_owned(),
        text: "Hello.\n.\nA dot alone ends nothing.\n".to_owned(),
    };
    Mailer::new(&settings).unwrap().send(&one).await.unwrap();
    let mail = starttls.mail();
    assert_eq!(
        (&mail["tls"], &mail["login"], &mail["to"]),
        (&json!(true), &json!(true), &json!(["alice@example.org"]))
    );
    assert!(mail["data"].as_str().unwrap().contains("A dot alone ends nothing."), "{mail}");
    Mailer::new(&tls.settings(MailTls::Tls)).unwrap().send(&one).await.unwrap();
    assert_eq!(tls.mail()["tls"], json!(true));
}

/// An address that does not work does not delay other notifications. The gateway gives it up after a while.
#[tokio::test]
async fn refused_address_does_not_delay_other_mail() {
    let (g, mut post) = (spawn_gateway().await, MailServer::start("plain"));
    ready(&g).await;
    told_at(&g.service, &g.alice, "nobody@example.org", MailPace::Each).await;
    g.held(&g.thread().await).await;
    write(&g.service).await;
    g.pass(PATIENCE);
    assert_eq!(tell(&g.service, &post).await, 2);
    assert_eq!(post.mail()["to"], json!(["bob@example.org"]));
    let mut tries = 1;
    while tries < 20 {
        g.pass(Duration::from_secs(31));
        if tell(&g.service, &post).await == 0 {
            break;
        }
        tries += 1;
    }
    assert_eq!(tries, 2, "the second pause is longer than the first");
}

#[tokio::test]
async fn people_set_their_own_address() {
    let g = spawn_gateway().await;
    let (_, secret) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let still = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let cookie = format!("countersign={secret}");
    let page = async || {
        let page = still.get(format!("{}/account", g.url)).header("cookie", &cookie).send().await.unwrap();
        page.text().await.unwrap()
    };
    let csrf = page().await.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let save = async |csrf: &str, mail: &str, pace: &str| {
        let form = still.request(Method::POST, format!("{}/account/contact", g.url)).header("origin", &g.url);
        let mail: String = mail.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let form = form.header("cookie", &cookie).header("content-type", "application/x-www-form-urlencoded");
        form.body(format!("csrf={csrf}&mail={mail}&pace={pace}")).send().await.unwrap().status().as_u16()
    };
    assert_eq!(save("forged", "alice@example.org", "each").await, 403);
    assert_eq!(save(&csrf, "alice@example.org\r\nBcc: x@y", "each").await, 422);
    assert_eq!(g.service.delivery.contact_of(&g.alice.id).await.unwrap(), None);
    assert_eq!(save(&csrf, " alice@example.org ", "digest").await, 303);
    let contact = g.service.delivery.contact_of(&g.alice.id).await.unwrap().unwrap();
    assert_eq!((contact.mail.as_str(), contact.pace), ("alice@example.org", MailPace::Digest));
    assert!(page().await.contains("value=\"alice@example.org\""));
    assert_eq!(g.service.delivery.contact_of(&g.bob.id).await.unwrap(), None);
    assert_eq!(save(&csrf, "", "each").await, 303);
    assert_eq!(g.service.delivery.contact_of(&g.alice.id).await.unwrap(), None);
}

/// More than one change has room for.
#[tokio::test]
async fn review_with_thousands_of_reviewers_notifies_each_and_delays_nothing() {
    const MANY: usize = 4_200;
    let g = spawn_gateway().await;
    write(&g.service).await;
    let store = SqliteStore::open(g.folder.path().join("countersign.db"), SqliteOptions::default()).unwrap();
    let keys = g.service.core.keys().unwrap();
    for some in (0..MANY).collect::<Vec<_>>().chunks(100) {
        let mut draft = Draft::new(keys.row(), g.service.core.now());
        for number in some {
            let id = format!("many-{number}");
            let (account, name) = (AccountId::try_from(id.as_str()).unwrap(), id.clone());
            let mail = MailAddress::try_from(format!("{id}@example.org")).unwrap();
            let contact =
                MailContact { account: account.clone(), mail, pace: MailPace::Each, at: g.service.core.now() };
            draft.insert(&Account { id: account, name, ..g.alice.clone() }).unwrap();
            draft.insert(&contact).unwrap();
        }
        store.commit(draft.finish().change).await.unwrap();
    }
    g.post("/v1/interrupts", &g.host, asked()).await.expect(202);
    write(&g.service).await;
    let reader = RecordReader { store: &store, key: keys.row() };
    let mut told = 0;
    let mut after = None;
    loop {
        let page: Vec<Stored<MailNotification>> =
            reader.list(RowFilter::All, after.as_ref(), LIST_ROWS_MAX).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(Cursor { due: 0, id: last.record.id() });
        told += page.len();
    }
    assert_eq!(told, MANY);
}
