//! Small tables: aligned for a terminal, or Markdown.

use std::fmt::Write as _;

/// A table with a header; every row has as many cells.
#[derive(Debug, Clone)]
pub struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table with these column names.
    pub fn new(header: [&str; N]) -> Self {
        Self { rows: vec![header.map(str::to_owned)] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// Whether a column holds numbers, which are aligned to the right.
    fn is_number(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().skip(1).map(|row| row[column].as_str());
        cells.all(|cell| cell.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Aligned columns, the header first.
    pub fn text(&self) -> String {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let width = width(column);
                if self.is_number(column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            });
            let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        text
    }

    /// A Markdown table.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let _ = writeln!(text, "| {} |", row.join(" | ").replace('\n', " "));
            if index == 0 {
                let rules = (0..N).map(|column| if self.is_number(column) { "---:" } else { "---" });
                let _ = writeln!(text, "|{}|", rules.collect::<Vec<_>>().join("|"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_right() {
        let mut table = Table::new(["name", "n"]);
        table.row(["a".into(), "7".into()]);
        table.row(["bcdef".into(), "12".into()]);
        assert_eq!(table.text(), "name    n\na       7\nbcdef  12\n");
        assert_eq!(table.markdown(), "| name | n |\n|---|---:|\n| a | 7 |\n| bcdef | 12 |\n");
    }
}
