//! The files of a plan while it is built: each path once, with the step that writes it.

use std::collections::HashMap;

use crate::Unsupported;
use crate::step::{FileId, FileKind, PlanFile, Step};

/// The files of a plan, by path.
#[derive(Debug, Default)]
pub struct FileTable {
    /// The files, by id.
    pub files: Vec<PlanFile>,
    by_path: HashMap<String, FileId>,
    private: String,
}

impl FileTable {
    /// An empty table; files below `private` belong to the plan alone.
    pub fn new(private: &str) -> Self {
        Self {
            private: if private.is_empty() {
                "\0".to_owned()
            } else {
                private.to_owned()
            },
            ..Self::default()
        }
    }

    /// Notes the files that the step with this number writes.
    ///
    /// # Errors
    /// Another step writes one of them too, or this step reads a file that no step writes.
    pub fn take(&mut self, step: &Step, number: usize) -> Result<(), Unsupported> {
        for &id in &step.writes {
            let file = &mut self.files[id.0 as usize];
            if file.writer.is_some() && !step.reads.contains(&id) {
                let path = file.path.clone();
                return Err(Unsupported::new("two commands write the same file", path));
            }
            file.writer = Some(number);
            if file.kind == FileKind::External {
                file.kind = FileKind::Output;
            }
        }
        let mut read = step.reads.iter().map(|id| &self.files[id.0 as usize]);
        match read.find(|file| file.kind == FileKind::Temp && file.writer.is_none()) {
            Some(file) => Err(Unsupported::new(
                "a command reads a file that no command writes",
                file.path.clone(),
            )),
            None => Ok(()),
        }
    }

    /// The id of `path`, new or known.
    pub fn intern(&mut self, path: &str) -> FileId {
        if let Some(&id) = self.by_path.get(path) {
            return id;
        }
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        let kind = if path.starts_with(&self.private) {
            FileKind::Temp
        } else {
            FileKind::External
        };
        self.files.push(PlanFile {
            path: path.to_owned(),
            kind,
            writer: None,
        });
        self.by_path.insert(path.to_owned(), id);
        id
    }

    /// Whether an earlier step writes `path`.
    pub fn is_written(&self, path: &str) -> bool {
        self.by_path
            .get(path)
            .is_some_and(|id| self.files[id.0 as usize].writer.is_some())
    }
}
