//! Loading modules in processes that may be lost: what is asked of one, what it says, and what
//! came of it.
//!
//! A driver reads its variables once, and compiled modules stay in memory. So only a new process shows what is in the
//! cache on disk. A module from a damaged file can crash a driver. Then that module is reported, and another process
//! loads the rest.

use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use warpcc_fatbin::{BinaryInput, DriverVersion};

/// The longest line that a loading process may say, in bytes: a compiler's log and a little more.
const LONGEST_LINE: u64 = 256 << 10;

/// An item to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Item {
    /// A container, of which the driver chooses an image.
    Container(usize),
    /// One image of a container, by itself.
    Image(usize, usize),
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Container(container) => write!(f, "{container}"),
            Self::Image(container, image) => write!(f, "{container}.{image}"),
        }
    }
}

impl FromStr for Item {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once('.') {
            Some((container, image)) => Self::Image(container.parse()?, image.parse()?),
            None => Self::Container(text.parse()?),
        })
    }
}

/// A GPU and its driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuWithDriver {
    /// The driver's CUDA version.
    pub driver: DriverVersion,
    /// Its compute capability, times ten.
    pub number: u32,
    /// Its name.
    pub name: String,
}

/// A line of a loading process, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadMessage {
    /// The first line: the driver's CUDA version, the compute capability times ten, the name.
    Gpu(u16, u16, u32, String),
    /// Or why there will be no other.
    Nothing(String),
    /// An item was loaded in this many microseconds.
    Loaded(String, u64),
    /// An item was not: the error's number, its name, what the compiler said.
    Refused(String, u32, String, String),
}

/// The result of loading an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadResult {
    /// It loads, in this time.
    In(Duration),
    /// The driver says no.
    Refused {
        /// The error's number in `cuda.h`.
        number: u32,
        /// Its name there.
        name: String,
        /// The compiler's log.
        log: String,
    },
    /// The process crashed or did not end.
    Lost(String),
}

/// An item and what came of it.
pub type Loaded = (Item, LoadResult);

/// How loading processes are started.
#[derive(Debug, Clone)]
pub struct Loading {
    /// The program and its words before the device, the items and the file.
    pub program: PathBuf,
    /// Those words.
    pub words: Vec<OsString>,
    /// Which device, as the driver counts them.
    pub device: u32,
    /// Variables that are set for it, in addition to those of this process.
    pub variables: Vec<(&'static str, OsString)>,
    /// How long one item may take.
    pub longest: Duration,
}

impl Loading {
    /// Asks for the GPU.
    ///
    /// # Errors
    /// The reason why there is no GPU to use.
    pub fn gpu(&self) -> Result<GpuWithDriver, String> {
        let mut process = self.start(None, &[])?;
        process.first(self.longest)
    }

    /// Loads items of a file, one after the other.
    ///
    /// # Errors
    /// No process can be started, or finds no GPU.
    pub fn load(&self, input: &BinaryInput, items: &[Item]) -> Result<Vec<Loaded>, String> {
        let mut done: Vec<Loaded> = Vec::new();
        while let Some(rest) = items.get(done.len()..).filter(|rest| !rest.is_empty()) {
            let mut process = self.start(Some(input), rest)?;
            process.first(self.longest)?;
            for item in rest {
                let outcome = process.outcome(*item, self.longest);
                let lost = matches!(outcome, LoadResult::Lost(_));
                done.push((*item, outcome));
                if lost {
                    break;
                }
            }
        }
        Ok(done)
    }

    fn start(&self, input: Option<&BinaryInput>, items: &[Item]) -> Result<Process, String> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.words)
            .arg(format!("--device={}", self.device))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(input) = input {
            let list: Vec<String> = items.iter().map(Item::to_string).collect();
            command.arg(format!("--items={}", list.join(",")));
            if let Some(member) = &input.member {
                command.arg(format!("--member={member}"));
            }
            command.arg("--").arg(&input.path);
        }
        let mut child = command
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", self.program.display()))?;
        let (sender, lines) = sync_channel(16);
        if let Some(out) = child.stdout.take() {
            let read = move || {
                let mut out = BufReader::new(out);
                loop {
                    let mut line = String::new();
                    let read = out.by_ref().take(LONGEST_LINE).read_line(&mut line);
                    if !matches!(read, Ok(1..)) || sender.send(line).is_err() {
                        return;
                    }
                }
            };
            thread::Builder::new()
                .spawn(read)
                .map_err(|error| format!("no thread to read what it says: {error}"))?;
        }
        Ok(Process { child, lines })
    }
}

/// A loading process. It is ended when it is no longer needed.
struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn first(&mut self, longest: Duration) -> Result<GpuWithDriver, String> {
        match self.line(longest)? {
            LoadMessage::Gpu(major, minor, number, name) => Ok(GpuWithDriver {
                driver: DriverVersion { major, minor },
                number,
                name,
            }),
            LoadMessage::Nothing(why) => Err(why),
            other => Err(format!("a loading process began with {other:?}")),
        }
    }

    fn outcome(&mut self, item: Item, longest: Duration) -> LoadResult {
        let mine = item.to_string();
        match self.line(longest) {
            Ok(LoadMessage::Loaded(name, micros)) if name == mine => {
                LoadResult::In(Duration::from_micros(micros))
            }
            Ok(LoadMessage::Refused(name, number, error, log)) if name == mine => {
                LoadResult::Refused {
                    number,
                    name: error,
                    log,
                }
            }
            Ok(LoadMessage::Nothing(why)) | Err(why) => LoadResult::Lost(why),
            Ok(other) => LoadResult::Lost(format!("the loading process said {other:?}")),
        }
    }

    fn line(&mut self, longest: Duration) -> Result<LoadMessage, String> {
        match self.lines.recv_timeout(longest) {
            Ok(line) => serde_json::from_str(&line)
                .map_err(|_| format!("the loading process said {:?}", line.trim())),
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("no answer within {} s", longest.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => Err(match self.child.wait() {
                Ok(status) => format!("the loading process ended: {status}"),
                Err(error) => format!("the loading process ended: {error}"),
            }),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has written its result, or it never will. Both calls fail if it has ended, which does not matter.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loading(script: &str) -> Loading {
        Loading {
            program: "sh".into(),
            words: vec!["-c".into(), script.into(), "sh".into()],
            device: 0,
            variables: vec![("SAID", "{\"loaded\":[\"0\",5]}".into())],
            longest: Duration::from_secs(20),
        }
    }

    const GPU: &str = "echo '{\"gpu\":[13,0,90,\"a card\"]}';";

    fn file() -> BinaryInput {
        BinaryInput::file("x")
    }

    #[test]
    fn items_read_and_write_back() {
        for text in ["3", "3.1"] {
            assert_eq!(text.parse::<Item>().expect(text).to_string(), text);
        }
        assert!("3.x".parse::<Item>().is_err() && "".parse::<Item>().is_err());
    }

    #[test]
    fn a_gpu_or_the_reason_is_told() {
        let gpu = loading(GPU).gpu().expect("one");
        assert_eq!((gpu.number, gpu.name.as_str()), (90, "a card"));
        let none = loading("echo '{\"nothing\":\"no driver\"}'").gpu();
        assert_eq!(none.unwrap_err(), "no driver");
        assert!(loading("exit 3").gpu().unwrap_err().contains("ended"));
    }

    #[test]
    fn a_crash_costs_one_item() {
        // Dies over item 1, wherever it comes.
        let script = format!(
            "{GPU} for w in \"$@\"; do case $w in --items=*) l=${{w#--items=}};; esac; done; \
             for i in $(echo $l | tr , ' '); do [ $i = 1 ] && kill -SEGV $$; \
             echo '{{\"loaded\":[\"'$i'\",7]}}'; done"
        );
        let items = [0, 1, 2].map(Item::Container);
        let done = loading(&script).load(&file(), &items).expect("a GPU");
        let fine = LoadResult::In(Duration::from_micros(7));
        assert_eq!((done.len(), &done[0].1, &done[2].1), (3, &fine, &fine));
        assert!(matches!(&done[1].1, LoadResult::Lost(why) if why.contains("signal")));
    }

    #[test]
    fn variables_are_set_and_a_silence_has_an_end() {
        let said = format!("{GPU} echo \"$SAID\"; exec sleep 60");
        let mut loading = loading(&said);
        let items = [Item::Container(0)];
        assert_eq!(
            loading.load(&file(), &items).expect("a GPU")[0].1,
            LoadResult::In(Duration::from_micros(5))
        );
        loading.longest = Duration::from_millis(300);
        loading.variables.clear();
        loading.words[1] = format!("{GPU} exec sleep 60").into();
        let done = loading.load(&file(), &items).expect("a GPU");
        assert!(matches!(&done[0].1, LoadResult::Lost(why) if why.contains("no answer")));
    }
}
