//! Counts what the audit compared.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use super::claim::Claim;
use super::commands::CompileCommands;
use super::compile::Compiled;
use super::source::Edit;

/// Of a claim: what was compared, and what contradicts it.
#[derive(Default, Clone, Copy, Serialize)]
struct Count {
    compared: u64,
    contradicted: u64,
}

/// Of a kind of edit: how often each thing was the same as before it.
#[derive(Default, Clone, Copy, Serialize)]
struct Same {
    edits: u64,
    device_text: u64,
    bitcode: u64,
    ptx: u64,
}

/// All that was counted.
#[derive(Default, Serialize)]
pub struct AuditFigures {
    compiled: u64,
    pub refused: u64,
    claims: BTreeMap<&'static str, Count>,
    edits: BTreeMap<&'static str, Same>,
    pub saved: Vec<String>,
}

impl AuditFigures {
    /// Counts a text that was compiled.
    pub fn take(
        &mut self,
        commands: &CompileCommands,
        edit: Edit,
        compiled: &Compiled,
        earlier: &[Compiled],
    ) {
        self.compiled += 1;
        let wrong = compiled.contradicts(commands, earlier);
        let is_wrong = |claim| wrong.iter().any(|(of, _)| *of == claim);
        for claim in Claim::ALL {
            let like = compiled.like(claim, earlier);
            let is_pair = like.is_some_and(|other| compiled.has_other_text(other));
            let knows = claim == Claim::DeviceText && commands.has_lines;
            if (is_pair || claim == Claim::Halves) && !knows {
                let count = self.claims.entry(claim.name()).or_default();
                count.compared += 1;
                count.contradicted += u64::from(is_wrong(claim));
            }
        }
        let Some(before) = earlier.last() else {
            return;
        };
        let before = std::slice::from_ref(before);
        let same = self.edits.entry(edit.name).or_default();
        same.edits += 1;
        same.device_text += u64::from(compiled.like(Claim::DeviceText, before).is_some());
        same.bitcode += u64::from(compiled.like(Claim::Bitcode, before).is_some());
        same.ptx += u64::from(compiled.has_same_ptx(&before[0]));
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: Self) {
        self.compiled += other.compiled;
        self.refused += other.refused;
        self.saved.extend(other.saved);
        for (name, count) in other.claims {
            let sum = self.claims.entry(name).or_default();
            sum.compared += count.compared;
            sum.contradicted += count.contradicted;
        }
        for (name, same) in other.edits {
            let sum = self.edits.entry(name).or_default();
            sum.edits += same.edits;
            sum.device_text += same.device_text;
            sum.bitcode += same.bitcode;
            sum.ptx += same.ptx;
        }
    }

    /// The number of contradictions to the claims.
    pub fn broken(&self, claim: Claim) -> u64 {
        self.claims
            .get(claim.name())
            .map_or(0, |count| count.contradicted)
    }

    /// Shows them.
    pub fn print(&self) {
        println!("{} texts compiled, {} refused", self.compiled, self.refused);
        for (name, count) in &self.claims {
            println!(
                "{name:12} {:7} compared {:5} contradicted",
                count.compared, count.contradicted
            );
        }
        println!(
            "{:28} {:>6} {:>7} {:>8} {:>5}",
            "edit", "edits", "device", "bitcode", "ptx"
        );
        for (name, same) in &self.edits {
            println!(
                "{name:28} {:6} {:7} {:8} {:5}",
                same.edits, same.device_text, same.bitcode, same.ptx
            );
        }
        for name in self.saved.iter().take(20) {
            println!("kept: {name}");
        }
    }

    /// As JSON.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)?)
    }
}
