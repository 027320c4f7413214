//! Messages to Slack and Teams about pending reviews.
//!
//! The readers of a chat are not signed in, so a message has a link to the page but no proposed values.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::mail_contact::PATIENCE;
use crate::log::event::EventType;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chat {
    Slack,
    /// Microsoft Teams.
    Teams,
}

/// Content of a message, independent of the chat.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChatMessage {
    pub title: String,
    /// Labels and values.
    pub facts: Vec<(&'static str, String)>,
    pub page: String,
}

const END: &str = "Sign in there to review and decide. You cannot decide in this chat.";

/// Returns whether a chat gets a message about an event.
pub const fn tells(event: EventType) -> bool {
    matches!(
        event,
        EventType::TransitionHeld
            | EventType::ReviewReminded
            | EventType::ReviewEscalated
            | EventType::InterruptReceived
    )
}

/// Returns the delay before a message is sent. A reviewer who has the page open may decide within this time.
pub const fn patience() -> Duration {
    PATIENCE
}

impl Chat {
    pub fn message(self, note: &ChatMessage) -> Value {
        match self {
            Self::Slack => slack(note),
            Self::Teams => teams(note),
        }
    }
}

/// Builds a Slack message. Facts are plain text and need no escaping. The other texts are markup, in which a flow's
/// name could otherwise become a mention or a link.
fn slack(note: &ChatMessage) -> Value {
    let facts = note.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n");
    let (title, page) = (escaped(&note.title), escaped(&note.page));
    let link = format!("<{page}|Open the page>. {END}");
    json!({
        "text": format!("{title}\n{page}"),
        // Slack would fetch the page to show a preview of it.
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": [
            // Plain text cannot contain a mention or a link, so the agent's text cannot notify a channel.
            {"type": "section", "text": {"type": "plain_text", "text": note.title, "emoji": false}},
            {"type": "section", "text": {"type": "plain_text", "text": facts, "emoji": false}},
            // Otherwise Slack turns addresses and names in the text into links by itself.
            {"type": "section", "text": {"type": "mrkdwn", "text": link, "verbatim": true}},
        ],
    })
}

// Slack requires exactly these three escapes.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn teams(note: &ChatMessage) -> Value {
    let facts: Vec<Value> =
        note.facts.iter().map(|(name, value)| json!({"title": name, "value": unmarked(value)})).collect();
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": [
                    {"type": "TextBlock", "text": unmarked(&note.title), "weight": "bolder", "wrap": true},
                    {"type": "FactSet", "facts": facts},
                    {"type": "TextBlock", "text": END, "wrap": true, "isSubtle": true},
                ],
                "actions": [{"type": "Action.OpenUrl", "title": "Open the page", "url": note.page}],
            },
        }],
    })
}

/// Escapes Markdown, because a Teams card renders it. Text of an agent could otherwise become a link.
fn unmarked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for it in text.chars() {
        if matches!(it, '[' | ']' | '(' | ')' | '*' | '_' | '\\' | '<' | '>' | '`') {
            out.push('\\');
        }
        out.push(it);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note() -> ChatMessage {
        ChatMessage {
            title: "A review waits: pay<!channel>".to_owned(),
            facts: vec![("Risk", "protected: [a](https://evil.example) & *b* <https://evil.example|c>".to_owned())],
            page: "https://gate.example/reviews/1?a&b".to_owned(),
        }
    }

    #[test]
    fn slack_message_has_no_mention_and_only_the_page_link() {
        let message = Chat::Slack.message(&note());
        assert_eq!(message["text"], "A review waits: pay&lt;!channel&gt;\nhttps://gate.example/reviews/1?a&amp;b");
        let blocks = message["blocks"].as_array().unwrap();
        let marked: Vec<&Value> = blocks.iter().filter(|it| it["text"]["type"] == "mrkdwn").collect();
        assert_eq!(marked.len(), 1);
        let text = marked[0]["text"]["text"].as_str().unwrap();
        assert!(text.starts_with("<https://gate.example/reviews/1?a&amp;b|Open the page>."), "{text}");
        assert!(!text.contains("evil") && !text.contains("channel"), "{text}");
    }

    #[test]
    fn teams_card_has_only_the_page_link() {
        let card = &Chat::Teams.message(&note())["attachments"][0]["content"];
        let fact = card["body"][1]["facts"][0]["value"].as_str().unwrap();
        assert_eq!(fact, r"protected: \[a\]\(https://evil.example\) & \*b\* \<https://evil.example|c\>");
        assert_eq!(card["actions"].as_array().unwrap().len(), 1);
        assert_eq!(card["actions"][0]["url"], "https://gate.example/reviews/1?a&b");
    }
}
