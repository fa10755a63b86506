//! Applies the settings of signatures to each shared cache: decides which is read-only, and which is untrusted.

use crate::settings::{Access, Layer};
use crate::signatures::Signatures;

/// Gives each layer what it does not set itself, and what follows from that: who cannot sign does not write where signatures
/// are demanded; and where one layer is signed to, a layer without signatures is untrusted.
pub fn apply(layers: &mut [Layer], defaults: &Signatures) {
    for layer in &mut *layers {
        layer.signatures = std::mem::take(&mut layer.signatures).or(defaults.clone());
    }
    let signs = |layer: &Layer| layer.signatures.signer().is_some();
    let any_signs = layers.iter().any(signs);
    for layer in layers {
        if !layer.signatures.are_demanded() {
            layer.untrusted |= any_signs;
        } else if layer.signatures.signing_key.is_none() {
            layer.access = Access::ReadOnly;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signatures::{SIGNING_KEY, SIGNING_KEY_FILE, TRUSTED_KEYS, from_variables};

    fn layers(text: &str, variables: &[(&str, &str)]) -> Vec<Layer> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let mut layers = crate::settings::layers(text, &variable).expect("layers");
        apply(&mut layers, &from_variables(&variable));
        layers
    }

    #[test]
    fn a_reader_of_signed_results_writes_nothing() {
        let found = layers("http://a", &[(TRUSTED_KEYS, "/keys")]);
        assert_eq!(found[0].access, Access::ReadOnly);
        assert!(found[0].signatures.are_demanded());
        let found = layers("http://a", &[(TRUSTED_KEYS, "/keys"), (SIGNING_KEY, "k")]);
        assert_eq!(found[0].access, Access::ReadWrite);
        assert!(found[0].signatures.signer().is_some());
        let found = layers("http://a", &[]);
        assert_eq!(found[0].access, Access::ReadWrite);
        assert!(!found[0].signatures.are_demanded() && !found[0].untrusted);
    }

    #[test]
    fn a_signer_trusts_no_cache_without_signatures() {
        let text = "redis://near|trusted-keys=none http://far|trusted-keys=/keys";
        let found = layers(text, &[(SIGNING_KEY_FILE, "/secret")]);
        assert!(found[0].untrusted && !found[0].signatures.are_demanded());
        assert!(found[0].signatures.signer().is_none());
        assert!(!found[1].untrusted && found[1].signatures.signer().is_some());
        let reader = layers(text, &[]);
        assert!(!reader[0].untrusted);
        let marked = layers("http://a|untrusted", &[]);
        assert!(marked[0].untrusted);
    }
}
