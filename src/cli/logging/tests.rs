use std::sync::{Arc, Mutex};

use super::*;

#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}a\u{202e}b\u{200b}\u{9b}31m";

/// Returns the log of a hostile text as a message, as a field and as a debug value.
fn logged<L: tracing_subscriber::Layer<Registry> + Send + Sync>(layer: impl Fn(CapturedLog) -> L) -> String {
    let kept = CapturedLog::default();
    tracing::subscriber::with_default(Registry::default().with(layer(kept.clone())), || {
        tracing::error!(shown = %HOSTILE, debugged = ?HOSTILE, "{HOSTILE}");
    });
    let bytes = kept.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn log_lines_contain_no_control_characters() {
    let text = logged(|to| {
        let to = move || SanitizedFormatter { form: LogFormat::Text, to: to.clone() };
        fmt::layer().with_ansi(false).with_writer(to)
    });
    let json = logged(|to| {
        let to = move || SanitizedFormatter { form: LogFormat::Json, to: to.clone() };
        fmt::layer().json().with_writer(to)
    });
    for line in [&text, &json] {
        assert!(line.contains("owned") && line.ends_with('\n'), "{line:?}");
        let line = line.trim_end_matches('\n');
        assert_eq!(sanitize::inert_line(line), [sanitize::TextSegment::Text(line)], "{line:?}");
    }
    assert!(text.contains("shown=⟨U+001B⟩[2J") && text.contains("a⟨U+202E⟩b⟨U+200B⟩⟨U+009B⟩31m"), "{text:?}");
    let told: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(told["fields"]["shown"], HOSTILE, "read back, it is what it was");
}
