//! Measures nested brackets before anything is parsed. The parser recurses with them, and a stack overflow would end
//! the process.

/// Returns the depth of the deepest bracket outside of string literals and comments.
pub(super) fn depth(source: &str) -> usize {
    let bytes = source.as_bytes();
    let (mut at, mut open, mut deepest) = (0, 0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'(' | b'[' | b'{' => {
                open += 1;
                deepest = deepest.max(open);
            }
            // The parser reports a closing bracket that was never opened.
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            // Brackets in a text do not nest.
            b'\'' | b'"' => {
                at = after_text(bytes, at);
                continue;
            }
            // A quote in a comment must not open a text.
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = bytes[at..].iter().position(|it| *it == b'\n').map_or(bytes.len(), |it| at + it);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    deepest
}

/// Returns the end of the string literal whose opening quote is at this position.
fn after_text(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    let is_raw = at > 0 && matches!(bytes[at - 1], b'r' | b'R');
    let three = [quote; 3];
    let end: &[u8] = if bytes[at..].starts_with(&three) { &three } else { &three[..1] };
    let mut at = at + end.len();
    while at < bytes.len() && !bytes[at..].starts_with(end) {
        // An escaped quote does not end the text, but a raw text has no escapes.
        at += if bytes[at] == b'\\' && !is_raw { 2 } else { 1 };
    }
    // A text without a closing quote would otherwise end after the source.
    (at + end.len()).min(bytes.len())
}
