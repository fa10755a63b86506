//! Paths of a command line below a folder that the user names, made relative to the working directory: so that the
//! same call in another clone is the same call.

use std::path::{Path, PathBuf};

use crate::options::{self, Effect, Takes};

/// Options whose values are paths that stand in what the tools see of a source.
const PATHS: [&str; 4] = [
    "include-path",
    "library-path",
    "pre-include",
    "system-include",
];

/// `args` with inputs and search paths below one of `bases` as paths relative to `directory`, if that is below the
/// same one. Everything else stays as it is, outputs too: where a result does not hold their name, it does not count.
///
/// `directory` is free of symbolic links, as getcwd(3) gives it, so that `..` leads where its text says.
pub fn relative(args: &[String], bases: &[PathBuf], directory: &Path) -> Vec<String> {
    let Some(base) = bases.iter().find(|base| directory.starts_with(base)) else {
        return args.to_vec();
    };
    let short = |text: &str| -> String {
        let path = Path::new(text);
        if !path.is_absolute() || !path.starts_with(base) {
            return text.to_owned();
        }
        match pathdiff::diff_paths(path, directory) {
            Some(path) if path.as_os_str().is_empty() => ".".to_owned(),
            Some(path) => path.to_str().unwrap_or(text).to_owned(),
            None => text.to_owned(),
        }
    };
    let list = |text: &str| text.split(',').map(short).collect::<Vec<_>>().join(",");
    let mut found = Vec::with_capacity(args.len());
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if !word.starts_with('-') {
            found.push(short(word));
            continue;
        }
        let Some(option) = options::find(word) else {
            found.push(word.clone());
            continue;
        };
        let ours = option.row.effect == Effect::Keyed && PATHS.contains(&option.row.long);
        match (option.row.takes, option.attached) {
            (Takes::Nothing, _) => found.push(word.clone()),
            (_, Some(value)) if ours => {
                let name = &word[..word.len() - value.len()];
                found.push(format!("{name}{}", list(value)));
            }
            (_, Some(_)) => found.push(word.clone()),
            (_, None) => {
                found.push(word.clone());
                found.extend(rest.next().map(|v| if ours { list(v) } else { v.clone() }));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relative_from(directory: &str, line: &str) -> String {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        relative(&args, &["/w".into()], Path::new(directory)).join(" ")
    }

    #[test]
    fn inputs_and_search_paths_and_nothing_else() {
        assert_eq!(
            relative_from(
                "/w/clone/build",
                "-I/w/clone/include -I /usr/include,/w/clone/build -isystem=/w/x --include-path /w/clone \
                 -DROOT=/w/clone -o /w/clone/build/a.o -c /w/clone/a.cu -L/wide"
            ),
            "-I../include -I /usr/include,. -isystem=../../x --include-path .. \
             -DROOT=/w/clone -o /w/clone/build/a.o -c ../a.cu -L/wide"
        );
    }

    #[test]
    fn a_folder_elsewhere_is_left_alone() {
        let line = "-I/w/clone/include -c /w/clone/a.cu";
        assert_eq!(relative_from("/tmp/build", line), line);
    }
}
