//! The reference page of the command line, generated from its help.

use std::fmt::Write as _;

use clap::{Arg, Command};
use fivespot_api::manifest::{GeneratedFile, PAGE_HEADER};

const INTRODUCTION: &str = "\
# The command line

`5spot`, or `kubectl 5spot` if it is installed on the PATH as `kubectl-5spot`. Every command prints
this with `-h`.

Exit codes: 0 success or valid, 1 invalid or goal not reached, 2 error (wrong arguments, an
unreadable file, an unreachable cluster). Errors are printed to standard error as
`error: <what>: <why>; <what to do>`.

`5spot-controller` and `5spot-webhook`, at the end, are programs of their own: those of the Deployments.
";

/// The reference page of the command line and of the programs of the Deployments. Cannot fail.
pub(super) fn page(root: Command) -> GeneratedFile {
    let root = built(root);
    let services = [
        fivespot_controller::program::command(),
        fivespot_webhook::program::command(),
    ];
    let mut text = format!("{PAGE_HEADER}{INTRODUCTION}");
    for command in root.get_subcommands().chain(&services.map(built)) {
        section(&mut text, command, 2);
    }
    GeneratedFile {
        path: "cli.md".to_owned(),
        text,
    }
}

/// A command whose help does not depend on the terminal's width.
fn built(command: Command) -> Command {
    let mut command = command.term_width(100);
    command.build();
    command
}

fn section(text: &mut String, command: &Command, level: usize) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let _ = write!(text, "\n{} {name}\n\n", "#".repeat(level));
    let about = command.get_long_about().or(command.get_about());
    if let Some(about) = about {
        let _ = write!(text, "{about}\n\n");
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = write!(text, "```console\n$ {usage}\n```\n");
    let mut arguments = command
        .get_arguments()
        .filter(|argument| is_shown(argument))
        .peekable();
    if arguments.peek().is_some() {
        text.push('\n');
    }
    for argument in arguments {
        item(text, argument);
    }
    if let Some(examples) = command.get_after_help() {
        let examples = examples.to_string();
        let (title, lines) = examples.split_once('\n').unwrap_or(("", &examples));
        let _ = write!(text, "\n{title}\n\n```sh\n");
        for line in lines.lines() {
            let _ = writeln!(text, "{}", line.strip_prefix("  ").unwrap_or(line));
        }
        text.push_str("```\n");
    }
    for inner in command.get_subcommands() {
        section(text, inner, level + 1);
    }
}

fn is_shown(argument: &Arg) -> bool {
    !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
}

/// Writes one argument: its form, its description, and its default.
fn item(text: &mut String, argument: &Arg) {
    let mut forms = Vec::new();
    forms.extend(argument.get_short().map(|short| format!("-{short}")));
    forms.extend(argument.get_long().map(|long| format!("--{long}")));
    let values: Vec<String> = argument
        .get_value_names()
        .filter(|_| argument.get_action().takes_values())
        .unwrap_or_default()
        .iter()
        .map(|name| format!("<{name}>"))
        .collect();
    let (forms, values) = (forms.join(", "), values.join(" "));
    let is_optional = argument
        .get_num_args()
        .is_some_and(|it| it.min_values() == 0);
    let form = match (argument.is_require_equals_set(), is_optional) {
        (false, _) => format!("{forms} {values}"),
        (true, false) => format!("{forms}={values}"),
        (true, true) => format!("{forms}[={values}]"),
    };
    let _ = write!(text, "- `{}`", form.trim());
    if let Some(help) = argument.get_help() {
        let help = help.to_string();
        let _ = write!(text, ": {}", help.replace('\n', " "));
    }
    let choices = argument.get_possible_values();
    if !choices.is_empty() && argument.get_action().takes_values() {
        let names: Vec<String> = choices
            .iter()
            .filter(|choice| !choice.is_hide_set())
            .map(|choice| format!("`{}`", choice.get_name()))
            .collect();
        let _ = write!(text, "; one of {}", names.join(", "));
    }
    let defaults = argument.get_default_values();
    if !defaults.is_empty() && argument.get_action().takes_values() {
        let defaults: Vec<_> = defaults.iter().map(|it| it.to_string_lossy()).collect();
        let _ = write!(text, " (default: `{}`)", defaults.join(","));
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(text, "; also `${}`", variable.to_string_lossy());
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::page;

    #[test]
    fn the_page_in_the_source_tree_is_up_to_date() {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
        let page = page(crate::command());
        let found = fs::read_to_string(tree.join(&page.path)).ok();
        let difference = page.difference(found.as_deref());
        let remedy = "cargo run --bin 5spot -- generate docs -o docs/reference";
        assert_eq!(difference, None, "run `{remedy}`");
    }

    #[test]
    fn the_page_about_the_installation_lists_every_variable_of_the_operator() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/install.md");
        let page = fs::read_to_string(path).unwrap();
        let controller = fivespot_controller::program::command();
        let mut count = 0;
        for argument in controller.get_arguments() {
            let (Some(variable), Some(flag)) = (argument.get_env(), argument.get_long())
            else {
                continue;
            };
            let row = format!("| `{}` | `--{flag}` |", variable.to_string_lossy());
            let row = page.lines().find(|line| line.starts_with(&row));
            let row = row.unwrap_or_else(|| panic!("there is no row for --{flag}"));
            if let Some(default) = argument.get_default_values().first() {
                let default = format!("| `{}` |", default.to_string_lossy());
                assert!(row.ends_with(&default), "{row} {default}");
            }
            count += 1;
        }
        assert!(count > 10, "{count}");
    }

    #[test]
    fn a_value_that_needs_an_equals_sign_is_shown_and_parsed_with_it() {
        let page = page(crate::command()).text;
        assert!(
            page.contains("\n- `--enable-leader-election[=<BOOL>]`: "),
            "{page}"
        );
        let is_taken = |arguments: &[&str]| {
            let arguments = ["5spot-controller"].iter().chain(arguments);
            let command = fivespot_controller::program::command();
            command.try_get_matches_from(arguments).is_ok()
        };
        assert!(is_taken(&["--enable-leader-election"]));
        assert!(is_taken(&["--enable-leader-election=false"]));
        assert!(!is_taken(&["--enable-leader-election", "false"]));
    }

    #[test]
    fn every_command_has_examples() {
        fn check(command: &clap::Command) {
            for inner in command.get_subcommands() {
                let help = inner.get_after_help().map(ToString::to_string);
                let help = help.unwrap_or_default();
                assert!(help.contains("Example"), "{}", inner.get_name());
                check(inner);
            }
        }
        check(&crate::command());
    }
}
