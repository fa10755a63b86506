//! Blocks of an explanation for a terminal: texts, facts, tables and excerpts.

use std::io;

use super::Page;
use crate::block::{Block, Line, Table};
use crate::columns::{aligned, cell, is_number, letters};

/// With less room than this for its last column, a table's cells become lines of their own.
const NARROWEST_LAST: usize = 32;

impl Page<'_> {
    pub fn block(&mut self, block: &Block) -> io::Result<()> {
        writeln!(self.out)?;
        match block {
            Block::Text { text } => self.wrapped(2, 0, text),
            Block::Facts { title, rows } => {
                self.title(title)?;
                let width = rows
                    .iter()
                    .map(|fact| letters(&fact.name))
                    .max()
                    .unwrap_or(0);
                for fact in rows {
                    let gap = " ".repeat(width - letters(&fact.name));
                    let line = format!("{}{gap}  {}", fact.name, fact.value);
                    self.wrapped(4, width + 2, &line)?;
                }
                Ok(())
            }
            Block::Table(table) => self.table(table),
            Block::Excerpt { title, lines } => {
                self.title(title)?;
                lines.iter().try_for_each(|line| self.line(line))
            }
        }
    }

    fn title(&mut self, title: &str) -> io::Result<()> {
        if title.is_empty() {
            return Ok(());
        }
        let line = self.paint("1", title);
        writeln!(self.out, "  {line}")
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        let number = line.number.map_or(String::new(), |n| n.to_string());
        let text = match line.marked {
            true => self.paint("1;33", &line.text),
            false => line.text.clone(),
        };
        let mark = if line.marked { '>' } else { ' ' };
        let line = format!("  {mark}{number:>5} | {text}");
        writeln!(self.out, "{}", line.trim_end())
    }

    /// In columns where they fit, else a cell to a line.
    fn table(&mut self, table: &Table) -> io::Result<()> {
        self.title(&table.title)?;
        if table.rows.is_empty() {
            return writeln!(self.out, "    none");
        }
        // A column in which nothing stands says nothing.
        let kept: Vec<usize> = (0..table.columns.len())
            .filter(|&column| table.rows.iter().any(|row| !cell(row, column).is_empty()))
            .collect();
        let widths: Vec<usize> = kept
            .iter()
            .map(|&column| {
                let cells = table.rows.iter().map(|row| letters(cell(row, column)));
                cells
                    .chain([letters(&table.columns[column])])
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let before: usize = widths[..widths.len().saturating_sub(1)]
            .iter()
            .map(|width| width + 2)
            .sum::<usize>()
            + 4;
        let last = widths.last().copied().unwrap_or(0);
        let room = self.form.width.saturating_sub(before);
        if room < last.min(NARROWEST_LAST) {
            return self.records(table, &kept);
        }
        let numeric: Vec<bool> = kept
            .iter()
            .map(|&column| table.rows.iter().all(|row| is_number(cell(row, column))))
            .collect();
        let heads: Vec<&str> = kept
            .iter()
            .map(|&column| table.columns[column].as_str())
            .collect();
        let head = aligned(&heads, &widths, &numeric);
        let head = self.paint("2", &head);
        writeln!(self.out, "    {head}")?;
        for row in &table.rows {
            let cells: Vec<&str> = kept.iter().map(|&column| cell(row, column)).collect();
            self.wrapped(4, before - 4, &aligned(&cells, &widths, &numeric))?;
        }
        Ok(())
    }

    fn records(&mut self, table: &Table, kept: &[usize]) -> io::Result<()> {
        let width = kept
            .iter()
            .map(|&column| letters(&table.columns[column]))
            .max()
            .unwrap_or(0);
        for row in &table.rows {
            for (at, &column) in kept.iter().enumerate() {
                let value = cell(row, column);
                if value.is_empty() {
                    continue;
                }
                let mark = if at == 0 { "-" } else { " " };
                let name = &table.columns[column];
                let gap = " ".repeat(width - letters(name));
                self.wrapped(4, width + 4, &format!("{mark} {name}{gap}  {value}"))?;
            }
        }
        Ok(())
    }
}
