use std::ffi::OsString;
use std::path::Path;

use serde_json::Value;

use super::*;
use crate::clock::SystemClock;
use crate::keyring::Keyring;

fn line(data: &Path, line: &str) -> (Exit, String, String) {
    let words = line.split_whitespace().map(OsString::from);
    let line = [OsString::from("countersign"), "--data".into(), data.into()].into_iter().chain(words);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = run(&Args::read(line).unwrap(), &mut out, &mut err);
    (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn gateway(data: &Path) -> Keyring {
    Keyring::open_or_create(&data.join("keyring.json"), None, &SystemClock).unwrap()
}

fn listed(data: &Path) -> Vec<Value> {
    let (exit, out, _) = line(data, "keys list --json");
    assert_eq!(exit, Exit::Yes);
    serde_json::from_str::<Value>(&out).unwrap()["keys"].as_array().unwrap().clone()
}

#[test]
fn a_rotation_on_the_line_acts_in_a_running_gateway() {
    let data = tempfile::tempdir().unwrap();
    let gateway = gateway(data.path());
    let (exit, out, _) = line(data.path(), "keys rotate");
    assert_eq!(exit, Exit::Yes);
    let signing = gateway.current().unwrap().signing(crate::domain::keys::KeyUse::Chain).kid().to_owned();
    assert_eq!(out, format!("{signing}\n"));
    assert_eq!(listed(data.path()).len(), 7);
}

#[test]
fn a_revocation_on_the_line_acts_in_a_running_gateway() {
    use crate::domain::keys::{KeyState, KeyUse};
    let data = tempfile::tempdir().unwrap();
    let gateway = gateway(data.path());
    let kid = gateway.current().unwrap().signing(KeyUse::Webhook).kid().to_owned();
    let (exit, out, _) = line(data.path(), &format!("keys revoke {kid} --json"));
    assert_eq!(exit, Exit::Yes);
    let keys = gateway.current().unwrap();
    assert_eq!(keys.public(KeyUse::Webhook, &kid).unwrap().state(), KeyState::Revoked);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&answer["use"], &answer["signing"]), (&"webhook".into(), &keys.signing(KeyUse::Webhook).kid().into()));
}

#[test]
fn a_list_names_every_key_and_nothing_private() {
    let data = tempfile::tempdir().unwrap();
    gateway(data.path());
    let (_, out, err) = line(data.path(), "keys list");
    assert_eq!((out.lines().count(), err.as_str()), (7, ""));
    let file: Value = serde_json::from_slice(&std::fs::read(data.path().join("keyring.json")).unwrap()).unwrap();
    for key in file["keys"].as_array().unwrap() {
        assert!(out.contains(key["kid"].as_str().unwrap()));
        assert!(!out.contains(key["private"].as_str().unwrap()));
    }
    let states: Vec<_> = listed(data.path()).iter().map(|it| it["status"].as_str().unwrap().to_owned()).collect();
    assert_eq!(states, ["signing", "next", "signing", "next", "signing", "next"]);
}

#[test]
fn a_key_that_is_not_there_is_a_no() {
    let data = tempfile::tempdir().unwrap();
    gateway(data.path());
    let (exit, out, err) = line(data.path(), "keys revoke nobody");
    assert_eq!((exit, out.as_str()), (Exit::No, ""));
    assert!(err.contains("no key is called nobody"), "{err}");
}

#[test]
fn without_a_keyring_the_line_cannot_tell_and_makes_none() {
    let data = tempfile::tempdir().unwrap();
    let (exit, out, err) = line(data.path(), "keys list");
    assert_eq!((exit, out.as_str()), (Exit::CouldNotTell, ""));
    assert!(err.contains("keyring.json") && err.contains("countersign serve"), "{err}");
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0);
}
