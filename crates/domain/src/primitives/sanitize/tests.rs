use unicode_script::Script;

use super::{TextSegment, TextWarning, inert, inert_line, warnings};

fn escapes(text: &str) -> Vec<char> {
    let escape = |it: &TextSegment<'_>| match it {
        TextSegment::Escape(character) => Some(*character),
        TextSegment::Text(_) => None,
    };
    inert(text).iter().filter_map(escape).collect()
}

fn joined(segments: &[TextSegment<'_>]) -> String {
    let mut text = String::new();
    for segment in segments {
        match segment {
            TextSegment::Text(plain) => text.push_str(plain),
            TextSegment::Escape(character) => text.push(*character),
        }
    }
    text
}

#[test]
fn every_character_that_hides_or_reorders_is_shown_by_its_number() {
    for character in [
        '\0',
        '\u{7}',
        '\t',
        '\r',
        '\u{1b}',
        '\u{7f}',
        '\u{85}',
        '\u{a0}',
        '\u{ad}',
        '\u{61c}',
        '\u{180e}',
        '\u{200b}',
        '\u{200d}',
        '\u{200e}',
        '\u{202a}',
        '\u{202e}',
        '\u{2028}',
        '\u{2060}',
        '\u{2066}',
        '\u{2069}',
        '\u{2800}',
        '\u{3000}',
        '\u{3164}',
        '\u{e000}',
        '\u{fe0f}',
        '\u{feff}',
        '\u{fffc}',
        '\u{ffff}',
        '\u{1d173}',
        '\u{e0041}',
        '\u{e0101}',
        '\u{10fffd}',
    ] {
        assert_eq!(escapes(&format!("a{character}b")), [character], "{:x}", u32::from(character));
    }
}

#[test]
fn letters_of_any_language_and_pictures_are_left_alone() {
    for text in ["Zoë's 42 € – naïve", "Ελληνικά", "漢字かな", "हिन्दी", "שָׁלוֹם", "العربية", "Việt", "👍🏽"]
    {
        assert_eq!(inert(text), [TextSegment::Text(text)]);
    }
}

#[test]
fn the_segments_are_the_whole_text_in_order() {
    let text = "\u{202e}a\u{200b}\u{200b}b\nc\u{301}\u{301}\u{301}\u{301}\u{301}";
    assert_eq!(joined(&inert(text)), text);
    assert_eq!(joined(&inert_line(text)), text);
}

#[test]
fn a_line_feed_is_kept_in_prose_and_shown_by_its_number_in_a_line() {
    assert_eq!(inert("a\nb"), [TextSegment::Text("a\nb")]);
    assert_eq!(inert_line("a\nb"), [TextSegment::Text("a"), TextSegment::Escape('\n'), TextSegment::Text("b")]);
}

#[test]
fn heaped_or_stray_combining_marks_cannot_paint_over_their_neighbours() {
    assert!(escapes("e\u{301}").is_empty());
    assert_eq!(escapes(&format!("e{}", "\u{301}".repeat(5))).len(), 2);
    assert_eq!(escapes("17\u{338}"), ['\u{338}']);
    assert_eq!(escapes("\u{338}"), ['\u{338}']);
}

#[test]
fn a_reader_is_told_of_invisible_reversed_and_lookalike_text() {
    assert_eq!(warnings("plain text, 42"), []);
    assert_eq!(warnings("a\u{200b}b\u{202e}"), [TextWarning::Invisible(2)]);
    assert_eq!(warnings("שלום"), [TextWarning::RightToLeft]);
    assert_eq!(warnings("p\u{430}yp\u{430}l"), [TextWarning::MixedScripts(Script::Latin, Script::Cyrillic)]);
    assert_eq!(warnings("Москва Athens"), [], "two words in two scripts mislead nobody");
}
