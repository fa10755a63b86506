//! Opens a cache as the keywords of Python's `KernelCache` say.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use warpcc_remote::SharedCache;
use warpcc_rtc::{
    CacheSettings, CompileRequest, Compiler, Environment, Error, KernelCache as Cache, Linker,
    Observer, Tier, Upstream,
};

/// The keywords that say where a cache is, and what it compiles with. Without one, the environment counts.
pub struct Keywords {
    pub folders: Option<Vec<PathBuf>>,
    pub max_size: Option<u64>,
    pub memory: Option<u64>,
    pub remote: Option<String>,
    pub nvrtc: Option<PathBuf>,
    pub nvjitlink: Option<PathBuf>,
    pub packs: Vec<PathBuf>,
}

/// An opened cache, and everything that is needed to make another one like it.
pub struct Opened {
    pub cache: Cache,
    pub compiler: Compiler,
    pub settings: CacheSettings,
    pub shared: Option<SharedCache>,
    /// What is odd about the settings.
    pub remarks: Vec<String>,
}

impl Keywords {
    /// The first folder that is not absolute.
    pub fn relative_folder(&self) -> Option<&Path> {
        let mut folders = self.folders.iter().flatten();
        folders.find(|f| !f.is_absolute()).map(PathBuf::as_path)
    }

    /// Opens the cache. Its requests begin as `common`, and `observer` is told of each.
    ///
    /// # Errors
    /// NVRTC or nvJitLink cannot be loaded.
    pub fn open(self, common: CompileRequest, observer: Observer) -> Result<Opened, Error> {
        let mut environment = Environment::of_process();
        if let Some(remote) = &self.remote {
            environment = environment.with("WARPCC_REMOTE", remote.clone());
        }
        let compiler = Compiler::find_with(self.nvrtc.as_deref(), &environment)?;
        let nvjitlink = self.nvjitlink.clone();
        let mut settings = self.settings(&environment);
        settings.observer = Some(observer);
        let get = |name: &str| environment.get(name).map(ToOwned::to_owned);
        let shared = SharedCache::configured(&get, || settings.open_first_written());
        let (shared, remarks) = match shared {
            Ok(shared) => (shared, Vec::new()),
            Err(why) => (None, vec![format!("the shared cache: {why}")]),
        };
        let upstream = upstream(shared.as_ref());
        let mut cache = Cache::with(compiler.clone(), settings.clone(), upstream);
        cache = cache.compiled_with(common);
        if nvjitlink.is_some() {
            let linker = Linker::find_with(nvjitlink.as_deref(), None, &environment)?;
            cache = cache.linked_with(linker);
        }
        Ok(Opened {
            cache,
            compiler,
            settings,
            shared,
            remarks,
        })
    }

    fn settings(self, environment: &Environment) -> CacheSettings {
        let mut settings = CacheSettings::from_environment(environment);
        if let Some(folders) = self.folders {
            let usual = CacheSettings::in_folder(Path::new("/")).tiers[0].max_size;
            let tier = |path| Tier {
                path,
                max_size: usual,
                readonly: false,
            };
            settings.tiers = folders.into_iter().map(tier).collect();
            settings.remarks.clear();
        }
        if let Some(max_size) = self.max_size {
            for tier in &mut settings.tiers {
                tier.max_size = max_size;
            }
        }
        settings.packs.extend(self.packs);
        settings.memory = self.memory.unwrap_or(settings.memory);
        settings
    }
}

/// The shared cache as `warpcc-rtc` asks it.
pub fn upstream(shared: Option<&SharedCache>) -> Option<Arc<dyn Upstream>> {
    shared.map(|shared| Arc::new(shared.clone()) as Arc<dyn Upstream>)
}
