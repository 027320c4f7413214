//! Markdown as sentences: headings, paragraphs, list items and cells, without code, link targets and HTML.
//!
//! Text between `<!-- prose: off -->` and `<!-- prose: on -->` is not read. It is for pages that quote bad examples.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::CODE;

/// Returns the passages with the line, from 1, where each begins.
pub fn passages(text: &str) -> Vec<(usize, String)> {
    let mut reader = PageReader { done: Vec::new(), open: None };
    let (mut fence, mut off, mut comment) = (None::<String>, false, false);
    for (at, line) in text.lines().enumerate() {
        let plain = line.trim_start_matches([' ', '>']).trim_end();
        let ticks: String = plain.chars().take_while(|it| matches!(it, '`' | '~')).collect();
        match &fence {
            Some(open) if plain == ticks && ticks.len() >= open.len() => fence = None,
            Some(_) => (),
            None if ticks.len() >= 3 && !plain[ticks.len()..].contains('`') => {
                reader.close();
                fence = Some(ticks);
            }
            None if plain.starts_with("<!-- prose: off") => off = true,
            None if plain.starts_with("<!-- prose: on") => off = false,
            None if comment || off => comment = comment && !plain.contains("-->"),
            None if plain.starts_with("<!--") => {
                reader.close();
                comment = !plain.contains("-->");
            }
            None => reader.line(at + 1, plain),
        }
    }
    reader.close();
    let clean = reader.done.into_iter().map(|(line, text)| (line, plain(&text)));
    clean.filter(|it| it.1.contains(char::is_alphabetic)).collect()
}

struct PageReader {
    done: Vec<(usize, String)>,
    open: Option<(usize, String)>,
}

impl PageReader {
    fn close(&mut self) {
        self.done.extend(self.open.take());
    }

    fn line(&mut self, at: usize, line: &str) {
        static MARK: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"^(#{1,6}|[-*+]|\d{1,3}[.)])\s+(\[[ x]\] )?").unwrap());
        if line.is_empty() || line.chars().all(|it| "-=*_|: ".contains(it)) {
            self.close();
        } else if line.starts_with('|') {
            self.close();
            self.done.extend(cells(line).into_iter().map(|it| (at, it)));
        } else if let Some(mark) = MARK.find(line) {
            self.close();
            self.open = Some((at, line[mark.end()..].to_owned()));
            if line.starts_with('#') {
                self.close();
            }
        } else if let Some((_, text)) = &mut self.open {
            text.push('\n');
            text.push_str(line);
        } else {
            self.open = Some((at, line.to_owned()));
        }
    }
}

/// The cells of one row. A bar in code font or after a backslash separates nothing.
fn cells(row: &str) -> Vec<String> {
    let (mut cells, mut code, mut escaped) = (vec![String::new()], false, false);
    for it in row.trim_matches('|').chars() {
        code ^= it == '`';
        match it {
            '|' if !code && !escaped => cells.push(String::new()),
            _ => cells.last_mut().unwrap().push(it),
        }
        escaped = it == '\\';
    }
    cells.into_iter().map(|it| it.trim().to_owned()).collect()
}

/// Takes out what is no prose, and leaves the line breaks where they are.
pub fn plain(text: &str) -> String {
    static NO_PROSE: LazyLock<[(Regex, &str); 6]> = LazyLock::new(|| {
        let regex = |it: &str| Regex::new(it).unwrap();
        [
            (regex(r"``[^`]+(`[^`]+)*``|`[^`]*`"), CODE),
            (regex(r"!\[[^\]]*\]\([^)]*\)"), ""),
            // The label of a link stays.
            (regex(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])"), "${1}"),
            (regex(r"<https?://[^>]*>|https?://[^\s)]+"), CODE),
            (regex(r"</?[a-zA-Z][^>]*>"), ""),
            (regex(r"\*\*|__"), ""),
        ]
    });
    let mut text = text.to_owned();
    for (pattern, with) in NO_PROSE.iter() {
        let replaced = pattern.replace_all(&text, |found: &regex::Captures<'_>| {
            let mut new = String::new();
            found.expand(with, &mut new);
            let breaks = |it: &str| it.matches('\n').count();
            new.push_str(&"\n".repeat(breaks(&found[0]).saturating_sub(breaks(&new))));
            new
        });
        text = replaced.into_owned();
    }
    text
}
