use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::thread;

use countersign_domain::keys::{KeyState, KeyUse};

use super::*;
use crate::clock::SystemClock;

struct KeyringFixture {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

fn place() -> KeyringFixture {
    let directory = tempfile::tempdir().unwrap();
    KeyringFixture { path: directory.path().join("data/keyring.json"), _directory: directory }
}

fn open(place: &KeyringFixture) -> Keyring {
    Keyring::open_or_create(&place.path, None, &SystemClock).unwrap()
}

fn rotate(keyring: &Keyring) -> Arc<Keys> {
    keyring.update(|it| it.rotate(KeyUse::Chain, SystemClock.now(), &mut random::fill)).unwrap()
}

fn signing(keyring: &Keyring) -> String {
    keyring.current().unwrap().signing(KeyUse::Chain).kid().to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(place: &KeyringFixture) -> BTreeSet<String> {
    let entries = fs::read_dir(place.path.parent().unwrap()).unwrap();
    entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn the_first_start_makes_a_keyring_that_only_its_owner_reads() {
    let place = place();
    let keyring = open(&place);
    assert_eq!(mode(&place.path), 0o600);
    assert_eq!(mode(place.path.parent().unwrap()), 0o700);
    assert!(keyring.current().unwrap().issuer().starts_with("urn:countersign:"));
    assert_eq!(names(&place), ["keyring.json", "keyring.json.lock"].map(str::to_owned).into());
}

#[test]
fn the_second_start_opens_what_the_first_made() {
    let place = place();
    let first = open(&place).current().unwrap();
    let second = open(&place).current().unwrap();
    assert_eq!(first.trusted(), second.trusted());
}

#[test]
fn gateways_that_start_at_once_end_up_with_one_keyring() {
    let place = place();
    let kids: BTreeSet<String> = thread::scope(|scope| {
        let starts: Vec<_> = (0..16).map(|_| scope.spawn(|| signing(&open(&place)))).collect();
        starts.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(kids.len(), 1);
}

#[test]
fn making_a_keyring_never_overwrites_one() {
    let place = place();
    let before = signing(&open(&place));
    let other = Keys::generate("urn:other", SystemClock.now(), &mut random::fill).unwrap();
    file::create(&place.path, &other).unwrap();
    assert_eq!(signing(&open(&place)), before);
}

#[test]
fn incomplete_file_of_a_killed_process_is_removed() {
    let place = place();
    let keyring = open(&place);
    let draft = place.path.with_file_name("keyring.json.new");
    fs::write(&draft, "half").unwrap();
    rotate(&keyring);
    assert!(!draft.exists());
}

#[test]
fn keyring_readable_by_others_is_refused() {
    let place = place();
    let keyring = open(&place);
    for open_to in [0o640, 0o604, 0o620, 0o601] {
        fs::set_permissions(&place.path, fs::Permissions::from_mode(open_to)).unwrap();
        assert!(matches!(Keyring::open(&place.path, None), Err(KeyringError::Exposed { .. })), "{open_to:o}");
        assert!(matches!(keyring.current(), Err(KeyringError::Exposed { .. })), "{open_to:o}");
    }
    fs::set_permissions(&place.path, fs::Permissions::from_mode(0o400)).unwrap();
    assert!(Keyring::open(&place.path, None).is_ok());
}

#[test]
fn opening_does_not_make_a_keyring() {
    let place = place();
    assert!(matches!(Keyring::open(&place.path, None), Err(KeyringError::Missing { .. })));
    assert!(!place.path.parent().unwrap().exists());
}

#[test]
fn rotation_applies_to_open_keyrings_at_once() {
    let place = place();
    let (gateway, line) = (open(&place), open(&place));
    for _ in 0..5 {
        let before = signing(&gateway);
        let after = rotate(&line).signing(KeyUse::Chain).kid().to_owned();
        assert_ne!(before, after);
        assert_eq!(signing(&gateway), after);
        let old = gateway.current().unwrap();
        assert_eq!(old.public(KeyUse::Chain, &before).unwrap().state(), KeyState::Retired);
    }
}

#[test]
fn an_unchanged_file_is_not_read_again() {
    let place = place();
    let keyring = open(&place);
    assert!(Arc::ptr_eq(&keyring.current().unwrap(), &keyring.current().unwrap()));
}

#[test]
fn concurrent_changes_are_all_stored() {
    let place = place();
    let keyring = open(&place);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| rotate(&open(&place)));
        }
    });
    let keys = keyring.current().unwrap();
    assert_eq!(keys.published().filter(|it| it.state() == KeyState::Retired).count(), 8);
    assert_eq!(mode(&place.path), 0o600);
}

#[test]
fn unreadable_keyring_is_not_trusted_until_it_is_readable() {
    let place = place();
    let keyring = open(&place);
    let text = fs::read(&place.path).unwrap();
    let kid = signing(&keyring);
    fs::write(&place.path, "{").unwrap();
    assert!(matches!(keyring.current(), Err(KeyringError::Invalid { .. })));
    fs::remove_file(&place.path).unwrap();
    assert!(matches!(keyring.current(), Err(KeyringError::Missing { .. })));
    fs::write(&place.path, text).unwrap();
    fs::set_permissions(&place.path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(signing(&keyring), kid);
}

#[test]
fn replaced_keyring_is_refused_while_running() {
    let place = place();
    let issuer = "urn:countersign:same";
    let keyring = Keyring::open_or_create(&place.path, Some(issuer), &SystemClock).unwrap();
    fs::remove_file(&place.path).unwrap();
    let other = Keyring::open_or_create(&place.path, Some(issuer), &SystemClock).unwrap();
    let before = fs::read(&place.path).unwrap();
    assert!(matches!(keyring.current(), Err(KeyringError::Replaced { .. })));
    let refused = keyring.update(|it| it.rotate(KeyUse::Chain, SystemClock.now(), &mut random::fill));
    assert!(matches!(refused, Err(KeyringError::Replaced { .. })));
    assert_eq!(fs::read(&place.path).unwrap(), before);
    assert!(other.current().is_ok());
}

#[test]
fn a_configured_issuer_is_fixed_by_the_first_start() {
    let place = place();
    let first = Keyring::open_or_create(&place.path, Some("https://gate.example"), &SystemClock).unwrap();
    assert_eq!(first.current().unwrap().issuer(), "https://gate.example");
    let refused = Keyring::open_or_create(&place.path, Some("https://other.example"), &SystemClock).unwrap_err();
    assert!(matches!(refused, KeyringError::Issuer { .. }), "{refused}");
    assert!(Keyring::open(&place.path, None).is_ok());
}

#[test]
fn a_refused_change_leaves_the_file_as_it_was() {
    let place = place();
    let keyring = open(&place);
    let before = fs::read(&place.path).unwrap();
    let refused = keyring.update(|it| it.revoke("nobody", SystemClock.now(), &mut random::fill));
    assert!(matches!(refused, Err(KeyringError::Refused(KeysError::Unknown { .. }))));
    assert_eq!(fs::read(&place.path).unwrap(), before);
}

#[test]
fn a_given_keyring_signs_but_cannot_be_changed() {
    let place = place();
    let kid = signing(&open(&place));
    let text = Secret::new(fs::read_to_string(&place.path).unwrap());
    let given = Keyring::given(&text, None).unwrap();
    assert_eq!(signing(&given), kid);
    assert!(matches!(given.update(Ok), Err(KeyringError::ReadOnly)));
    assert!(matches!(Keyring::given(&text, Some("urn:other")), Err(KeyringError::Issuer { .. })));
}

#[test]
fn linked_keyring_is_replaced_at_the_target() {
    let place = place();
    let before = signing(&open(&place));
    let link = place.path.with_file_name("link.json");
    symlink(&place.path, &link).unwrap();
    let keyring = Keyring::open(&link, None).unwrap();
    rotate(&keyring);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(!place.path.with_file_name("link.json.lock").exists());
    assert_ne!(signing(&open(&place)), before);
}

#[test]
fn nothing_private_prints() {
    let place = place();
    let keyring = open(&place);
    let document: serde_json::Value = serde_json::from_slice(&fs::read(&place.path).unwrap()).unwrap();
    let printed = format!("{keyring:?}");
    assert!(!printed.contains(document["row"].as_str().unwrap()));
    assert!(!printed.contains(document["keys"][0]["private"].as_str().unwrap()));
}

#[test]
fn change_by_root_preserves_the_owner() {
    let place = place();
    let keyring = open(&place);
    // Only root can change the owner of a file.
    if std::os::unix::fs::chown(&place.path, Some(4711), Some(4712)).is_err() {
        return;
    }
    fs::remove_file(place.path.with_file_name("keyring.json.lock")).unwrap();
    rotate(&keyring);
    for name in names(&place) {
        let metadata = fs::metadata(place.path.with_file_name(&name)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (4711, 4712), "{name}");
    }
    assert_eq!(mode(&place.path), 0o600);
}

#[test]
fn planted_lock_file_is_not_followed_and_its_owner_stays() {
    let place = place();
    let keyring = open(&place);
    let (lock, victim) = (place.path.with_file_name("keyring.json.lock"), place.path.with_file_name("victim"));
    fs::write(&victim, "somebody else's").unwrap();
    let owner = fs::metadata(&victim).unwrap().uid();
    let given = std::os::unix::fs::chown(&place.path, Some(4711), Some(4712)).is_ok();
    let before = fs::read(&place.path).unwrap();
    let turned = || keyring.update(|it| it.rotate(KeyUse::Chain, SystemClock.now(), &mut random::fill));
    let pipe = || rustix::fs::mknodat(rustix::fs::CWD, &lock, rustix::fs::FileType::Fifo, 0o600.into(), 0);

    let put: [&dyn Fn(); 3] =
        [&|| symlink(&victim, &lock).unwrap(), &|| pipe().unwrap(), &|| fs::create_dir(&lock).unwrap()];
    fs::remove_file(&lock).unwrap();
    for put in put {
        put();
        assert!(matches!(turned(), Err(KeyringError::Io { .. })));
        let _ = fs::remove_file(&lock);
    }
    assert_eq!(fs::read(&place.path).unwrap(), before);

    // A lock file of another owner is used, and its owner does not change.
    fs::remove_dir(&lock).unwrap();
    fs::hard_link(&victim, &lock).unwrap();
    rotate(&keyring);
    assert_eq!(fs::metadata(&victim).unwrap().uid(), owner);
    assert_eq!(given, fs::metadata(&place.path).unwrap().uid() == 4711);
}
