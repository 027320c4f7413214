//! The terms table of the language guide: words of the left column, as patterns, and the words to write instead.
//!
//! Patterns ignore case. Text in code font is removed before, so a wire name, a policy key or the name of a table never
//! matches when it is written as `code`.

use crate::rules::ProseRule;

const fn term(pattern: &'static str, instead: &'static str) -> ProseRule {
    ProseRule { name: "term", pattern, unless: "", instead }
}

const fn term_unless(pattern: &'static str, unless: &'static str, instead: &'static str) -> ProseRule {
    ProseRule { name: "term", pattern, unless, instead }
}

pub const TERMS: &[ProseRule] = &[
    term(
        r"\bpeople (is|are|be|were|was|have been) asked\b|\bpeople (decide|must decide|have to decide)\b",
        "requires approval; reviewers decide",
    ),
    term_unless(
        r"\b(told|tells)\b",
        r"\b(told|tells) ([a-z]+ )?apart\b",
        "returned, shown, notified or logged, with the part of the gateway that does it",
    ),
    term(r"\baskers?\b", "caller, client or requester"),
    term(r"\b(stands|standing)\b", "is active, applies, current"),
    term(
        r"\b(whoever|whomever|whosoever|somebody|nobody)\b",
        "the role: a reviewer, an administrator, an attacker, no reviewer",
    ),
    term_unless(
        r"\b(a|an|the|this|that|each|every|its|their|one|no|any|such an?) hold\b|\b(the|several|open) holds\b",
        r"\bthe hold (reason|duration)\b",
        "a pending review; \"held for approval\" as a verb",
    ),
    term(
        r"\b(take|takes|took|taken|taking) ([a-z]+ ){0,2}back\b",
        "cancel (proposal), withdraw (vote), revoke (receipt)",
    ),
    term(r"\b(let|lets|letting) ([a-z]+ ){0,2}(through|do)\b", "allow, authorize"),
    term(r"\b(let|lets|letting) ([a-z]+ ){0,2}go on\b", "resume"),
    term(
        r"\b(failed|several|many|few|three|five|ten|more|these|those|the|of|too many) tries\b|\b(a|the|each|every|next|last|one) try\b",
        "attempt; failed sign-in",
    ),
    term_unless(
        r"\bletters?\b",
        r"\bdead[- ]letters?\b|\b(capital|small|look-alike|upper-?case|lower-?case|ascii|latin|greek|cyrillic|first|single) letters?\b|\bletters?,? ?(or|and)? (digits?|numbers?|spaces?)\b|\bletters of\b|\b(by )?the letter( of)?\b",
        "email notifications",
    ),
    term(r"\blanes?\b", "delivery cursor"),
    term_unless(r"\bcop(y|ies) of the log\b|\bfeeds?\b", r"\b(siem|line|atom|rss) feeds?\b", "log export (SIEM)"),
    term_unless(r"\bdut(y|ies)\b", r"\b(separation|segregation) of duties\b", "leader lock; leader"),
    term_unless(
        r"\b(rooms?|house)\b",
        r"\bhouse (rules?|style)\b|\bin-house\b|\broom (for|to|in)\b",
        "module, codebase",
    ),
    term_unless(
        r"\b(hidden|hiding)\b|\b(policy|policies|patterns?|rules?|keys?)( [a-z]+){0,4} hides?\b|\bhides? (values?|it|them|leaves|nothing|anything|x)\b",
        r"\bhidden (characters?|inputs?|files?|elements?|instructions?)\b",
        "redact, redacted",
    ),
    term(r"\bwhat remains of\b", "run artifacts"),
    term(r"\bthe gateway's (own )?word\b", "unverified claim"),
    term(r"\b(had|has|have|having) a hand in\b", "is an author of; contributed to"),
    term(r"\b(turn|turns|turned|turning) ([a-z]+ ){0,2}away\b|\bnot taken\b", "rejected, refused"),
    term_unless(
        r"\b(does|do|did) not count\b",
        r"\bnot count (the|a|an|these|those|towards?|against|as)\b",
        "invalid, rejected",
    ),
    term_unless(
        r"\bkept\b|\b(is|are|was|were|be) gone\b",
        r"\bkept (apart|away|free|from|open|out|up)\b",
        "stored, deleted, purged, expired",
    ),
    term_unless(r"\b(forgets?|forgotten)\b", r"\bforgotten passwords?\b", "deletes, purges, expires"),
    term(r"\bvouch\w*\b", "trusted CA; signed by"),
    term(
        r"\b(beyond )?this machine\b|\b(signs? in|signed in|accounts?|provider) elsewhere\b",
        "localhost, remote host, external identity provider",
    ),
    term(r"\bstrangers?\b", "unauthenticated clients"),
    term(r"\binert\b", "sanitized, escaped"),
    term(r"\b(a|an|no|some|its|their) past\b", "history, sample data"),
    term(r"\b(anew|meanwhile|for ever|be it)\b", "again, since then, permanently, even if"),
    term(r"\bbesides\b", "also"),
    term(r"\bwhat (a |the )?hosts? asks?\b|\basked by (a|the) host\b", "interrupts from host applications"),
    term(r"\bow(e|es|ed)\b", "requires its own approval"),
    term(r"\blaps(e|es|ed|ing)\b", "lease expired, outcome unknown"),
    term(r"\bamendments?\b|\bamended polic(y|ies)\b", "policy change request"),
];
