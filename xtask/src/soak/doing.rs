//! Carries out the steps of a history that change files and programs.

use std::fs::{self, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::fake_toolkit::{copy_toolkit, link_toolkit};
use super::files_open::{no_file_open, no_process_starting};
use super::history::Step;
use super::space::{Space, Tools};
use super::tree;

impl Space {
    /// Carries out a step that changes files.
    pub fn change_files(&self, step: &Step) {
        let words: Vec<&str> = step.rest().iter().map(String::as_str).collect();
        let _quiet = (step.verb() != "run").then(no_process_starting);
        // A change that cannot be made is skipped.
        _ = self.try_change(step.verb(), &words);
    }

    fn try_change(&self, verb: &str, words: &[&str]) -> io::Result<()> {
        // A process that opens a pipe for writing waits for a reader.
        let is_pipe = |path: PathBuf| {
            path.metadata()
                .is_ok_and(|found| found.file_type().is_fifo())
        };
        if ["write", "script", "replace", "insert", "touch", "copy"].contains(&verb)
            && words.iter().take(2).any(|path| is_pipe(self.path(path)))
        {
            return Ok(());
        }
        match (verb, words) {
            ("run", [program, args @ ..]) => self.run_program(program, args),
            _ => self.change_content(verb, words),
        }
    }

    /// The verbs that change what is in a file.
    fn change_content(&self, verb: &str, words: &[&str]) -> io::Result<()> {
        let text = |lines: &[&str]| {
            let filled = lines.iter().map(|line| self.fill(line) + "\n");
            filled.collect::<String>()
        };
        match (verb, words) {
            ("write", [path, lines @ ..]) => write(&self.path(path), &text(lines)),
            ("script", [path, lines @ ..]) => {
                let path = self.path(path);
                write(&path, &text(lines))?;
                fs::set_permissions(path, Permissions::from_mode(0o755))
            }
            ("replace", [path, lines @ ..]) => replace(&self.path(path), &text(lines)),
            ("insert", [path, before, lines @ ..]) => {
                let path = self.path(path);
                let old = fs::read_to_string(&path)?;
                let mut all: Vec<&str> = old.lines().collect();
                let at = before.parse().unwrap_or(0).min(all.len());
                all.splice(at..at, lines.iter().map(|line| &**line));
                write(&path, &text(&all))
            }
            ("touch", [path, seconds @ ..]) => {
                let file = fs::File::options().append(true).open(self.path(path))?;
                let moment = seconds.first().and_then(|seconds| seconds.parse().ok());
                let moment = moment.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
                let moment = moment.unwrap_or_else(SystemTime::now);
                file.set_times(FileTimes::new().set_modified(moment))
            }
            ("copy", [from, to]) => fs::copy(self.path(from), self.path(to)).map(drop),
            ("thin", [path, members @ ..]) => {
                write(&self.path(path), &format!("!<thin>\n{}", text(members)))
            }
            _ => self.change_names(verb, words),
        }
    }

    /// The verbs that change which files there are, and who may use them.
    fn change_names(&self, verb: &str, words: &[&str]) -> io::Result<()> {
        match (verb, words) {
            ("delete", [path]) => {
                tree::remove(&self.path(path));
                Ok(())
            }
            ("link", [path, target]) => link(&self.path(path), &self.fill(target)),
            ("hardlink", [path, other]) => {
                let path = self.path(path);
                make_room(&path)?;
                fs::hard_link(self.path(other), path)
            }
            ("mode", [path, mode]) => {
                let mode = u32::from_str_radix(mode, 8).unwrap_or(0o644);
                let path = self.path(path);
                // Never through a link: it may lead to /dev/null, which no other process could use then.
                match fs::symlink_metadata(&path)? {
                    found if found.is_symlink() => Ok(()),
                    _ => fs::set_permissions(path, Permissions::from_mode(mode)),
                }
            }
            ("folder", [path]) => fs::create_dir_all(self.path(path)),
            ("swap", [a, b]) => {
                let (a, b, aside) = (self.path(a), self.path(b), self.root.join("aside"));
                fs::rename(&a, &aside)?;
                let done = fs::rename(&b, &a);
                fs::rename(aside, if done.is_ok() { b } else { a })
            }
            ("pipe", [path, _]) => {
                let path = self.path(path);
                make_room(&path)?;
                Command::new("mkfifo").arg(path).status().map(drop)
            }
            ("forget", []) => {
                tree::remove(&self.root.join(&self.cache));
                Ok(())
            }
            ("clone", [to]) => {
                tree::remove(&self.path(to));
                let mut copy = Command::new("cp");
                copy.arg("-a").arg(self.root.join("w")).arg(self.path(to));
                copy.status().map(drop)
            }
            _ => self.change_tools(verb, words),
        }
    }

    fn run_program(&self, program: &str, args: &[&str]) -> io::Result<()> {
        let mut command = Command::new(self.fill(program));
        command.args(args.iter().map(|word| self.fill(word)));
        command
            .current_dir(self.root.join("w"))
            .stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let started = {
            let _quiet = no_file_open();
            command.spawn()
        };
        started?.wait().map(drop)
    }

    fn change_tools(&self, verb: &str, words: &[&str]) -> io::Result<()> {
        let number = |text: &str| text.parse().unwrap_or(1);
        let from = PathBuf::from(self.fill("{tk}"));
        match (verb, words, &self.tools) {
            ("toolkit", [to, "links"], _) => {
                tree::remove(&self.path(to));
                link_toolkit(&from, &self.path(to))
            }
            ("toolkit", [to, "copy"], Tools::Fake(_)) => {
                tree::remove(&self.path(to));
                copy_toolkit(&from, &self.path(to))
            }
            ("toolkit", [to, release], Tools::Fake(program)) => {
                program.install_toolkit(&self.path(to), number(release))
            }
            ("tool", [path, release], Tools::Fake(program)) => {
                program.install(&self.path(path), number(release))
            }
            ("walker", [path], Tools::Fake(program)) => program.install_walker(&self.path(path)),
            ("static", [path], Tools::Fake(program)) => program.install_wrapper(&self.path(path)),
            ("host", [path, release], Tools::Fake(program)) => {
                program.install_host(&self.path(path), number(release))
            }
            _ => Ok(()),
        }
    }
}

fn make_room(path: &Path) -> io::Result<()> {
    tree::remove(path);
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Makes a link, or puts it in the place of another file at once: a call that runs meanwhile finds the old one or the new one.
fn link(path: &Path, target: &str) -> io::Result<()> {
    let new = path.with_extension("linking");
    make_room(&new)?;
    symlink(target, &new)?;
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        tree::remove(path);
    }
    fs::rename(new, path)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

/// Puts another file under the same name, with the same modification time, as `rsync -t` and package managers do.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let time = path.metadata()?.modified()?;
    let new = path.with_extension("replacing");
    fs::write(&new, text)?;
    fs::File::options()
        .append(true)
        .open(&new)?
        .set_times(FileTimes::new().set_modified(time))?;
    fs::rename(new, path)
}
