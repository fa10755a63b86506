//! Random sources as lists of pieces, and random edits of them.

use super::items::{DEVICE, HOST, Side, WHOLE};
use super::source::{Edit, TestSource};
use crate::soak::random::Random;

/// A piece, with what was chosen in it.
struct Item {
    template: &'static str,
    number: usize,
    side: Side,
    choices: Vec<usize>,
    /// Put behind it, on its last line.
    tail: String,
}

impl Item {
    fn new(random: &mut Random, table: &[&'static str], side: Side, number: usize) -> Self {
        let template = random.one(table);
        let choices = template.matches('‹').map(|_| random.below(64)).collect();
        Self {
            template,
            number,
            side,
            choices,
            tail: String::new(),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut rest = self.template;
        for choice in &self.choices {
            let Some((before, after)) = rest.split_once('‹') else {
                break;
            };
            let Some((choice_of, behind)) = after.split_once('›') else {
                break;
            };
            let all: Vec<&str> = choice_of.split('|').collect();
            text += before;
            text += all[choice % all.len()];
            rest = behind;
        }
        text += rest;
        text.replace('@', &self.number.to_string()) + &self.tail
    }
}

/// A random source.
pub struct Pieces {
    head: &'static str,
    items: Vec<Item>,
    last: usize,
}

impl Pieces {
    /// A few pieces of device code, mixed with some of host code.
    pub fn new(random: &mut Random, whole: bool) -> Self {
        let mut pieces = Self {
            head: "",
            items: Vec::new(),
            last: 0,
        };
        for _ in 0..2 + random.below(5) {
            let table = if whole && random.chance(50) {
                WHOLE
            } else {
                DEVICE
            };
            pieces.put(random, table, Side::Device);
        }
        for _ in 0..1 + random.below(3) {
            pieces.put(random, HOST, Side::Host);
        }
        pieces
    }

    fn put(&mut self, random: &mut Random, table: &[&'static str], side: Side) {
        let item = Item::new(random, table, side, self.last);
        self.last += 1;
        let at = random.below(self.items.len() + 1);
        self.items.insert(at, item);
    }

    /// One of the pieces of a side.
    fn pick(&mut self, random: &mut Random, side: Side) -> Option<&mut Item> {
        let mut all: Vec<&mut Item> = self.items.iter_mut().filter(|i| i.side == side).collect();
        match all.len() {
            0 => None,
            length => Some(all.swap_remove(random.below(length))),
        }
    }

    fn choose_anew(&mut self, random: &mut Random, side: Side) {
        let value = random.below(64);
        let at = random.below(64);
        if let Some(item) = self.pick(random, side) {
            let length = item.choices.len();
            if let Some(choice) = item.choices.get_mut(at % length.max(1)) {
                *choice = value;
            }
        }
    }

    fn append(&mut self, random: &mut Random, text: &str) {
        let at = random.below(self.items.len());
        self.items[at].tail += text;
    }
}

impl TestSource for Pieces {
    fn text(&self) -> String {
        let items: Vec<String> = self.items.iter().map(Item::text).collect();
        format!("{}{}\n", self.head, items.join("\n"))
    }

    fn edit(&mut self, random: &mut Random) -> Edit {
        let number = random.below(1000);
        let name = match random.below(22) {
            0..=4 => {
                self.choose_anew(random, Side::Host);
                "host code changed"
            }
            5..=6 => {
                let item = Item::new(random, HOST, Side::Host, self.last);
                self.last += 1;
                self.items.push(item);
                "host code added at the end"
            }
            7 => {
                self.put(random, HOST, Side::Host);
                "host code added anywhere"
            }
            8 => {
                let host = self.items.iter().position(|item| item.side == Side::Host);
                host.map(|at| self.items.remove(at));
                "host code removed"
            }
            9..=10 => {
                let text = format!(
                    " int same_line{}(int x) {{ return x * {number}; }}",
                    self.last
                );
                self.last += 1;
                self.append(random, &text);
                "host code added on a line"
            }
            11..=12 => {
                self.append(random, &format!(" /* {number} */"));
                "comment on a line"
            }
            13 => {
                self.append(random, &format!("\n// {number}"));
                "comment line"
            }
            14 => {
                let at = random.below(self.items.len());
                let other = random.below(self.items.len());
                self.items.swap(at, other);
                "pieces in another order"
            }
            15 => {
                self.append(random, &format!("\n#define UNUSED_{number} {number}"));
                "macro"
            }
            16 => {
                self.append(random, &format!("\n#pragma nv_diag_suppress {number}"));
                "pragma about messages"
            }
            17 => {
                let text = format!(
                    "\ntemplate <class T> T only_host{n}(T x) {{ return x + {number}; }}\nlong from_host{n}() {{ return only_host{n}(2L); }}",
                    n = self.last
                );
                self.last += 1;
                self.append(random, &text);
                "host template instance"
            }
            18 => {
                self.choose_anew(random, Side::Host);
                self.choose_anew(random, Side::Host);
                self.append(random, &format!(" // {number}"));
                "several host edits"
            }
            _ => {
                self.choose_anew(random, Side::Device);
                "device code changed"
            }
        };
        Edit { name }
    }
}
