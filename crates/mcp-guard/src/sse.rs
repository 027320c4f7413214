//! Reads server-sent events piece by piece, with a limit on the size of an event.

/// The limit on an event.
pub const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The data, if there is any.
    pub data: Option<Vec<u8>>,
    pub id: Option<String>,
    /// The delay in milliseconds after which a client reconnects.
    pub retry: Option<u64>,
    kind: Option<String>,
}

impl SseEvent {
    /// Returns the event with this data, as it is sent on. The data has no line breaks.
    pub fn with_data(&self, data: &[u8]) -> Vec<u8> {
        [self.fields().as_bytes(), b"data: ", data, b"\n\n"].concat()
    }

    /// Returns the event without data, as it is sent on.
    pub fn without_data(&self) -> Vec<u8> {
        [self.fields().as_bytes(), b":\n\n"].concat()
    }

    /// Returns the other fields. Comments and unknown lines are not sent on, because a client could read them otherwise.
    fn fields(&self) -> String {
        let kind = self.kind.as_ref().map(|it| format!("event: {it}\n"));
        let id = self.id.as_ref().map(|it| format!("id: {it}\n"));
        let retry = self.retry.map(|it| format!("retry: {it}\n"));
        [kind, id, retry].into_iter().flatten().collect()
    }

    fn add(&mut self, line: &[u8]) {
        let (name, value) = match line.iter().position(|it| *it == b':') {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &[][..]),
        };
        let text = || std::str::from_utf8(value).ok().filter(|it| !it.contains(is_break)).map(str::to_owned);
        match name {
            b"data" => {
                let data = self.data.get_or_insert_default();
                if !data.is_empty() {
                    data.push(b'\n');
                }
                data.extend_from_slice(value);
            }
            b"id" => self.id = text(),
            b"event" => self.kind = text(),
            b"retry" => self.retry = text().and_then(|it| it.parse().ok()),
            _ => {}
        }
    }

    fn bytes(&self) -> usize {
        let text = |it: &Option<String>| it.as_ref().map_or(0, String::len);
        self.data.as_ref().map_or(0, Vec::len) + text(&self.id) + text(&self.kind)
    }
}

/// Returns whether some clients end a line at this character.
fn is_break(it: char) -> bool {
    it.is_control() || matches!(it, '\u{2028}' | '\u{2029}')
}

/// The event is longer than the limit. A part of a message would be another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTooLong;

/// The part of a stream that is not a whole event yet.
#[derive(Default)]
pub struct SseReader {
    line: Vec<u8>,
    event: SseEvent,
    /// The last byte was a carriage return, so a line feed after it belongs to the same line end.
    after_return: bool,
}

impl SseReader {
    /// Reads the next piece, and returns the events that end in it.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<SseEvent>, EventTooLong> {
        let mut events = Vec::new();
        for byte in piece {
            let follows = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if follows => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(*byte),
            }
            if self.line.len() + self.event.bytes() > EVENT_BYTES_MAX {
                return Err(EventTooLong);
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        if self.line.is_empty() {
            return Some(std::mem::take(&mut self.event));
        }
        // A stream can begin with a byte order mark.
        self.event.add(self.line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&self.line));
        self.line.clear();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<SseEvent> {
        let mut reader = SseReader::default();
        // Every split of the stream has the same events.
        text.as_bytes().iter().flat_map(|it| reader.push(&[*it]).unwrap()).collect()
    }

    #[test]
    fn events_are_read_with_every_kind_of_line_end() {
        for end in ["\n", "\r", "\r\n"] {
            let lines = [
                "\u{feff}id: 7",
                "data: {\"a\":",
                "data:1}",
                "",
                ": beat",
                "",
                "retry: 30",
                "event: message",
                "data",
                "",
            ];
            let text: String = lines.iter().flat_map(|it| [*it, end]).collect();
            let events = read(&text);
            assert_eq!(events.len(), 3, "{events:?}");
            assert_eq!(events[0].data.as_deref(), Some(&b"{\"a\":\n1}"[..]));
            assert_eq!((events[0].id.as_deref(), events[1].data.as_ref()), (Some("7"), None));
            assert_eq!((events[2].retry, events[2].data.as_deref()), (Some(30), Some(&b""[..])));
            assert_eq!(SseReader::default().push(text.as_bytes()).unwrap(), events, "one piece");
            assert_eq!(events[0].with_data(b"{}"), b"id: 7\ndata: {}\n\n");
            assert_eq!(events[1].without_data(), b":\n\n", "comments are not sent on");
        }
        assert!(read("data: unfinished\n").is_empty());
        // Other readers end a line at other characters, and could find data in a comment or in an id.
        for hidden in [": x\u{b}data: y\n\n", "id: x\u{2028}data: y\n\n", "\u{feff}\u{feff}data: y\n\n"] {
            let events = read(hidden);
            assert_eq!(events[0].without_data(), b":\n\n", "{hidden:?}");
        }
    }
}
