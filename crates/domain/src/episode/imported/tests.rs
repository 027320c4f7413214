use super::*;
use crate::episode::samples::{folder, happened, paused};
use crate::episode::{Artefact, manifest};
use crate::keys::Keys;

fn by() -> PrincipalId {
    PrincipalId::try_from("command-line").unwrap()
}

fn at() -> Timestamp {
    Timestamp::from_millis(1_795_225_000_000)
}

fn kept(folder: &Folder) -> (RunImport, Vec<ImportChunk>) {
    let (run, report) = verify(folder, SignatureRequirement::Unchecked);
    assert!(report.is_whole(), "{report:?}");
    RunImport::of(folder, &run, RunSigner::Nobody {}, by(), at()).unwrap()
}

fn sorted(mut folder: Folder) -> Folder {
    folder.entries.sort_by(|one, other| one.0.cmp(&other.0));
    folder
}

/// Builds an episode that contains a file of this size.
fn with_a_file_of(bytes: usize) -> Folder {
    let mut folder = folder(happened("ok"));
    folder.entries.retain(|it| it.0 != Artefact::Manifest.file());
    folder.entries.push(("made.bin".to_owned(), FileContent::Bytes((0..=255).cycle().take(bytes).collect())));
    folder
}

#[test]
fn folder_is_restored_exactly_from_any_number_of_pieces() {
    for bytes in [0, 1, PIECE_BYTES_MAX, 3 * PIECE_BYTES_MAX + 7] {
        let folder = with_a_file_of(bytes);
        let run = RunFolder::default();
        let (import, pieces) = RunImport::of(&folder, &run, RunSigner::Nobody {}, by(), at()).unwrap();
        assert_eq!(pieces.len() as u64, import.pieces());
        assert_eq!(import.folder(&pieces), Some(sorted(folder)), "{bytes}");
    }
}

#[test]
fn equal_content_has_one_name_and_other_content_another() {
    let (one, _) = kept(&folder(happened("ok")));
    let mut backwards = folder(happened("ok"));
    backwards.entries.reverse();
    assert_eq!(kept(&backwards).0.id, one.id);
    assert_ne!(kept(&folder(happened("error"))).0.id, one.id);
    assert!(is_name(&one.id), "{}", one.id);
    for other in ["imported-", "imported-1", "order-17", "branch-0123456789abcdef0123456789abcdef"] {
        assert!(!is_name(&ThreadId::try_from(other).unwrap()), "{other}");
    }
    let capitals = format!("imported-{}", "A".repeat(NAMED_BY));
    assert!(!is_name(&ThreadId::try_from(capitals).unwrap()));
}

#[test]
fn foreign_pieces_give_no_folder() {
    let folder = with_a_file_of(2 * PIECE_BYTES_MAX);
    let run = RunFolder::default();
    let (import, pieces) = RunImport::of(&folder, &run, RunSigner::Nobody {}, by(), at()).unwrap();
    assert_eq!(pieces.len(), 3);
    let with = |change: fn(&mut Vec<ImportChunk>)| {
        let mut pieces = pieces.clone();
        change(&mut pieces);
        import.folder(&pieces)
    };
    assert!(with(|_| {}).is_some());
    assert_eq!(with(|it| drop(it.pop())), None, "one is gone");
    assert_eq!(with(|it| it.push(it[0].clone())), None, "one too many");
    let empty = |it: &mut Vec<ImportChunk>| it.push(ImportChunk { number: 3, bytes: String::new(), ..it[0].clone() });
    assert_eq!(with(empty), None, "one too many, though it has nothing in it");
    assert_eq!(with(|it| it.swap(0, 1)), None, "in another order");
    assert_eq!(with(|it| it[1].number = 2), None);
    assert_eq!(with(|it| it[1].import = ThreadId::try_from("other").unwrap()), None);
    assert_eq!(with(|it| it[1].bytes = STANDARD_NO_PAD.encode([0; PIECE_BYTES_MAX])), None, "other bytes");
    assert_eq!(with(|it| it[1].bytes.push('*')), None, "no base64");
    assert_eq!(with(|it| it[1].bytes = STANDARD_NO_PAD.encode([0; 3])), None, "fewer bytes");
    let longer = |it: &mut Vec<ImportChunk>| {
        let mut bytes = STANDARD_NO_PAD.decode(&it[2].bytes).unwrap();
        bytes.push(0);
        it[2].bytes = STANDARD_NO_PAD.encode(bytes);
    };
    assert_eq!(with(longer), None, "more bytes than its files have");
}

#[test]
fn row_with_wrong_file_data_gives_no_folder() {
    let (import, pieces) = kept(&folder(happened("ok")));
    let with = |change: fn(&mut RunImport)| {
        let mut import = import.clone();
        change(&mut import);
        let pieces: Vec<ImportChunk> =
            pieces.iter().map(|it| ImportChunk { import: import.id.clone(), ..it.clone() }).collect();
        import.folder(&pieces)
    };
    assert!(with(|_| {}).is_some());
    assert_eq!(with(|it| it.files[0].name = "other".to_owned()), None);
    assert_eq!(with(|it| it.files[0].sha256 = Digest::of_file(b"")), None);
    assert_eq!(with(|it| it.files[0].size_bytes += 1), None);
    assert_eq!(with(|it| it.files[0].size_bytes = u64::MAX), None);
    assert_eq!(with(|it| drop(it.files.pop())), None);
    assert_eq!(with(|it| it.digest = Digest::of_file(b"")), None);
    assert_eq!(with(|it| it.id = named(Digest::of_file(b""))), None, "a name is that of its content");
}

#[test]
fn oversized_folder_and_special_files_are_not_stored() {
    let run = RunFolder::default();
    let of = |folder: &Folder| RunImport::of(folder, &run, RunSigner::Nobody {}, by(), at()).map(|_| ());
    let mut large = Folder::default();
    let bytes = usize::try_from(FOLDER_BYTES_MAX).unwrap();
    large.entries.push(("a".to_owned(), FileContent::Bytes(vec![0; bytes])));
    assert_eq!(of(&large), Ok(()));
    large.entries.push(("b".to_owned(), FileContent::Bytes(vec![0])));
    assert_eq!(of(&large), Err(ImportRejected::TooLarge));
    for content in [FileContent::NotAFile, FileContent::TooLong] {
        let entries = vec![("a".to_owned(), content)];
        assert_eq!(of(&Folder { entries }), Err(ImportRejected::NoFiles));
    }
}

#[test]
fn listed_texts_of_a_run_are_shortened() {
    let mut events = happened("ok");
    events.iter_mut().for_each(|it| it.episode_id = "é".repeat(500));
    events[0].payload.insert("task".to_owned(), "é".repeat(5_000).into());
    let (import, _) = kept(&folder(events));
    assert_eq!(import.episode_id.chars().count(), WORD_CHARS_MAX + 1);
    assert_eq!(import.task.chars().count(), TASK_CHARS_MAX + 1);
}

#[test]
fn import_event_contains_no_content_of_the_run() {
    let (import, _) = kept(&folder(happened("ok")));
    let told = import.told().to_string();
    for said in ["Refund", "order-17", "state.json"] {
        assert!(!told.contains(said), "{said}: {told}");
    }
    let mut other = import.clone();
    other.voucher = RunSigner::Unchecked { kid: "k".to_owned() };
    assert_ne!(other.told(), import.told(), "who vouched is told by its hash");
}

#[test]
fn pending_run_is_not_whole() {
    let (_, report) = verify(&folder(paused()), SignatureRequirement::Unchecked);
    assert!(!report.is_whole());
}

fn keys(issuer: &str) -> Keys {
    Keys::generate(issuer, at(), &mut crate::test_random::fill).unwrap()
}

/// Builds the signed folder of a finished episode.
fn signed(keys: &Keys) -> Folder {
    let mut folder = folder(happened("ok"));
    let (_, content) = folder.entries.iter_mut().find(|it| it.0 == Artefact::Manifest.file()).unwrap();
    let FileContent::Bytes(bytes) = content else { panic!("it is a file") };
    let run = ThreadId::try_from("order-17").unwrap();
    let bare = serde_json::from_slice(bytes).unwrap();
    let signed = manifest::signed(bare, &run, keys.signing(KeyUse::Chain), keys.issuer(), 1);
    *bytes = canonical(&signed).into_bytes();
    folder
}

fn kid(keys: &Keys) -> String {
    keys.signing(KeyUse::Chain).kid().to_owned()
}

/// Changes the day in the manifest, and keeps the signature.
fn forged(mut folder: Folder) -> Folder {
    let (_, content) = folder.entries.iter_mut().find(|it| it.0 == Artefact::Manifest.file()).unwrap();
    let FileContent::Bytes(bytes) = content else { panic!("it is a file") };
    let text = String::from_utf8(bytes.clone()).unwrap();
    let other = text.replacen("2026-11-22", "2026-11-23", 1);
    assert_ne!(other, text);
    *bytes = other.into_bytes();
    folder
}

#[test]
fn signer_is_decided_by_keys_and_never_by_the_files() {
    let (own, other) = (keys("https://a.example"), keys("https://b.example"));
    let by = |folder: &Folder, given: Option<&Keys>| check(folder, own.trusted(), given.map(Keys::trusted));
    let bare = folder(happened("ok"));
    assert_eq!(by(&bare, None).voucher, RunSigner::Nobody {});
    assert_eq!(by(&signed(&own), None).voucher, RunSigner::Gateway { kid: kid(&own) });
    assert_eq!(by(&signed(&own), Some(&own)).voucher, RunSigner::Gateway { kid: kid(&own) });
    assert_eq!(by(&signed(&other), None).voucher, RunSigner::Unchecked { kid: kid(&other) });
    let given = by(&signed(&other), Some(&other));
    assert!(given.report.is_whole());
    assert!(matches!(&given.voucher, RunSigner::Other { issuer, .. } if issuer == "https://b.example"), "{given:?}");
    for (folder, given) in [(signed(&other), &own), (signed(&own), &other), (bare, &other)] {
        assert!(!by(&folder, Some(given)).report.is_whole(), "another one is to have signed it");
    }
    let forged = forged(signed(&own));
    assert!(!by(&forged, None).report.is_whole(), "it names this gateway's key, and is not what that signed");
}

#[test]
fn signer_is_verified_again_with_the_files() {
    let (own, other, third) = (keys("https://a.example"), keys("https://b.example"), keys("https://c.example"));
    let of = |folder: &Folder, given: Option<&Keys>| {
        let CheckedImport { run, voucher, .. } = check(folder, own.trusted(), given.map(Keys::trusted));
        (run, voucher)
    };
    let all = [
        of(&folder(happened("ok")), None),
        of(&signed(&own), None),
        of(&signed(&other), Some(&other)),
        of(&signed(&third), None),
    ];
    for (at, (_, voucher)) in all.iter().enumerate() {
        for (other, (run, _)) in all.iter().enumerate() {
            let expected = if at == other { RunSignerStatus::Holds } else { RunSignerStatus::Broken };
            assert_eq!(voucher.stands(run, own.trusted()), expected, "{voucher:?} over {other}");
        }
    }
    let (run, voucher) = &all[1];
    let first = kid(&own);
    let rotated = own.rotate(KeyUse::Chain, at(), &mut crate::test_random::fill).unwrap();
    assert_eq!(voucher.stands(run, rotated.trusted()), RunSignerStatus::Holds, "a retired key did sign");
    let (later, _) = verify(&signed(&rotated), SignatureRequirement::Unchecked);
    assert_eq!(voucher.stands(&later, rotated.trusted()), RunSignerStatus::Broken, "it is not that key's");
    let revoked = rotated.revoke(&first, at(), &mut crate::test_random::fill).unwrap();
    assert_eq!(voucher.stands(run, revoked.trusted()), RunSignerStatus::Revoked);
}

#[test]
fn signer_check_compares_signature_issuer_and_key() {
    let (own, other) = (keys("https://a.example"), keys("https://b.example"));
    let run = |folder: &Folder| verify(folder, SignatureRequirement::Unchecked).0;
    let ours = RunSigner::Gateway { kid: kid(&own) };
    assert_eq!(ours.stands(&run(&signed(&own)), own.trusted()), RunSignerStatus::Holds);
    assert_eq!(ours.stands(&run(&forged(signed(&own))), own.trusted()), RunSignerStatus::Broken, "its key is named");
    let theirs = check(&signed(&other), own.trusted(), Some(other.trusted())).voucher;
    let RunSigner::Other { issuer, kid, keys } = theirs.clone() else { panic!("{theirs:?}") };
    assert_eq!(theirs.stands(&run(&signed(&other)), own.trusted()), RunSignerStatus::Holds);
    assert_eq!(
        theirs.stands(&run(&forged(signed(&other))), own.trusted()),
        RunSignerStatus::Broken,
        "the key is named"
    );
    let elsewhere = RunSigner::Other { issuer: "https://c.example".to_owned(), kid: kid.clone(), keys: keys.clone() };
    assert_eq!(
        elsewhere.stands(&run(&signed(&other)), own.trusted()),
        RunSignerStatus::Broken,
        "who signed it says who it is"
    );
    let by_another = RunSigner::Other { issuer, kid: format!("{kid}x"), keys };
    assert_eq!(by_another.stands(&run(&signed(&other)), own.trusted()), RunSignerStatus::Broken, "by which key, too");
}

#[test]
fn row_above_the_size_limit_gives_no_folder() {
    for (bytes, is_one) in [(FOLDER_BYTES_MAX, true), (FOLDER_BYTES_MAX + 1, false)] {
        let all = vec![0; usize::try_from(bytes).unwrap()];
        let file = ImportedFile { name: "made.bin".to_owned(), sha256: Digest::of_file(&all), size_bytes: bytes };
        let (mut import, _) = kept(&folder(happened("ok")));
        import.files = vec![file];
        import.digest = Digest::of(Tag::Imported, &[canonical(&json!(import.files)).as_bytes()]);
        import.id = named(import.digest);
        let piece = |(bytes, number): (&[u8], u64)| ImportChunk {
            import: import.id.clone(),
            number,
            bytes: STANDARD_NO_PAD.encode(bytes),
        };
        let pieces: Vec<ImportChunk> = all.chunks(PIECE_BYTES_MAX).zip(0..).map(piece).collect();
        assert_eq!(import.folder(&pieces).is_some(), is_one, "{bytes}");
    }
}
