//! Finds look-alike characters by Unicode Technical Standard 39: words of mixed scripts, letters that pass for ASCII,
//! and names that look the same.

mod character;
mod known;
mod names;

pub use known::KnownTexts;
pub use names::{alike, skeleton};

use std::collections::{BTreeMap, BTreeSet};

use unicode_script::{Script, UnicodeScript as _};
use unicode_security::mixed_script::AugmentedScriptSet;

use character::{is_delimiter, is_east_asian, is_full_width, is_mark, is_restricted, reading, reads_as_digit};

/// A character that passes for an ASCII one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lookalike {
    pub character: char,
    pub reads: String,
}

/// Look-alike characters and words in a text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConfusableFindings {
    /// The first word that mixes scripts, by two of them.
    pub mixed: Option<(Script, Script)>,
    /// Characters that pass for ASCII ones, each once, in words that do not mix scripts.
    pub imitations: Vec<Lookalike>,
}

/// Returns the parts of a text that a reader could mistake for other text.
///
/// A letter is not reported if its writing system uses it normally: a Russian sentence may contain the word `с`. A
/// text counts as Russian if another of its letters is Cyrillic and looks like no ASCII letter.
pub fn findings(text: &str) -> ConfusableFindings {
    // ASCII text imitates nothing, so the tables are not needed.
    if text.is_ascii() {
        return ConfusableFindings::default();
    }
    let seen = CharacterProfile::of(text);
    let mut found = ConfusableFindings::default();
    let mut characters = Vec::new();
    for word in seen.words(text) {
        match seen.mixed(word) {
            // A word of mixed scripts has its own warning, so its characters are not listed again.
            Some(scripts) => found.mixed = found.mixed.or(Some(scripts)),
            None => characters.extend(seen.imitations_in(word)),
        }
    }
    characters.extend(seen.delimiters_in(text));
    let mut once = BTreeSet::new();
    characters.retain(|it| once.insert(*it));
    let imitation = |it: char| Some(Lookalike { character: it, reads: seen.readings.get(&it)?.clone() });
    found.imitations = characters.into_iter().filter_map(imitation).collect();
    found
}

/// Properties of the characters of a text. Each character is looked up once.
struct CharacterProfile {
    /// ASCII reading of each character that passes for ASCII.
    readings: BTreeMap<char, String>,
    /// The scripts that the text has letters of which look like no ASCII one.
    written_in: BTreeSet<&'static str>,
}

impl CharacterProfile {
    fn of(text: &str) -> Self {
        let characters: BTreeSet<char> = text.chars().filter(|it| !it.is_ascii()).collect();
        let readings: BTreeMap<char, String> = characters.iter().filter_map(|it| Some((*it, reading(*it)?))).collect();
        let own = characters.iter().filter(|it| it.is_alphabetic() && !readings.contains_key(it));
        let written_in = own.map(|it| it.script().short_name()).collect();
        Self { readings, written_in }
    }

    fn imitates(&self, it: char) -> bool {
        self.readings.contains_key(&it)
    }

    /// Returns whether a character that passes for ASCII is an ordinary one in this text.
    fn is_at_home(&self, it: char) -> bool {
        let written_in = |it: Script| self.written_in.contains(it.short_name());
        // Unicode counts full-width characters as Latin, but East Asian texts use them normally.
        if is_full_width(it) {
            return [Script::Han, Script::Hiragana, Script::Katakana, Script::Hangul].into_iter().any(written_in);
        }
        match it.script() {
            Script::Latin | Script::Common | Script::Inherited => false,
            script => written_in(script),
        }
    }

    /// Returns the words of a text: runs of letters, digits and marks. A sign that passes for a letter belongs to the
    /// word around it.
    fn words<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let word = &rest[rest.find(char::is_alphanumeric)?..];
            let mut around = (' ', word.chars().skip(1));
            let ends = |it: char| {
                let next = around.1.next().unwrap_or(' ');
                let before = std::mem::replace(&mut around.0, it);
                let inside = before.is_alphabetic() && next.is_alphabetic();
                let stays = it.is_alphanumeric() || is_mark(it) || (inside && self.passes_for_a_letter(it));
                !stays
            };
            let (word, after) = word.split_at(word.find(ends).unwrap_or(word.len()));
            rest = after;
            Some(word)
        })
    }

    fn passes_for_a_letter(&self, it: char) -> bool {
        self.readings.get(&it).is_some_and(|it| it.bytes().all(|it| it.is_ascii_alphanumeric()))
    }

    /// Returns two scripts of a word that mixes them as no language does.
    fn mixed(&self, word: &str) -> Option<(Script, Script)> {
        let of_a_script = |it: &char| !matches!(it.script(), Script::Common | Script::Inherited);
        let letters: Vec<char> = word.chars().filter(|it| it.is_alphanumeric()).filter(of_a_script).collect();
        if !scripts_shared_by(&letters).is_empty() {
            return None;
        }
        let first = letters.first()?.script();
        let other = letters.iter().map(|it| it.script()).find(|it| *it != first).unwrap_or(first);
        let foreign: Vec<char> = letters.into_iter().filter(|it| it.script() != Script::Latin).collect();
        (!self.are_borrowed(&foreign)).then_some((first, other))
    }

    /// Returns whether the letters next to Latin ones are of one script and cannot be mistaken for Latin: `PDFファイル`.
    /// UTS 39 calls such words moderately restrictive, unless the letters are Greek or Cyrillic. Armenian has as many
    /// that look Latin.
    fn are_borrowed(&self, letters: &[char]) -> bool {
        let lookalikes = |it: &char| matches!(it.script(), Script::Greek | Script::Cyrillic | Script::Armenian);
        let in_use = |it: &char| is_east_asian(*it) || it.script().is_recommended();
        !scripts_shared_by(letters).is_empty()
            && letters.iter().all(in_use)
            && !letters.iter().any(lookalikes)
            && letters.iter().any(|it| !self.imitates(*it))
    }

    /// Returns the characters by which a word passes for another.
    fn imitations_in(&self, word: &str) -> Vec<char> {
        let foreign = || word.chars().filter(|it| !it.is_ascii());
        let passes_whole = foreign().all(|it| self.imitates(it));
        let beside_digits = word.bytes().any(|it| it.is_ascii_digit());
        let misleads = |it: &char| {
            let Some(reads) = self.readings.get(it) else { return false };
            let strange = !self.is_at_home(*it);
            // A character of the text's own script can still pass for a digit in a number.
            let as_a_digit = beside_digits && reads_as_digit(reads);
            (passes_whole && (strange || as_a_digit)) || (strange && is_restricted(*it))
        };
        foreign().filter(misleads).collect()
    }

    /// Returns characters that pass for separators of an address, a path or a number: `paypal․com`.
    fn delimiters_in(&self, text: &str) -> Vec<char> {
        let delimits = |it: char| self.readings.get(&it).is_some_and(|reads| is_delimiter(it, reads));
        if !self.readings.keys().any(|it| delimits(*it)) {
            return Vec::new();
        }
        let characters: Vec<char> = text.chars().collect();
        let machine = |it: Option<&char>| it.is_none_or(|it| it.is_ascii_graphic() || delimits(*it));
        let letter = |it: Option<&char>| it.is_some_and(char::is_ascii_alphanumeric);
        let misleads = |(at, it): (usize, &char)| {
            let (before, after) = (at.checked_sub(1).and_then(|it| characters.get(it)), characters.get(at + 1));
            // A sign beside spaces or foreign characters separates no parts of an address.
            let inside = machine(before) && machine(after) && (letter(before) || letter(after));
            (delimits(*it) && inside && !self.is_at_home(*it)).then_some(*it)
        };
        characters.iter().enumerate().filter_map(misleads).collect()
    }
}

fn scripts_shared_by(letters: &[char]) -> AugmentedScriptSet {
    letters.iter().collect::<String>().as_str().into()
}

#[cfg(test)]
mod tests;
