//! Mutations of an input, always the same for the same number.

/// Inputs grow by what is put into them; beyond this they are only slower.
const BYTES_MAX: usize = 4_096;

/// The most that happens to one input.
const ACCIDENTS_MAX: usize = 6;

/// Fragments of JSON, pointers, patterns, TOML and CEL.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "\\ud83d",
    "\\ude00",
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "1e9",
    "0.1",
    "9007199254740993",
    "1e400",
    "/",
    "~",
    "~0",
    "~1",
    "-",
    ".",
    "*",
    "$",
    "{}",
    "[]",
    "\"a\"",
    "\"b\"",
    "\"a\":",
    "\"p\":",
    "\"n\":",
    "\"card\":",
    "\"secret\":",
    "\"text\":",
    "\"op\":\"move\"",
    "\"op\":\"copy\"",
    "\"op\":\"remove\"",
    "\"path\":\"/a\"",
    "\"from\":\"/a\"",
    "/a/0",
    "/b/1",
    "/card/x",
    "é",
    "e\u{301}",
    "😀",
    "me@example.org",
    "4111111111111111",
    "ORD-1234",
    "\n---\n",
    "\n",
    " ",
    "=",
    "#",
    "[[rules]]",
    "[nodes.x]",
    "when = ",
    "reads = [\"$\"]",
    "object",
    "oldObject",
    "change.path",
    "change.after",
    "has(",
    ".all(x, ",
    ".exists(x, ",
    " in ",
    " && ",
    " || ",
    "!",
    " == ",
    " > ",
    " + ",
    " ? ",
    "'x'",
];

/// Inputs without end, made of seeds.
pub struct MutatedInputs<'s> {
    seeds: &'s [Vec<u8>],
    state: u64,
}

impl<'s> MutatedInputs<'s> {
    pub const fn new(seeds: &'s [Vec<u8>]) -> Self {
        Self { seeds, state: 0x9E37_79B9_7F4A_7C15 }
    }

    /// The next number below `end`, by xorshift.
    fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A range of an input, mostly a short one.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = if self.below(4) == 0 { length } else { 8 };
        start..(start + self.below(most + 1)).min(length)
    }

    fn happen(&mut self, input: &mut Vec<u8>) {
        let range = self.range(input.len());
        match self.below(7) {
            0 => _ = input.drain(range),
            1 => {
                let word = self.one_of(WORDS);
                input.splice(range.start..range.start, word.bytes());
            }
            2 => {
                let word = self.one_of(WORDS);
                input.splice(range, word.bytes());
            }
            3 => {
                let part = input[range].to_vec();
                let at = self.below(input.len() + 1);
                input.splice(at..at, part);
            }
            4 => {
                let seeds = self.seeds;
                let other = &seeds[self.below(seeds.len())];
                let part = other[self.range(other.len())].to_vec();
                input.splice(range, part);
            }
            5 => {
                if let Some(byte) = input.get_mut(range.start) {
                    *byte ^= 1 << self.below(8);
                }
            }
            _ => {
                let digit = b'0' + u8::try_from(self.below(10)).unwrap();
                input.splice(range.start..range.start, [digit]);
            }
        }
        input.truncate(BYTES_MAX);
    }
}

impl Iterator for MutatedInputs<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let seeds = self.seeds;
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(ACCIDENTS_MAX) {
            self.happen(&mut input);
        }
        Some(input)
    }
}
