//! A property of workers: what `executor_properties` lists.

/// A platform property that the actions of one tool, or of all tools, ask of their workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// The tool, by its name in reports; `None` for all tools.
    pub tool: Option<String>,
    /// The platform property.
    pub name: String,
    /// Its value.
    pub value: String,
}
