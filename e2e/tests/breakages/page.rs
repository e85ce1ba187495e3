//! The page about breakages, generated from the table.

use std::fmt::Write as _;

use fivespot_api::condition::Reason;
use fivespot_testkit::Page;

use super::table::{BREAKAGES, Breakage, HEALTHY};

const INTRODUCTION: &str = "\
# What a breakage looks like

Each row is an end-to-end test (`e2e/tests/breakages.rs`): it breaks something, reads the ScheduledMachine, and computes
its status with [kstatus](https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus). `Stalled` is absent
while a change is expected without a user, and while the machine is in the state that its spec requests. The column
Warning has the reason of the Warning event; it is empty if there is none. The
[state](troubleshooting.md#states) is what `5spot status`, `5spot explain` and the dashboard show first. It, the cause
and the remedy are the same for the administrator and for the owner of the machine, who may read it (`5spot-view`,
`5spot-override-editor`) and nothing of the operator. With no operator running, every state is `Unknown`, and the last
report follows the cause. The health checks of
[Use GitOps](how-to/gitops.md) for Flux and Argo CD are stricter: for them, a machine that is Active or Inactive and not
ready has failed.

<!-- Printed from the table of the tests by `UPDATE_PAGES=1 cargo test --test promises page_is_printed`. -->

";

const COLUMNS: &str = "\
state | PHASE | READY | reason of `Ready` | `Stalled` | Warning | kstatus |
|---|---|---|---|---|---|---|---|
";

fn overview(page: &mut String, title: &str, rows: &[Breakage]) {
    let _ = write!(page, "| {title} | {COLUMNS}");
    for row in rows {
        let (status, reason) = row.ready.split_once(' ').expect("status and reason");
        let cells = [
            row.state.as_str(),
            row.phase,
            status,
            reason,
            row.stalled,
            row.warning,
            row.kstatus,
        ];
        let cells = cells.map(|cell| match cell {
            "-" => String::new(),
            cell => format!("`{cell}`"),
        });
        let _ = writeln!(page, "| {} | {} |", row.what, cells.join(" | "));
    }
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

/// The message of a breakage, and its remedy.
fn section(page: &mut String, row: &Breakage) {
    let _ = writeln!(page, "\n### {}\n", capitalised(row.what));
    if row.message != "-" {
        let _ = writeln!(page, "```text\n{}\n```\n", row.message);
    }
    let Some(remedy) = Reason::row(row.remedy).and_then(|row| row.remedy) else {
        let _ = writeln!(page, "{}", row.remedy);
        return;
    };
    let is_shown = row.ready.ends_with(row.remedy) || row.stalled == row.remedy;
    if !is_shown {
        let _ = write!(page, "Another condition has the reason `{}`. ", row.remedy);
    }
    let more = remedy.section.map_or_else(String::new, |section| {
        format!(" See [{}]({}).", section.title, section.path)
    });
    let _ = writeln!(page, "{}{more}", remedy.text);
}

/// Compares the page with the table, or writes it.
pub(super) fn compare_with_output() {
    let mut page = INTRODUCTION.to_owned();
    overview(&mut page, "what is broken", BREAKAGES);
    page.push_str("\n## Where nothing is broken\n\n");
    overview(&mut page, "what is so", HEALTHY);
    page.push_str("\n## Messages and remedies\n\nNames and times are examples.\n");
    for row in BREAKAGES {
        section(&mut page, row);
    }
    Page::compare_with_output("breakages.md", &page);
}
