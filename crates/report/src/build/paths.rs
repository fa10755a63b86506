//! Short but distinct names for files: their paths below the folder that they all share.
//!
//! Paths are compared as text. No file is looked at: the build may be long gone.

use crate::record::InvocationRecord;

/// The sources of a build, named.
pub(super) struct Names {
    /// The folder that all sources share.
    pub(super) root: String,
    /// For each call its file and the first folder of that below the root.
    pub(super) calls: Vec<(String, String)>,
}

impl Names {
    pub(super) fn collect(records: &[InvocationRecord]) -> Self {
        let files: Vec<Option<Vec<String>>> = records.iter().map(first_source).collect();
        let mut root: Option<Vec<String>> = None;
        for file in files.iter().flatten() {
            let folder = &file[..file.len().saturating_sub(1)];
            root = Some(match root {
                None => folder.to_vec(),
                Some(known) => {
                    let same = known.iter().zip(folder).take_while(|(a, b)| a == b).count();
                    known[..same].to_vec()
                }
            });
        }
        let root = root.unwrap_or_default();
        let name = |(record, file): (&InvocationRecord, Option<Vec<String>>)| match file {
            None => (nameless(record), ".".to_owned()),
            Some(file) => {
                let below = &file[root.len()..];
                let mut name = below.join("/");
                if record.sources.len() > 1 {
                    name.push_str(&format!(" and {} more", record.sources.len() - 1));
                }
                let folder = if below.len() > 1 { &below[0] } else { "." };
                (name, folder.to_owned())
            }
        };
        Self {
            root: format!("/{}", root.join("/")),
            calls: records.iter().zip(files).map(name).collect(),
        }
    }
}

/// A name for a call without a source: its last word.
fn nameless(record: &InvocationRecord) -> String {
    match record.args.as_slice() {
        [] => "?".to_owned(),
        [only] => only.clone(),
        [.., last] => format!("nvcc … {last}"),
    }
}

/// The parts of the first source's whole path.
fn first_source(record: &InvocationRecord) -> Option<Vec<String>> {
    let source = record.sources.first()?;
    let whole = if source.starts_with('/') {
        source.clone()
    } else {
        format!("{}/{source}", record.directory)
    };
    let mut parts: Vec<String> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part.to_owned()),
        }
    }
    (!parts.is_empty()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(calls: &[(&str, &str)]) -> (String, Vec<(String, String)>) {
        let record = |(directory, source): &(&str, &str)| InvocationRecord {
            directory: (*directory).into(),
            sources: vec![(*source).into()],
            ..InvocationRecord::default()
        };
        let records: Vec<_> = calls.iter().map(record).collect();
        let names = Names::collect(&records);
        (names.root, names.calls)
    }

    #[test]
    fn files_are_named_below_what_they_share() {
        let (root, calls) = names(&[
            ("/p/build", "../src/a/x.cu"),
            ("/p/build", "/p/src/b/./deep/y.cu"),
            ("/p/src", "z.cu"),
        ]);
        assert_eq!(root, "/p/src");
        let expected = [("a/x.cu", "a"), ("b/deep/y.cu", "b"), ("z.cu", ".")];
        assert_eq!(calls, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn odd_paths_get_a_name_too() {
        let (_, calls) = names(&[("", "../../x.cu"), ("/", "/"), ("/a", "")]);
        assert_eq!(calls.len(), 3);
        let (root, calls) = names(&[("/p", "only.cu")]);
        assert_eq!((root.as_str(), calls[0].0.as_str()), ("/p", "only.cu"));
    }
}
