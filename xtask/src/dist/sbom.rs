//! The list of what is linked into the program, for scanners of vulnerabilities: CycloneDX 1.5.

use anyhow::Result;
use serde_json::{Value, json};

use super::metadata::{self, Package};

/// The list as JSON.
pub fn json(linked: &[Package]) -> Result<String> {
    let ours = linked.iter().find(|package| package.name == "warpcc");
    let mut main = ours.map(component).unwrap_or_default();
    main["type"] = json!("application");
    if let Some(commit) = metadata::commit() {
        main["properties"] = json!([{"name": "warpcc:commit", "value": commit}]);
    }
    let others = linked.iter().filter(|package| package.name != "warpcc");
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": main},
        "components": others.map(component).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}

fn component(package: &Package) -> Value {
    let (name, version) = (&package.name, &package.version);
    let place = format!("pkg:cargo/{name}@{version}");
    let mut component = json!({
        "type": "library",
        "bom-ref": place,
        "name": name,
        "version": version,
        "purl": place,
    });
    if let Some(licence) = &package.license {
        // Some older crates write a slash for OR.
        let expression = licence.replace(" / ", " OR ").replace('/', " OR ");
        component["licenses"] = json!([{"expression": expression}]);
    }
    if let Some(description) = &package.description {
        component["description"] = json!(description.trim());
    }
    component
}
