use std::collections::BTreeSet;

use unicode_script::Script;

use super::{ConfusableFindings, KnownTexts, alike, findings};

/// Characters that UTS 39 confuses with ASCII letters and digits: those that look alike, and the code points of others.
const CONFUSABLES: &str = include_str!("../../../../../tests/vectors/confusables.txt");

/// Characters that later versions of the standard no longer confuse with one letter.
const CORRECTED: [char; 2] = ['\u{2db}', '\u{1ee64}'];

fn confusables() -> impl Iterator<Item = (char, char)> {
    let lines = CONFUSABLES.lines().filter(|it| !it.is_empty() && !it.starts_with('#'));
    lines.flat_map(|line| {
        let (ascii, others) = line.split_once(": ").unwrap();
        let others: Vec<char> =
            others.split(' ').map(|it| char::from_u32(u32::from_str_radix(it, 16).unwrap()).unwrap()).collect();
        ascii.chars().flat_map(move |ascii| others.clone().into_iter().map(move |it| (ascii, it)))
    })
}

#[test]
fn every_confusable_of_an_ascii_letter_or_digit_is_marked() {
    let mut seen = BTreeSet::new();
    let mut known = KnownTexts::default();
    for (ascii, _) in confusables() {
        known.learn(&format!("pa{ascii}t"));
    }
    for (ascii, other) in confusables().filter(|(_, it)| !CORRECTED.contains(it)) {
        let text = format!("pa{other}t");
        assert_ne!(findings(&text), ConfusableFindings::default(), "{text} U+{:04X}", u32::from(other));
        // Later versions of the standard compare a few of these with another letter: those are of another script.
        let beside = known.like(&text).is_some() || known.new_script(&text).is_some();
        assert!(beside, "{text} U+{:04X} for {ascii}", u32::from(other));
        seen.insert(ascii);
    }
    assert_eq!(seen.len(), 62, "every letter and digit has some");
}

#[test]
fn look_alikes_are_marked_without_anything_to_compare_with() {
    for text in [
        "p\u{430}yp\u{430}l",
        "\u{410}cme",
        "\u{1d400}cme",
        "\u{1d5a0}\u{1d5bc}\u{1d5c6}\u{1d5be}",
        "p\u{251}ypal",
        "ＰＡＹＰＡＬ",
        "ꓮꓚꓟꓰ",
        "\u{421}\u{41e}\u{421}\u{410} \u{440}\u{430}\u{443}",
        "\u{440}\u{430}\u{443}\u{440}\u{430}\u{04cf}",
        "paypal․com",
        "https:∕∕example.com",
        "∕etc∕passwd",
        "1\u{41e}\u{41e}",
        "Сумма 1\u{41e}\u{41e} рублей",
        "l\u{0661}l",
        "ко\u{1d428}т",
        "Ⅷ",
        "pa\u{5e1}t",
    ] {
        assert_ne!(findings(text), ConfusableFindings::default(), "{text}");
    }
}

#[test]
fn sentences_of_one_writing_system_are_not_marked() {
    for text in [
        "Перевод с карты на счёт, а не в кассу: он у нас № 5.",
        "Оплата до 2020г включительно",
        "Хаос и сахар — слова русского языка",
        "Ο λογαριασμός του πελάτη και η πληρωμή",
        "支払先を変更してください。〇印のＡＴＭで１０時から",
        "付款：请于12：30之前，汇到账户。",
        "계좌를 변경하고 ㅇㅇ은행으로",
        "تغيير الحساب ١٠٥ إلى اسم جديد",
        "שינוי חשבון הבנק של הספק",
        "भुगतान खाता बदलें ३०",
        "PDFファイル、SQL文、Wi‑Fi接続",
        "ไฟล์PDFของธนาคาร",
        "Zoë’s “naïve” façade – 42 € … 10×20 cm, 1º, 2ª, ¡Hola! Straße æble cœur Łódź",
        "İşçi ve çiğ köfte, İstanbul’da değişti",
        "naïve café 2019–2020",
    ] {
        assert_eq!(findings(text), ConfusableFindings::default(), "{text}");
    }
}

#[test]
fn names_that_nobody_can_tell_apart_are_alike() {
    for (one, other) in [
        ("alice", "Alice"),
        ("alice", "a1ice"),
        ("bob", "b0b"),
        ("ilse", "llse"),
        ("ada", "\u{430}da"),
        ("ada", "\u{410}DA"),
        ("mary", "\u{41c}ary"),
        ("mary", "rnary"),
        ("ηλιας", "ΗΛΙΑΣ"),
        ("ada", "ａｄａ"),
        ("platform", "Platform"),
        ("zo\u{eb}", "zoe\u{308}"),
    ] {
        assert!(alike(one, other) && alike(other, one), "{one} {other}");
    }
    for (one, other) in [("alice", "alicia"), ("a.b", "a-b"), ("ada", "adam"), ("finance", "finances")] {
        assert!(!alike(one, other), "{one} {other}");
    }
}

#[test]
fn a_known_value_is_named_where_another_looks_like_it() {
    let mut known = KnownTexts::default();
    known.learn("Acme Ltd, Berlin");
    known.learn("paypal.com");
    for (text, like) in [
        ("\u{410}cme Ltd, Berlin", "Acme Ltd, Berlin"),
        ("\u{410}cme GmbH", "Acme"),
        ("Acrne Ltd", "Acme"),
        ("paypal․com", "paypal.com"),
        ("see paypa1.com.", "paypal.com"),
        ("Acme\u{200b} Ltd, Berlin", "Acme Ltd, Berlin"),
    ] {
        assert_eq!(known.like(text), Some(like), "{text}");
    }
    for text in ["Acme Ltd, Berlin", "Berlin", "Acme", "acme", "Other Ltd", "", "I", "1"] {
        assert_eq!((known.like(text), known.new_script(text)), (None, None), "{text}");
    }
}

#[test]
fn letters_of_a_script_that_no_known_value_has_are_named() {
    let mut known = KnownTexts::default();
    known.learn("42");
    assert_eq!(known.new_script("Асме"), None, "digits are of no script");
    known.learn("Acme");
    assert_eq!(known.new_script("Асме"), Some(Script::Cyrillic), "м is no m to UTS 39");
    known.learn("Ромашка");
    assert_eq!(known.new_script("Асме"), None);
    known.learn("山田");
    assert_eq!(known.new_script("やまだ"), None);
}
