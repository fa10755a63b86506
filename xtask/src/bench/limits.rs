//! Draws the memory of builds in limited memory over time, from what `xtask/bench/limits.sh` measured.
//!
//! There is one panel for each limit. All panels have the same scale of time; memory is drawn up to the limit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::options::BenchOptions;
use crate::drawing::{self, OURS, PALE, WIDTH};
use crate::repo;

pub const NAME: &str = "limits";

const LEFT: f64 = 60.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 56.0;
const PANEL: f64 = 170.0;
const BETWEEN: f64 = 62.0;

fn style() -> [String; 2] {
    let [ours, ours_dark] = OURS;
    [
        format!(
            ".us{{fill:#1a7f37}}.limit{{stroke:#cf222e;stroke-dasharray:5 4}}.axis{{stroke:{PALE}}}\
             path{{fill:none;stroke-width:1}}.other{{stroke:{PALE}}}.best{{stroke:#656d76;stroke-width:2}}\
             .ours{{stroke:{ours};stroke-width:2}}"
        ),
        format!(
            ".us{{fill:{ours_dark}}}.other{{stroke:#3d444d}}.best{{stroke:#9198a1}}.ours{{stroke:{ours_dark}}}\
             .axis{{stroke:#3d444d}}"
        ),
    ]
}

/// One build.
#[derive(Debug, Clone, PartialEq)]
struct LimitedBuild {
    memory: u32,
    tool: String,
    jobs: u32,
    threads: u32,
    wall: f64,
    end: End,
}

/// How a build ended, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// All objects were made, and no process was killed.
    Whole,
    /// It took longer than `limits.sh` waits.
    TooLong,
    Failed,
}

impl LimitedBuild {
    fn is_ours(&self) -> bool {
        self.tool == "warpcc"
    }

    /// The name that `limits.sh` gives its samples.
    fn name(&self) -> String {
        let Self {
            memory,
            tool,
            jobs,
            threads,
            ..
        } = self;
        format!("{memory}-{tool}-j{jobs}-t{threads}")
    }

    fn label(&self) -> String {
        let threads = match self.threads {
            0 => String::new(),
            threads => format!(" -t {threads}"),
        };
        format!("{}{threads}, ninja -j{}", self.tool, self.jobs)
    }
}

/// Seconds and MiB, by build.
type Samples = BTreeMap<String, Vec<(f64, f64)>>;

/// `cargo xtask bench --only limits --name NAME`: draws NAME.svg from NAME.csv and NAME-samples.csv.
pub fn main(options: &BenchOptions) -> Result<()> {
    let folder = options
        .out
        .clone()
        .unwrap_or_else(|| repo::root().join("docs/bench"));
    let file = |ending: &str| -> PathBuf { folder.join(format!("{}{ending}", options.name)) };
    let read = |ending: &str| {
        let path = file(ending);
        fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))
    };
    let builds = builds_of(&read(".csv")?)?;
    let samples = samples_of(&read("-samples.csv")?)?;
    let path = file(".svg");
    fs::write(&path, draw(&builds, &samples)?)
        .with_context(|| format!("failed to write {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

fn builds_of(csv: &str) -> Result<Vec<LimitedBuild>> {
    let of_line = |line: &str| -> Option<LimitedBuild> {
        let fields: Vec<&str> = line.split(',').collect();
        let &[memory, tool, jobs, threads, wall, _, _, _, killed, exit] = fields.as_slice() else {
            return None;
        };
        Some(LimitedBuild {
            memory: memory.parse().ok()?,
            tool: tool.to_owned(),
            jobs: jobs.parse().ok()?,
            threads: threads.parse().ok()?,
            wall: wall.parse().ok()?,
            end: match (killed, exit) {
                ("0", "0") => End::Whole,
                ("0", "124") => End::TooLong,
                _ => End::Failed,
            },
        })
    };
    let lines = csv.lines().skip(1);
    lines
        .map(|line| of_line(line).with_context(|| format!("`{line}` is no build")))
        .collect()
}

fn samples_of(csv: &str) -> Result<Samples> {
    let mut samples = Samples::new();
    for line in csv.lines().skip(1) {
        let mut fields = line.split(',');
        let sample = (|| {
            let name = fields.next()?.to_owned();
            let mut number = || fields.next()?.parse().ok();
            Some((name, (number()?, number()?)))
        })();
        let (name, sample) = sample.with_context(|| format!("`{line}` is no sample"))?;
        samples.entry(name).or_default().push(sample);
    }
    Ok(samples)
}

fn draw(builds: &[LimitedBuild], samples: &Samples) -> Result<String> {
    let longest = builds.iter().map(|build| build.wall).fold(0.0, f64::max);
    if longest <= 0.0 {
        bail!("there is nothing to draw");
    }
    let limits: std::collections::BTreeSet<u32> = builds.iter().map(|b| b.memory).collect();
    let height = TOP + (PANEL + BETWEEN) * limits.len() as f64;
    let [light, dark] = style();
    let mut svg = drawing::begin(
        height,
        "Memory of builds in limited memory",
        "Memory in use, GiB, by seconds",
        [&light, &dark],
    );
    for (index, limit) in limits.into_iter().enumerate() {
        let top = TOP + (PANEL + BETWEEN) * index as f64;
        let inside: Vec<&LimitedBuild> = builds.iter().filter(|b| b.memory == limit).collect();
        panel(&mut svg, top, longest, limit, &inside, samples);
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// The fastest whole build of nvcc; where there is none, the one that came closest.
fn best<'a>(builds: &[&'a LimitedBuild]) -> Option<&'a LimitedBuild> {
    let theirs = builds.iter().filter(|build| !build.is_ours());
    let order =
        |a: &LimitedBuild, b: &LimitedBuild| (a.end.cmp(&b.end)).then(a.wall.total_cmp(&b.wall));
    theirs.min_by(|a, b| order(a, b)).copied()
}

fn panel(
    svg: &mut String,
    top: f64,
    longest: f64,
    limit: u32,
    builds: &[&LimitedBuild],
    samples: &Samples,
) {
    let (right, bottom) = (WIDTH - RIGHT, top + 20.0 + PANEL);
    let x = |seconds: f64| LEFT + seconds * (right - LEFT) / longest;
    let y = |gib: f64| bottom - gib * PANEL / f64::from(limit);
    let best = best(builds);
    // Writing to a string cannot fail.
    let _ = write!(
        svg,
        "<line class=\"limit\" x1=\"{LEFT}\" y1=\"{0:.1}\" x2=\"{right}\" y2=\"{0:.1}\"/>\n\
         <line class=\"axis\" x1=\"{LEFT}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\"/>\n\
         <text x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">{limit}</text>\n\
         <text class=\"quiet\" x=\"{1}\" y=\"{bottom}\" text-anchor=\"end\">0</text>\n",
        y(f64::from(limit)),
        LEFT - 8.0,
        y(f64::from(limit)) + 5.0,
    );
    for step in 0..=(longest / 100.0) as u32 {
        let seconds = f64::from(step) * 100.0;
        let _ = writeln!(
            svg,
            "<text class=\"quiet\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{seconds}</text>",
            x(seconds),
            bottom + 16.0
        );
    }
    let class = |build: &LimitedBuild| match build.is_ours() {
        true => "ours",
        false if Some(build) == best => "best",
        false => "other",
    };
    let mut drawn: Vec<&LimitedBuild> = builds.to_vec();
    // The thin lines lie below the others.
    drawn.sort_by_key(|build| match class(build) {
        "other" => 0,
        "best" => 1,
        _ => 2,
    });
    for build in drawn {
        let points = samples.get(&build.name()).into_iter().flatten();
        let points: Vec<String> = points
            .map(|(seconds, mib)| format!("{:.1} {:.1}", x(*seconds), y(mib / 1024.0)))
            .collect();
        if !points.is_empty() {
            let _ = writeln!(
                svg,
                "<path class=\"{}\" d=\"M{}\"><title>{}</title></path>",
                class(build),
                points.join("L"),
                build.label()
            );
        }
    }
    let ours = builds.iter().find(|build| build.is_ours()).copied();
    let mut at = LEFT;
    for (kind, build) in [("us", ours), ("quiet", best)] {
        let Some(build) = build else { continue };
        let end = match build.end {
            End::Whole => format!("{:.0} s", build.wall),
            End::TooLong => format!("not done after {:.0} s", build.wall),
            End::Failed => "failed".to_owned(),
        };
        let text = format!("{}: {end}", build.label());
        let _ = writeln!(
            svg,
            "<text class=\"{kind}\" x=\"{at}\" y=\"{:.1}\">{text}</text>",
            top + 12.0
        );
        at += 9.0 * text.len() as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILDS: &str = "memory_GiB,tool,jobs,threads,wall_s,cpu_s,peak_GiB,objects,killed,exit
16,nvcc,4,0,500.0,1600,11.6,6,0,0
16,nvcc,8,0,200.0,1600,16.0,5,2,1
16,warpcc,1000,0,250.0,1700,15.2,6,0,0
";
    const SAMPLES: &str = "build,seconds,MiB,programs
16-nvcc-j4-t0,0.0,100,4
16-nvcc-j4-t0,2.0,1024,4
16-warpcc-j1000-t0,0.0,100,12
";

    #[test]
    fn each_build_with_samples_has_its_line() {
        let builds = builds_of(BUILDS).expect("builds");
        let samples = samples_of(SAMPLES).expect("samples");
        let svg = draw(&builds, &samples).expect("drawn");
        assert_eq!(svg.matches("<path").count(), 2);
        // A build that failed is not the best one, however fast.
        assert!(svg.contains("nvcc, ninja -j4: 500 s"), "{svg}");
        assert!(svg.contains("warpcc, ninja -j1000: 250 s"), "{svg}");
    }

    #[test]
    fn what_is_no_measurement_is_named() {
        let error = builds_of("head\n16,nvcc,4\n").expect_err("too short");
        assert!(error.to_string().contains("16,nvcc,4"), "{error}");
        assert!(samples_of("head\nx,1\n").is_err());
        assert!(draw(&[], &Samples::new()).is_err());
    }
}
