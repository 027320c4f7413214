//! A Rust file as the rules read it: code without comments and texts, texts separately, tests marked.

/// One file of the repository.
pub struct File {
    /// The path from the root, with `/`.
    pub path: String,
    pub text: String,
}

/// A parsed file. Line numbers are those of the file.
pub struct RustSource {
    /// The code. Comments, the insides of texts, and items under `#[cfg(test)]` are spaces.
    pub code: String,
    /// The same, tests included.
    pub all_code: String,
    /// Every text outside tests, with its line from 1.
    pub texts: Vec<(usize, String)>,
    /// The number of lines outside tests.
    pub lines: usize,
}

impl RustSource {
    pub fn read(text: &str) -> Self {
        let (all_code, texts) = blank(text);
        let tests = test_spans(&all_code);
        let is_test = |at: usize| tests.iter().any(|(from, to)| (*from..*to).contains(&at));
        let code = all_code.iter().enumerate().map(|(at, it)| if is_test(at) && *it != '\n' { ' ' } else { *it });
        let line = |at: usize| 1 + all_code[..at].iter().filter(|it| **it == '\n').count();
        let test_lines: usize = tests.iter().map(|(from, to)| line(*to - 1) + 1 - line(*from)).sum();
        let texts = texts.into_iter().filter(|(at, _)| !is_test(*at)).map(|(at, it)| (line(at), it)).collect();
        let lines = text.lines().count() - test_lines;
        Self { code: code.collect(), texts, lines, all_code: all_code.iter().collect() }
    }

    /// Returns the functions with a body: name, first line, number of lines.
    pub fn functions(&self) -> Vec<(String, usize, usize)> {
        let code: Vec<char> = self.code.chars().collect();
        let mut functions = Vec::new();
        for (at, name) in words(&code) {
            let line = |at: usize| 1 + code[..at].iter().filter(|it| **it == '\n').count();
            let Some(next) = words(&code[at + name.len()..]).next().filter(|_| name == "fn") else { continue };
            // `fn(u8)` is a type.
            if code[at + 2..at + 2 + next.0].iter().any(|it| !it.is_whitespace()) {
                continue;
            }
            let Some(open) = body(&code, at).filter(|it| code[*it] == '{') else { continue };
            let end = closing(&code, open);
            functions.push((next.1, line(at), line(end) + 1 - line(at)));
        }
        functions
    }
}

impl RustSource {
    /// Returns the names of the functions with a parameter like `(a, b): (A, B)`.
    pub fn functions_with_tuple_parameters(&self) -> Vec<String> {
        let code: Vec<char> = self.code.chars().collect();
        let names = words(&code).filter(|(_, word)| word == "fn").filter_map(|(at, _)| {
            let (next, name) = words(&code[at + 2..]).next()?;
            let list = parameter_list(&code[at + 2 + next + name.len()..])?;
            has_tuple_parameter(&list).then_some(name)
        });
        names.collect()
    }
}

/// Returns the parameter list after a function's name, without its parentheses and without white space. A type such as
/// `fn(u8)` has none, because no list follows the next word.
fn parameter_list(code: &[char]) -> Option<Vec<char>> {
    let code: Vec<char> = code.iter().take_while(|it| !matches!(it, '{' | ';')).copied().collect();
    let code: Vec<char> = code.into_iter().filter(|it| !it.is_whitespace()).collect();
    let mut angles = 0_i32;
    let open = (0..code.len()).find(|at| {
        match code[*at] {
            '<' => angles += 1,
            '>' if *at > 0 && code[*at - 1] != '-' => angles -= 1,
            _ => (),
        }
        angles == 0 && code[*at] != '>'
    })?;
    (code[open] == '(').then(|| code[open + 1..parenthesis(&code, open)].to_vec())
}

/// Returns the parenthesis that closes the one at `open`.
fn parenthesis(code: &[char], open: usize) -> usize {
    let mut depth = 0_i32;
    let close = (open..code.len()).find(|at| {
        match code[*at] {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => (),
        }
        depth == 0
    });
    close.unwrap_or(code.len() - 1)
}

fn has_tuple_parameter(list: &[char]) -> bool {
    let begins = |at: &usize| list[*at] == '(' && (*at == 0 || list[*at - 1] == ',');
    (0..list.len()).filter(begins).any(|at| list[parenthesis(list, at) + 1..].starts_with(&[':', '(']))
}

/// Returns identifiers and keywords with their positions.
pub fn words(code: &[char]) -> impl Iterator<Item = (usize, String)> {
    let is_word = |it: &char| it.is_alphanumeric() || *it == '_';
    (0..code.len()).filter_map(move |at| {
        let begins = is_word(&code[at]) && (at == 0 || !is_word(&code[at - 1]));
        begins.then(|| (at, code[at..].iter().take_while(|it| is_word(it)).collect()))
    })
}

/// Returns the first `{` or `;` outside parentheses and brackets.
fn body(code: &[char], from: usize) -> Option<usize> {
    let mut depth = 0_i32;
    (from..code.len()).find(|at| {
        match code[*at] {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => (),
        }
        depth == 0 && matches!(code[*at], '{' | ';')
    })
}

/// Returns the brace that closes the one at `open`.
fn closing(code: &[char], open: usize) -> usize {
    let mut depth = 0_i32;
    let close = (open..code.len()).find(|at| {
        match code[*at] {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => (),
        }
        depth == 0
    });
    close.unwrap_or(code.len() - 1)
}

/// Returns the items under `#[cfg(test)]`, with the attribute itself.
fn test_spans(code: &[char]) -> Vec<(usize, usize)> {
    let attribute: Vec<char> = "#[cfg(test)]".chars().collect();
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for from in 0..code.len() {
        let inside = spans.last().is_some_and(|(_, to)| from < *to);
        if inside || !code[from..].starts_with(&attribute) {
            continue;
        }
        let end = match body(code, from + attribute.len()) {
            Some(open) if code[open] == '{' => closing(code, open),
            Some(end) => end,
            None => code.len() - 1,
        };
        spans.push((from, end + 1));
    }
    spans
}

/// Replaces comments and the insides of texts by spaces, and returns the texts.
fn blank(text: &str) -> (Vec<char>, Vec<(usize, String)>) {
    let mut code: Vec<char> = text.chars().collect();
    let (mut texts, mut at) = (Vec::new(), 0);
    while at < code.len() {
        let here = &code[at..];
        let free = at == 0 || !(code[at - 1].is_alphanumeric() || code[at - 1] == '_');
        let prefix = usize::from(matches!(here, ['b' | 'c', 'r', ..]));
        let hashes = here[prefix..].iter().skip(1).take_while(|it| **it == '#').count();
        let opening = prefix + 1 + hashes;
        let raw = free && here.get(prefix) == Some(&'r') && here.get(opening) == Some(&'"');
        let (inner, end) = match here {
            ['/', '/', ..] => (at, at + here.iter().take_while(|it| **it != '\n').count()),
            ['/', '*', ..] => (at, at + comment(here)),
            ['"', ..] => (at + 1, at + 1 + quoted(&here[1..])),
            _ if raw => (at + opening + 1, at + opening + 1 + raw_text(&here[opening + 1..], hashes)),
            ['\'', '\\', ..] => (at + 1, at + 2 + here[2..].iter().skip(1).take_while(|it| **it != '\'').count() + 1),
            ['\'', _, '\'', ..] => (at + 1, at + 2),
            _ => {
                at += 1;
                continue;
            }
        };
        let (end, is_comment) = (end.min(code.len()), inner == at);
        if !is_comment && here[0] != '\'' {
            texts.push((inner, code[inner..end].iter().collect()));
        }
        code[inner..end].iter_mut().filter(|it| **it != '\n').for_each(|it| *it = ' ');
        at = if is_comment { end } else { end + 1 };
    }
    (code, texts)
}

fn comment(here: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < here.len() {
        match here[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(inside: &[char]) -> usize {
    let mut at = 0;
    while at < inside.len() && inside[at] != '"' {
        at += if inside[at] == '\\' { 2 } else { 1 };
    }
    at
}

fn raw_text(inside: &[char], hashes: usize) -> usize {
    let ends = |at: &usize| {
        inside[*at] == '"' && inside[at + 1..].iter().take(hashes).filter(|it| **it == '#').count() == hashes
    };
    (0..inside.len()).find(ends).unwrap_or(inside.len())
}
