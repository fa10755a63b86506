//! Bazel's credential helper protocol: a program is run with the argument `get`, given `{"uri": …}`, and answers with
//! headers and when they expire.
//!
//! Its specification: `github.com/EngFlow/credential-helper-spec`, and Bazel's proposal 2022-06-07.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::{CredentialError, DEFAULT_LIFETIME, Secret};

/// Deadline of the program. Bazel's is 10 s.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest accepted answer, in bytes.
const LONGEST: u64 = 1 << 20;

/// A credential helper.
pub struct Helper<'a> {
    program: &'a Path,
}

/// The answer of a credential helper.
pub struct HelperAnswer {
    /// Headers in its order.
    pub headers: Vec<(String, Secret)>,
    /// When they are not to be used any more.
    pub until: Option<SystemTime>,
}

impl<'a> Helper<'a> {
    /// The helper in the file `program`.
    pub fn new(program: &'a Path) -> Self {
        Self { program }
    }

    /// Asks for the headers of calls to `uri`.
    ///
    /// # Errors It cannot be started, fails, takes too long, or prints something that is no answer. Its standard error
    /// is not shown, because it may contain the credentials.
    pub async fn ask(&self, uri: &str) -> Result<HelperAnswer, CredentialError> {
        let fault = |why: String| CredentialError::Helper {
            program: self.program.display().to_string(),
            why,
        };
        let answer = tokio::time::timeout(PATIENCE, self.run(uri))
            .await
            .map_err(|_| fault(format!("did not answer within {} s", PATIENCE.as_secs())))?
            .map_err(fault)?;
        parse(&answer).ok_or_else(|| fault("did not print a JSON object with headers".to_owned()))
    }

    async fn run(&self, uri: &str) -> Result<Vec<u8>, String> {
        let mut child = Command::new(self.program)
            .arg("get")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| format!("cannot be started: {e}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A helper that does not read the request may still answer.
            let _ = stdin
                .write_all(json!({ "uri": uri }).to_string().as_bytes())
                .await;
        }
        let mut answer = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            let mut limited = stdout.take(LONGEST);
            limited
                .read_to_end(&mut answer)
                .await
                .map_err(|e| format!("cannot be read: {e}"))?;
        }
        let status = child
            .wait()
            .await
            .map_err(|e| format!("cannot be waited for: {e}"))?;
        if !status.success() {
            return Err(format!("failed ({status}); run it by hand with `get`"));
        }
        Ok(answer)
    }
}

fn parse(answer: &[u8]) -> Option<HelperAnswer> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let mut headers = Vec::new();
    if let Some(said) = answer.get("headers") {
        for (name, values) in said.as_object()? {
            for value in values.as_array()? {
                headers.push((name.clone(), Secret::new(value.as_str()?)));
            }
        }
    } else if !answer.is_object() {
        return None;
    }
    let until = match answer.get("expires").and_then(Value::as_str) {
        Some(text) => OffsetDateTime::parse(text, &Rfc3339).ok()?.into(),
        None => SystemTime::now() + DEFAULT_LIFETIME,
    };
    Some(HelperAnswer {
        headers,
        until: Some(until),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_their_end() {
        let answer = br#"{"headers":{"Authorization":["Bearer abcd"],"x":["1","2"]},
            "expires":"2022-03-15T12:00:00+01:00"}"#;
        let said = parse(answer).expect("an answer");
        assert_eq!(
            said.headers,
            [
                ("Authorization".to_owned(), Secret::new("Bearer abcd")),
                ("x".to_owned(), Secret::new("1")),
                ("x".to_owned(), Secret::new("2")),
            ]
        );
        let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_647_342_000);
        assert_eq!(said.until, Some(noon));
        assert!(parse(b"{}").is_some_and(|said| said.headers.is_empty()));
        for wrong in [&b"[]"[..], b"", br#"{"headers":{"a":"b"}}"#] {
            assert!(parse(wrong).is_none());
        }
    }
}
