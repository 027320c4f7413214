//! The page of the command line, from clap's commands.

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command, CommandFactory as _};
use countersign::cli::args::Args;

use super::{row, sentence};

const INTRODUCTION: &str = "\
# Command line

This page lists every command of `countersign` with its arguments. `countersign COMMAND --help` prints the same text.

- Commands work beside a running gateway, with the same `--data` or `--database`. Their changes take effect there at once.
- Standard output contains only the result. `token add` prints the token once. Messages and warnings go to standard error.
- `--json` prints the result as JSON.
- The [configuration](configuration.md) applies to every command that opens the database or the keyring.

The command line cannot rename an account. A token cannot change either: create a new one.
";

const EXIT_CODES: &str = "\
## Exit codes

Every command exits with 0 for yes, 1 for no, or 2 if there is no answer. Code 1 includes every request that the gateway refuses.
Code 2 includes invalid arguments, an invalid configuration, and an unavailable database or keyring.

| Command | 0 | 1 | 2 |
|---|---|---|---|
| `init` | The flow is set up. | The flow or the account exists already, or a name is refused. | A file exists already, or an answer is missing. |
| `doctor` | No problem. There may be warnings. | At least one problem. | No database. |
| `health` | The gateway is alive. | It does not respond, or not with 200. | Invalid configuration. |
| `verify` | The receipt is genuine. | The receipt is invalid. | A check could not be decided. |
| `audit` | No findings. | At least one finding. | The audit is incomplete. |
| `audit --export` | Everything in the export is valid. | At least one finding. | Versions or a receipt's thread are missing, or a key is retired. |
| `policy check` | The policy is valid. | The policy is invalid. | Unreadable input. |
| `policy activate` | The policy is active. | The policy is invalid, or its change requires approval. | No database. |
| `policy what-if` | The policy commits without approval. | The policy holds or rejects. | Unreadable input. |
| `policy test` | All cases match. | A case differs. | Unreadable input. |
| `policy replay` | All outcomes are the same. | An outcome differs. | Unreadable input or no database. |
| `archive verify` | All files are sound. | A file is not sound. | Unreadable keys. |
| `envelope verify` | The envelope is valid. | The envelope is invalid. | Unreadable input. |
| `guard` | The state passes. | The state does not pass. | The schema, the rules or a file cannot be used. |
| `episode verify` | The folder is verified. | The folder is refused. | Nothing is wrong, but nothing proves completeness. |
";

pub fn page() -> String {
    let mut root = Args::command();
    root.build();
    let mut page =
        format!("{INTRODUCTION}\n{EXIT_CODES}\n## Global flags\n\nThese flags can appear anywhere on the line.\n\n");
    arguments(root.get_arguments().filter(|it| it.is_global_set()), &mut page);
    for command in commands(&root) {
        section(command, "countersign", 2, &mut page);
    }
    page
}

fn commands(of: &Command) -> impl Iterator<Item = &Command> {
    of.get_subcommands().filter(|it| it.get_name() != "help")
}

fn section(command: &Command, above: &str, level: usize, page: &mut String) {
    let name = format!("{above} {}", command.get_name());
    write!(page, "\n{} {name}\n\n", "#".repeat(level)).unwrap();
    let about = command.get_long_about().or(command.get_about()).map(StyledStr::to_string).unwrap_or_default();
    for paragraph in about.split("\n\n") {
        write!(page, "{}\n\n", sentence(&paragraph.split_whitespace().collect::<Vec<_>>().join(" "))).unwrap();
    }
    if command.has_subcommands() {
        page.truncate(page.trim_end().len());
        page.push('\n');
        commands(command).for_each(|it| section(it, &name, level + 1, page));
        return;
    }
    let usage = command.clone().render_usage().to_string();
    write!(page, "```\n{}\n```\n", usage.trim_start_matches("Usage: ").trim()).unwrap();
    let own: Vec<_> = command.get_arguments().filter(|it| !it.is_global_set() && !is_built_in(it)).collect();
    if !own.is_empty() {
        page.push('\n');
        arguments(own.into_iter(), page);
    }
}

fn is_built_in(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version)
}

fn arguments<'a>(all: impl Iterator<Item = &'a Arg>, page: &mut String) {
    page.push_str("| Argument | Default | Meaning |\n|---|---|---|\n");
    for argument in all {
        let help = argument.get_long_help().or(argument.get_help()).map(StyledStr::to_string).unwrap_or_default();
        let mut help = sentence(&help);
        for value in argument.get_possible_values().iter().filter(|_| argument.get_action().takes_values()) {
            let meaning = value.get_help().map(StyledStr::to_string).unwrap_or_default();
            write!(help, " `{}`: {}", value.get_name(), sentence(&meaning)).unwrap();
        }
        page.push_str(&row([name(argument).as_str(), default(argument).as_str(), help.as_str()]));
    }
}

fn name(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let values = values.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(" ");
    match argument.get_long() {
        Some(long) if argument.get_action().takes_values() => format!("`--{long} {values}`"),
        Some(long) => format!("`--{long}`"),
        None => format!("`{values}`"),
    }
}

fn default(argument: &Arg) -> String {
    if !argument.get_action().takes_values() && !argument.is_required_set() {
        return String::new();
    }
    let values = argument.get_default_values().iter().map(|it| it.to_string_lossy());
    let values = values.map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
    let variable = argument.get_env().map(|it| format!("`{}`", it.to_string_lossy()));
    match (variable, argument.is_required_set()) {
        (_, true) => "required".to_owned(),
        (Some(variable), false) => format!("{variable}, else {values}"),
        (None, false) => values,
    }
}
