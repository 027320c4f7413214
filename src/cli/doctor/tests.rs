use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;

use countersign_domain::delivery::endpoint::EventPattern;
use countersign_domain::identity::account::{MachineRole, PersonRole};
use countersign_domain::primitives::secret::Secret;
use countersign_service::delivery::endpoint_kind::NewKind;
use countersign_service::delivery::endpoints::NewEndpoint;
use countersign_service::identity::accounts::{NewAccount, NewToken};
use countersign_service::identity::actor::Actor;
use countersign_service::identity::owner_names::NewOwner;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use serde_json::Value;

use crate::cli::args::Args;
use crate::cli::{CommandExit, open_service, run};
use crate::config::{Config, Flags};

/// Runs a command with this configuration.
fn line(file: &Path, line: &str) -> (CommandExit, String) {
    let words = line.split_whitespace().map(OsString::from);
    let line = [OsString::from("countersign"), "--config".into(), file.into()].into_iter().chain(words);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = run(&Args::read(line).unwrap(), &mut out, &mut err);
    assert!(exit != CommandExit::CouldNotTell, "{}", String::from_utf8(err).unwrap());
    (exit, String::from_utf8(out).unwrap())
}

fn codes(file: &Path) -> (CommandExit, BTreeSet<String>) {
    let (exit, out) = line(file, "doctor --json");
    let told: Value = serde_json::from_str(&out).unwrap();
    let codes = told["findings"].as_array().unwrap().iter();
    (exit, codes.map(|it| it["code"].as_str().unwrap().to_owned()).collect())
}

fn with_database(data: &Path) {
    std::fs::create_dir(data).unwrap();
    SqliteStore::open(data.join("countersign.db"), SqliteOptions::default()).unwrap();
}

/// An address at which nothing listens.
fn silent() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn unreachable_parts_of_the_network_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("countersign.toml"));
    let base = format!("data = '{}'\nlisten = '{}'\n", data.display(), silent());
    let networks = "[webhooks]\nallow_networks = ['127.0.0.0/8']\n";
    std::fs::write(&file, format!("{base}{networks}")).unwrap();
    with_database(&data);
    let expected = |codes: &[&str]| codes.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>();
    let sound = expected(&["flow_without_policy", "not_serving"]);
    assert_eq!(codes(&file), (CommandExit::Yes, sound));

    let (url, mail) = (silent(), silent());
    let port = mail.rsplit(':').next().unwrap();
    let mail = format!("[mail]\nserver = '127.0.0.1'\nport = {port}\ntls = 'none'\nfrom = 'gate@example.com'\n");
    std::fs::write(&file, format!("{base}public_url = 'https://{url}'\n{networks}{mail}")).unwrap();
    let config = Config::load(&Flags { config: Some(file.clone()), ..Flags::default() }, []).unwrap();
    let hook = silent();
    open_service::with_service(&config, |service| async move {
        let new = NewEndpoint {
            name: "ops".to_owned(),
            kind: NewKind::Webhook,
            url: Secret::new(format!("http://{hook}/hook")),
            events: BTreeSet::from([EventPattern::all()]),
            flows: BTreeSet::new(),
            ordered: false,
            headers: Default::default(),
            after: None,
        };
        let token = NewToken {
            name: "admin".to_owned(),
            role: MachineRole::Admin,
            owner: NewOwner::Group("platform".to_owned()),
            flow: None,
            nodes: BTreeSet::new(),
        };
        let (_, secret) = service.identity.add_token(&token).await?;
        let token = service.identity.token_of(&secret).await?;
        service.delivery.add_endpoint(Actor::Token(&token), &new).await.map(drop)
    })
    .unwrap();
    let found = expected(&[
        "endpoint_unreachable",
        "flow_without_policy",
        "mail_unusable",
        "no_copy",
        "not_serving",
        "proxy_not_trusted",
        "public_url_unreachable",
    ]);
    assert_eq!(codes(&file), (CommandExit::No, found));
}

#[test]
fn password_link_is_printed_once_for_an_existing_account() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("countersign.toml");
    std::fs::write(&file, format!("data = '{}'\n", folder.path().join("data").display())).unwrap();
    with_database(&folder.path().join("data"));
    let config = Config::load(&Flags { config: Some(file.clone()), ..Flags::default() }, []).unwrap();
    open_service::with_service(&config, |service| async move {
        let new = NewAccount { name: "ada".to_owned(), role: PersonRole::Reviewer, groups: BTreeSet::new() };
        service.identity.add_account(&new, "correct horse battery staple".to_owned()).await
    })
    .unwrap();
    assert_eq!(line(&file, "user password-link nobody").0, CommandExit::No);
    let (exit, link) = line(&file, "user password-link ada");
    assert_eq!(exit, CommandExit::Yes);
    let secret = link.trim().strip_prefix("http://localhost:8480/password/").expect("a link").to_owned();
    open_service::with_service(&config, |service| async move {
        let (signed_in, _) =
            service.identity.choose_password(&secret, "another good passphrase".to_owned(), None).await?;
        assert_eq!(signed_in.account.record.name, "ada");
        assert!(service.identity.choose_password(&secret, "a third good passphrase".to_owned(), None).await.is_err());
        Ok(())
    })
    .unwrap();
}
