//! Prints the answers of the shared caches, and the downloads and uploads, for people and as JSON.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use warpcc_remote_client::ping::{Answer, WriteTest};
use warpcc_remote_client::upload::UploadReport;
use warpcc_report::monitor::harmless;

use crate::config::format_bytes;

/// One server's answer to a ping.
pub struct Pinged {
    /// Its URL, without credentials.
    pub server: String,
    /// Whether nothing is uploaded to it.
    pub read_only: bool,
    /// The answer, or why there was none.
    pub answer: Result<Answer, String>,
}

impl Pinged {
    /// Whether the server answers and, unless it is read-only, can be written.
    pub fn is_well(&self) -> bool {
        matches!(&self.answer, Ok(answer) if !matches!(answer.write, WriteTest::Refused(_)))
    }
}

/// A server that is not used for a while, and why.
pub struct Rested {
    /// Seconds since 1970.
    pub until: u64,
    /// The fault.
    pub why: String,
}

/// The traffic with one server.
pub struct ServerRow {
    /// Its URL, without credentials.
    pub server: String,
    /// Whether nothing is uploaded to it.
    pub read_only: bool,
    /// Results that were downloaded from it.
    pub hits: u64,
    /// Results that it did not have.
    pub misses: u64,
    /// Results that were uploaded to it.
    pub uploads: u64,
    /// Bytes that were uploaded to it.
    pub bytes_up: u64,
    /// Bytes that were downloaded from it.
    pub bytes_down: u64,
    /// Results without a signature, while the settings require one.
    pub unsigned: u64,
    /// Results signed with a key that is not trusted.
    pub foreign: u64,
    /// Results with a signature that does not fit them.
    pub bad_signature: u64,
    /// Results that wait to be uploaded to it.
    pub waiting: usize,
    /// Set where the server is not read for a while.
    pub reading: Option<Rested>,
    /// Set where nothing is uploaded to the server for a while.
    pub writing: Option<Rested>,
}

/// Writes each server's answer.
pub fn write_ping(rows: &[Pinged], out: &mut dyn Write) -> io::Result<()> {
    for row in rows {
        let way = access(row.read_only);
        match &row.answer {
            Ok(answer) => {
                let refused = match &answer.write {
                    WriteTest::Refused(why) => Some(harmless(why)),
                    WriteTest::NotTried | WriteTest::Taken => None,
                };
                let way = refused.as_ref().map_or(way, |_| access(true));
                writeln!(
                    out,
                    "{} ({way}): {}; connected in {}, look-up {}",
                    harmless(&row.server),
                    harmless(&answer.says),
                    millis(answer.first),
                    millis(answer.look_up)
                )?;
                if let Some(warning) = &answer.warning {
                    writeln!(out, "  {}", harmless(warning))?;
                }
                if let Some(why) = refused {
                    writeln!(out, "  writing fails: {why}")?;
                    writeln!(
                        out,
                        "  if it is meant to be read-only, add |read-only to its URL"
                    )?;
                }
            }
            Err(why) => writeln!(out, "{} ({way}): {}", harmless(&row.server), harmless(why))?,
        }
    }
    Ok(())
}

/// The same for programs.
pub fn write_ping_json(rows: &[Pinged], out: &mut dyn Write) -> io::Result<()> {
    let row = |row: &Pinged| {
        let (says, error, first, look_up) = match &row.answer {
            Ok(a) => (Some(&a.says), None, Some(a.first), Some(a.look_up)),
            Err(why) => (None, Some(why), None, None),
        };
        let (writes, write_error) = match row.answer.as_ref().map(|answer| &answer.write) {
            Ok(WriteTest::Taken) => (Some(true), None),
            Ok(WriteTest::Refused(why)) => (Some(false), Some(why)),
            Ok(WriteTest::NotTried) | Err(_) => (None, None),
        };
        let micros = |time: Option<Duration>| time.map(|t| t.as_micros() as u64);
        json!({
            "server": row.server,
            "read_only": row.read_only,
            "says": says,
            "error": error,
            "connect_us": micros(first),
            "look_up_us": micros(look_up),
            "writes": writes,
            "write_error": write_error,
        })
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    writeln!(out, "{}", Value::from(rows))
}

/// Writes the traffic with each server.
pub fn write_stat(rows: &[ServerRow], out: &mut dyn Write) -> io::Result<()> {
    for row in rows {
        let asked = row.hits.saturating_add(row.misses);
        let rate = match asked {
            0 => "no look-ups yet".to_owned(),
            asked => format!(
                "{} of {asked} look-ups hit ({} %)",
                row.hits,
                row.hits * 100 / asked
            ),
        };
        writeln!(out, "{} ({})", harmless(&row.server), access(row.read_only))?;
        writeln!(out, "  {rate}, {} down", format_bytes(row.bytes_down))?;
        writeln!(
            out,
            "  {} uploaded, {} up, {} waiting",
            row.uploads,
            format_bytes(row.bytes_up),
            row.waiting
        )?;
        let (unsigned, foreign, bad) = (row.unsigned, row.foreign, row.bad_signature);
        if unsigned.saturating_add(foreign).saturating_add(bad) > 0 {
            writeln!(
                out,
                "  rejected: {unsigned} unsigned, {foreign} signed with an untrusted key, {bad} with a wrong signature"
            )?;
        }
        for (rested, what) in [(&row.reading, "look-ups"), (&row.writing, "uploads")] {
            if let Some(rested) = rested {
                let now = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                writeln!(
                    out,
                    "  {what} are paused for another {} s: {}",
                    rested.until.saturating_sub(now.as_secs()),
                    harmless(&rested.why)
                )?;
            }
        }
    }
    Ok(())
}

/// The same for programs.
pub fn write_stat_json(rows: &[ServerRow], out: &mut dyn Write) -> io::Result<()> {
    let rested = |rested: &Option<Rested>| match rested {
        Some(rested) => json!({ "until": rested.until, "why": rested.why }),
        None => Value::Null,
    };
    let row = |row: &ServerRow| {
        json!({
            "server": row.server,
            "read_only": row.read_only,
            "hits": row.hits,
            "misses": row.misses,
            "uploads": row.uploads,
            "bytes_up": row.bytes_up,
            "bytes_down": row.bytes_down,
            "unsigned": row.unsigned,
            "foreign": row.foreign,
            "bad_signature": row.bad_signature,
            "waiting": row.waiting,
            "not_read": rested(&row.reading),
            "not_written": rested(&row.writing),
        })
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    writeln!(out, "{}", Value::from(rows))
}

/// Writes the results of an upload.
pub fn write_uploaded(reports: &[UploadReport], out: &mut dyn Write) -> io::Result<()> {
    for report in reports {
        write!(
            out,
            "{}: {} uploaded, {}",
            harmless(&report.server),
            report.uploaded,
            format_bytes(report.bytes)
        )?;
        if report.waiting > 0 {
            let why = report
                .why
                .as_deref()
                .unwrap_or("another uploader is working on it");
            write!(out, "; {} still waiting: {}", report.waiting, harmless(why))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn access(read_only: bool) -> &'static str {
    match read_only {
        true => "read only",
        false => "read and write",
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
