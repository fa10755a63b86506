//! A property of workers: what `executor_properties` lists.

/// What one tool's actions, or all, ask of their workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// The tool by its name in reports; all where there is none.
    pub tool: Option<String>,
    /// The platform property.
    pub name: String,
    /// Its value.
    pub value: String,
}
