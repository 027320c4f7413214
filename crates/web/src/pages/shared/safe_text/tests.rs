use super::{SafeJson, SafeLine, SafePath, SafeText};

/// Returns the text that a browser shows for the markup.
fn visible(html: &str) -> String {
    let mut text = String::new();
    let mut inside_tag = false;
    for character in html.chars() {
        match character {
            '<' => inside_tag = true,
            '>' => inside_tag = false,
            _ if !inside_tag => text.push(character),
            _ => {}
        }
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&#34;", "\"").replace("&#39;", "'").replace("&amp;", "&")
}

#[test]
fn markup_in_a_text_stays_text() {
    let evil = "</code><script>alert('x')</script>&amp;\"";
    for html in [SafeLine::new(evil).to_string(), SafeText::new(evil).to_string(), SafeJson::new(evil).to_string()] {
        assert!(!html.contains("<script") && !html.contains("</code"), "{html}");
        assert_eq!(visible(&html), evil);
    }
}

#[test]
fn what_is_visible_of_a_value_parses_to_that_value() {
    for value in
        ["pay\u{202e}42\u{200b}", "\u{e0041}tag", "a\nb\u{1}c\"\\u202e\\", "שלום", "", "<b>&amp;</b>", "17\u{338}"]
    {
        let html = SafeJson::new(serde_json::to_string(value).unwrap()).to_string();
        assert_eq!(serde_json::from_str::<String>(&visible(&html)).unwrap(), value, "{html}");
    }
}

#[test]
fn an_escape_is_an_element_that_text_cannot_imitate() {
    assert_eq!(SafeLine::new("U+202E").to_string(), "U+202E");
    assert_eq!(
        SafeLine::new("\u{202e}").to_string(),
        "<span class=\"esc\" title=\"right-to-left override\">U+202E</span>"
    );
    assert_eq!(SafeLine::new("\u{202e}").plain(), "[U+202E]");
}

#[test]
fn a_long_value_is_folded_with_its_length_and_stays_whole() {
    let long = format!("\"{}\"", "0123456789".repeat(400));
    let html = SafeJson::new(&long).to_string();
    assert!(html.contains("Show all 4,002 characters"));
    assert!(html.contains(&format!("data-whole>{}</div>", long.replace('"', "&#34;"))));
    assert!(!SafeJson::new("\"short\"").to_string().contains("<details"));
}

#[test]
fn a_path_is_dotted_only_where_that_reads_back() {
    for (pointer, shown) in [
        ("/target_user_id", "target_user_id"),
        ("/payment/amount", "payment.amount"),
        ("/items/0", "items.0"),
        ("/a.b", "/a.b"),
        ("/a~1b/c", "/a~1b/c"),
        ("/", "/"),
        ("/a/", "/a/"),
        ("", "(the whole state)"),
        ("/(the whole state)", "/(the whole state)"),
        ("/größe", "/größe"),
    ] {
        assert_eq!(visible(&SafePath::new(pointer).to_string()), shown);
    }
}

#[test]
fn an_escape_before_a_word_does_not_make_it_a_mixed_one() {
    assert_eq!(SafeJson::new("\"\\nпривет\"").warnings(), []);
    assert_eq!(SafeJson::new("\"p\u{430}y\"").warnings().len(), 1);
}
