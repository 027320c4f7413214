//! Pointers and patterns. Each line of the input is tried as both, and all are held against each other.

use countersign_domain::json::pattern::Pattern;
use countersign_domain::json::pointer::Pointer;

/// Lines that are looked at: their number squared is what is compared.
const LINES_MAX: usize = 12;

/// A place is what its text says, by a reading of one's own.
pub fn check(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let lines: Vec<&str> = text.split('\n').take(LINES_MAX).collect();
    let pointers: Vec<Pointer> = lines.iter().filter_map(|it| pointer(it)).collect();
    let patterns: Vec<Pattern> = lines.iter().filter_map(|it| pattern(it)).collect();
    for one in &pointers {
        pointers.iter().for_each(|other| two_pointers(one, other));
        patterns.iter().for_each(|it| pattern_and_pointer(it, one));
    }
}

fn pointer(text: &str) -> Option<Pointer> {
    let escapes = text.split('~').skip(1).all(|it| it.starts_with('0') || it.starts_with('1'));
    let is_one = (text.is_empty() || text.starts_with('/')) && escapes;
    let read = Pointer::try_from(text);
    assert_eq!(read.is_ok(), is_one, "{text:?}");
    let pointer = read.ok()?;
    assert_eq!(pointer.as_str(), text);
    assert_eq!(pointer.tokens().fold(Pointer::root(), |above, token| above.child(&token)), pointer);
    match pointer.parent() {
        Some(above) => {
            assert!(above.covers(&pointer) && above.touches(&pointer) && !pointer.covers(&above));
            let last = pointer.tokens().last().expect("below something");
            assert_eq!(above.child(&last), pointer);
        }
        None => assert!(pointer.is_root()),
    }
    Some(pointer)
}

fn pattern(text: &str) -> Option<Pattern> {
    let plain = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    let read = Pattern::try_from(text);
    assert!(read.is_ok() || !text.split('.').all(|it| it == "*" || plain(it)), "{text:?}");
    let pattern = read.ok()?;
    assert_eq!(pattern.as_str(), text);
    assert_eq!(pattern.pointer().is_none(), segments(&pattern).contains(&"*"));
    Some(pattern)
}

/// What a pattern names, read off its text once more.
fn segments(pattern: &Pattern) -> Vec<&str> {
    let text = pattern.as_str();
    if text == "$" {
        return Vec::new();
    }
    text.strip_prefix("$.").unwrap_or(text).split('.').collect()
}

fn two_pointers(one: &Pointer, other: &Pointer) {
    let (a, b): (Vec<_>, Vec<_>) = (one.tokens().collect(), other.tokens().collect());
    assert_eq!(one.covers(other), b.starts_with(&a), "{one} {other}");
    assert_eq!(one.touches(other), b.starts_with(&a) || a.starts_with(&b), "{one} {other}");
    assert_eq!(one == other, a == b);
}

fn pattern_and_pointer(pattern: &Pattern, pointer: &Pointer) {
    let (segments, tokens) = (segments(pattern), pointer.tokens().collect::<Vec<_>>());
    let agree = segments.iter().zip(&tokens).all(|(segment, token)| *segment == "*" || segment == token);
    assert_eq!(pattern.touches(pointer), agree, "{pattern} {pointer}");
    assert_eq!(pattern.covers(pointer), agree && tokens.len() >= segments.len(), "{pattern} {pointer}");
    if let Some(named) = pattern.pointer() {
        assert_eq!(pattern.covers(pointer), named.covers(pointer));
        assert_eq!(pattern.touches(pointer), named.touches(pointer));
    }
    let below = pointer.child("any/key~");
    assert!(!pattern.covers(pointer) || pattern.covers(&below), "{pattern} {pointer}");
    assert!(pattern.touches(pointer) || !pattern.touches(&below), "{pattern} {pointer}");
}
