//! `5spot generate man`: a manual page for each command.

use std::io;

use clap::Command;
use clap_mangen::Man;
use fivespot_api::manifest::GeneratedFile;

/// The manual pages, beginning with that of `5spot` itself.
///
/// # Errors
/// None in practice: the pages are written to memory.
pub(super) fn pages(root: Command) -> io::Result<Vec<GeneratedFile>> {
    let mut root = root.disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    add(&mut pages, &root)?;
    Ok(pages)
}

/// Adds the pages of a command and of its subcommands.
fn add(pages: &mut Vec<GeneratedFile>, command: &Command) -> io::Result<()> {
    let page = Man::new(command.clone())
        .source(concat!("5spot ", env!("CARGO_PKG_VERSION")))
        .manual("5-Spot");
    let mut text = Vec::new();
    page.render(&mut text)?;
    pages.push(GeneratedFile {
        path: page.get_filename(),
        text: String::from_utf8_lossy(&text).into_owned(),
    });
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    for subcommand in shown {
        add(pages, subcommand)?;
    }
    Ok(())
}
