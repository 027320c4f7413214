//! Marks look-alike texts in a response.
//!
//! Marks depend only on values that the response shows. So they reveal nothing about redacted values.

use countersign_domain::primitives::confusable::KnownTexts;
use countersign_domain::primitives::sanitize::{TextWarning, warnings, warnings_beside};
use serde_json::{Value, json};

/// The limit on marks. Each line of a response could have several.
const MARKS_MAX: usize = 100;

/// Adds `marks: [{pointer, of, code, detail}]` for the lines of `diff` and `arguments`, if there are any.
pub fn put_marks(answer: &mut Value) {
    let lines = |name: &str| answer.get(name).and_then(Value::as_array).into_iter().flatten();
    let marks: Vec<Value> = lines("diff").chain(lines("arguments")).flat_map(marks_of).take(MARKS_MAX).collect();
    if !marks.is_empty() {
        answer["marks"] = Value::Array(marks);
    }
}

fn marks_of(line: &Value) -> Vec<Value> {
    let text = |name: &str| line.get(name).and_then(Value::as_str);
    let Some(pointer) = text("pointer") else { return Vec::new() };
    let mark =
        |of: &str, it: &TextWarning| json!({"pointer": pointer, "of": of, "code": it.code(), "detail": it.words()});
    let mut marks: Vec<Value> = warnings(pointer).iter().map(|it| mark("name", it)).collect();
    for value in [text("after"), text("value")].into_iter().flatten() {
        marks.extend(warnings(value).iter().map(|it| mark("value", it)));
        // A changed text is compared with the old one, because a look-alike of the old value is a typical deception.
        let mut known = KnownTexts::default();
        text("before").into_iter().for_each(|it| known.learn(it));
        marks.extend(warnings_beside(value, &known).iter().map(|it| mark("value", it)));
    }
    marks
}
