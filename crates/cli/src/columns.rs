//! Prints rows of text in columns, two spaces apart. A text of a server cannot leave its cell.

use std::io::{self, Write};

use crate::plain;

/// The widths of the columns of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns<const N: usize>(pub(crate) [usize; N]);

impl<const N: usize> Columns<N> {
    /// Columns as wide as their heads.
    pub(crate) fn under(heads: [&str; N]) -> Self {
        Self(heads.map(str::len))
    }

    /// Widens the columns so that a row fits.
    pub(crate) fn widen(&mut self, cells: &[String; N]) {
        for (width, cell) in self.0.iter_mut().zip(cells) {
            *width = (*width).max(plain::line(cell).chars().count());
        }
    }

    /// The cells of a row, as wide as their columns.
    pub(crate) fn padded(&self, cells: &[impl AsRef<str>; N]) -> Vec<String> {
        let cells = cells.iter().zip(self.0);
        cells
            .map(|(cell, width)| format!("{:width$}", plain::line(cell.as_ref())))
            .collect()
    }

    /// Prints a row.
    pub(crate) fn print(
        &self,
        out: &mut dyn Write,
        cells: &[impl AsRef<str>; N],
    ) -> io::Result<()> {
        writeln!(out, "{}", self.padded(cells).join("  ").trim_end())
    }
}

/// Prints rows under their heads.
pub(crate) fn table<const N: usize>(
    out: &mut dyn Write,
    heads: [&str; N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let mut columns = Columns::under(heads);
    for row in rows {
        columns.widen(row);
    }
    columns.print(out, &heads)?;
    rows.iter().try_for_each(|row| columns.print(out, row))
}
