//! A server's capabilities, as far as they matter here.

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use re::compressor::Value as Compressor;
use re::digest_function::Value as Function;

/// gRPC's own limit for a message, which every server seen has, less room for what stands around the blobs.
const MOST_BATCHED: u64 = (4 << 20) - (104 << 10);

/// A server's capabilities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Bytes of blobs that fit into one message (0.1 MiB below gRPC's limit where the server sets none).
    pub batch_bytes: u64,
    /// Whether single blobs may travel as zstd.
    pub zstd: bool,
    /// Whether it executes actions.
    pub executes: bool,
    /// Whether results may be put there; a server that does not say so may still refuse.
    pub takes_results: bool,
    /// The API versions it speaks.
    pub versions: String,
}

impl Capabilities {
    /// For a server that does not tell.
    pub fn unknown() -> Self {
        Self {
            batch_bytes: MOST_BATCHED,
            zstd: false,
            executes: true,
            takes_results: true,
            versions: "unknown".to_owned(),
        }
    }

    /// From a server's answer.
    ///
    /// # Errors
    /// It knows no SHA-256.
    pub fn read(answer: &re::ServerCapabilities) -> Result<Self, String> {
        let sha256 = Function::Sha256 as i32;
        let versions = [&answer.low_api_version, &answer.high_api_version].map(|version| {
            version
                .as_ref()
                .map_or_else(|| "?".to_owned(), |v| format!("{}.{}", v.major, v.minor))
        });
        let execution = answer.execution_capabilities.as_ref();
        let mut found = Self {
            executes: execution.is_some_and(|e| {
                // 0 is the default of servers older than the field: SHA-256.
                e.exec_enabled
                    && (e.digest_function == sha256
                        || e.digest_functions.contains(&sha256)
                        || (e.digest_function == 0 && e.digest_functions.is_empty()))
            }),
            versions: versions.join(" to "),
            ..Self::unknown()
        };
        if let Some(cache) = &answer.cache_capabilities {
            if !cache.digest_functions.is_empty() && !cache.digest_functions.contains(&sha256) {
                return Err("it does not support SHA-256".to_owned());
            }
            let advertised = u64::try_from(cache.max_batch_total_size_bytes).unwrap_or(0);
            if advertised != 0 {
                found.batch_bytes = advertised.min(MOST_BATCHED);
            }
            found.zstd = cache
                .supported_compressors
                .contains(&(Compressor::Zstd as i32));
            found.takes_results = cache
                .action_cache_update_capabilities
                .as_ref()
                .is_none_or(|update| update.update_enabled);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(cache: re::CacheCapabilities) -> Result<Capabilities, String> {
        Capabilities::read(&re::ServerCapabilities {
            cache_capabilities: Some(cache),
            ..re::ServerCapabilities::default()
        })
    }

    #[test]
    fn batch_limits_of_the_servers_seen() {
        for (advertised, limit) in [
            (0, MOST_BATCHED),
            (65536, 65536),
            (4_193_280, MOST_BATCHED.min(4_193_280)),
            (-1, MOST_BATCHED),
        ] {
            let cache = re::CacheCapabilities {
                max_batch_total_size_bytes: advertised,
                ..re::CacheCapabilities::default()
            };
            assert_eq!(with(cache).map(|c| c.batch_bytes), Ok(limit));
        }
        const { assert!(MOST_BATCHED < 4 << 20) };
    }

    #[test]
    fn another_digest_is_refused() {
        let cache = re::CacheCapabilities {
            digest_functions: vec![Function::Blake3 as i32],
            ..re::CacheCapabilities::default()
        };
        assert!(with(cache).is_err());
    }
}
