//! The settings: where compiled kernels are stored, how many of them, and what the driver's own variables mean for that.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statfs};
use warpcc_cache::{DiskStore, OpenError, Options};

use crate::environment::Environment;
use crate::event::Observer;

/// The driver's default size of its cache, in bytes (Programming Guide, environment variables).
const DEFAULT_MAX: u64 = 1 << 30;
/// The largest size that the driver takes from `CUDA_CACHE_MAXSIZE`, in bytes.
const LARGEST_MAX: u64 = 4 << 30;
/// The default size of the cache in memory, in bytes.
const IN_MEMORY: u64 = 256 << 20;

/// The reason why there is no shared cache.
pub(crate) const NO_FOLDER: &str = "there is no folder to put results into";

/// A folder of compiled kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tier {
    /// The folder. The first image that is stored creates it.
    pub path: PathBuf,
    /// The most to keep, in bytes; 0 for no limit.
    pub max_size: u64,
    /// Whether nothing is written to it.
    pub readonly: bool,
}

impl Tier {
    pub(crate) fn open(&self) -> Result<DiskStore, OpenError> {
        let options = Options {
            max_size: self.max_size,
            readonly: self.readonly,
        };
        DiskStore::open(&self.path, options)
    }
}

/// How a [`crate::KernelCache`] behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    /// Folders, the nearest first. An image found in one is copied to those before it. If there are none, images are kept in
    /// memory only.
    pub tiers: Vec<Tier>,
    /// Packs of ready-made images, which are only read: files of `warpcc rtc warm --pack`, or folders like those of `tiers`.
    /// They are looked into after the folders.
    pub packs: Vec<PathBuf>,
    /// The most to keep in memory, in bytes of images.
    pub memory: u64,
    /// As `CUDA_FORCE_PTX_JIT`: ready-made machine code is ignored, and its PTX compiled.
    pub force_ptx_jit: bool,
    /// As `CUDA_DISABLE_PTX_JIT`: PTX is never compiled.
    pub disable_ptx_jit: bool,
    /// Is called after each request. Functions that are already loaded are not requested again, so they are not told.
    pub observer: Option<Observer>,
    /// Remarks for the user about unusual settings.
    pub remarks: Vec<String>,
}

impl Default for CacheSettings {
    /// The settings for memory only.
    fn default() -> Self {
        Self {
            tiers: Vec::new(),
            packs: Vec::new(),
            memory: IN_MEMORY,
            force_ptx_jit: false,
            disable_ptx_jit: false,
            observer: None,
            remarks: Vec::new(),
        }
    }
}

impl CacheSettings {
    /// The settings for `folder` and memory.
    pub fn in_folder(folder: &Path) -> Self {
        let tier = Tier {
            path: folder.to_path_buf(),
            max_size: DEFAULT_MAX,
            readonly: false,
        };
        Self {
            tiers: vec![tier],
            ..Self::default()
        }
    }

    /// Opens the first folder that may be written to: results from shared caches are stored there, and uploads are read from
    /// there.
    ///
    /// # Errors
    /// There is no such folder; the error is a text for the user.
    pub fn open_first_written(&self) -> Result<DiskStore, String> {
        let tier = self.tiers.iter().find(|tier| !tier.readonly);
        let store = tier.ok_or(NO_FOLDER)?.open();
        store.map_err(|error| error.to_string())
    }

    /// The settings in `environment`; docs/rtc.md has the table.
    pub fn from_environment(environment: &Environment) -> Self {
        let on = |names: [&str; 2]| names.iter().any(|name| environment.is_on(name));
        let mut settings = Self {
            force_ptx_jit: on(["CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT"]),
            disable_ptx_jit: on(["CUDA_DISABLE_PTX_JIT", "CUDA_DISABLE_JIT"]),
            packs: environment.own_paths(crate::environment::PACKS),
            ..Self::default()
        };
        settings.remarks.extend(unread_size(environment));
        let Some(max_size) = max_size(environment) else {
            return settings;
        };
        if environment.is_on("CUDA_CACHE_DISABLE") {
            return settings;
        }
        let folders = folders(environment);
        if folders.is_empty() {
            settings.remarks.push(
                "compiled kernels are cached for this process only, because no cache folder is known; set \
                 WARPCC_RTC_CACHE, XDG_CACHE_HOME or HOME"
                    .to_owned(),
            );
        }
        for path in folders {
            if !path.is_absolute() {
                settings.remarks.push(format!(
                    "{} is not used: a cache needs an absolute path",
                    path.display()
                ));
                continue;
            }
            let readonly = !writable(&path);
            settings.tiers.push(Tier {
                path,
                max_size,
                readonly,
            });
        }
        let far = |tier: &Tier| tier.readonly || is_on_a_network(&tier.path);
        if settings.tiers.first().is_some_and(far) {
            match local_folder(environment) {
                Ok(path) => settings.tiers.insert(
                    0,
                    Tier {
                        path,
                        max_size,
                        readonly: false,
                    },
                ),
                Err(remark) => settings.remarks.push(remark),
            }
        }
        settings
    }
}

/// The size limit of a folder; `None` if nothing is to be stored.
fn max_size(environment: &Environment) -> Option<u64> {
    if let Some(ours) = environment.number(crate::environment::MAX_SIZE) {
        return Some(ours);
    }
    match environment.number("CUDA_CACHE_MAXSIZE") {
        Some(0) => None,
        Some(bytes) => Some(bytes.min(LARGEST_MAX)),
        None => Some(DEFAULT_MAX),
    }
}

/// A remark if the size limit is no number.
fn unread_size(environment: &Environment) -> Option<String> {
    let name = crate::environment::MAX_SIZE;
    let text = environment.get(name)?.to_string_lossy();
    let is_read = environment.number(name).is_some();
    (!is_read).then(|| format!("{name}={text} is not used: it is not a number of bytes"))
}

fn folders(environment: &Environment) -> Vec<PathBuf> {
    if environment.get(crate::environment::CACHE).is_some() {
        return environment.own_paths(crate::environment::CACHE);
    }
    if let Some(drivers) = environment.path("CUDA_CACHE_PATH") {
        // The driver stores its files in the same folder, under names of one digit and `index`.
        return vec![drivers.join("warpcc-rtc")];
    }
    let ours = environment.own_path("WARPCC_DIR");
    let xdg = || {
        environment
            .path("XDG_CACHE_HOME")
            .filter(|path| path.is_absolute())
    };
    let home = || environment.path("HOME").map(|home| home.join(".cache"));
    let base = ours.or_else(|| xdg().or_else(home).map(|base| base.join("warpcc")));
    base.map(|base| base.join("rtc")).into_iter().collect()
}

/// The nearest existing parent of a path.
fn existing(path: &Path) -> &Path {
    path.ancestors()
        .find(|path| path.exists())
        .unwrap_or(Path::new("/"))
}

fn writable(path: &Path) -> bool {
    let existing = existing(path);
    existing.is_dir() && access(existing, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

fn is_on_a_network(path: &Path) -> bool {
    /// NFS, two of SMB, Ceph, Lustre, AFS, GPFS, BeeGFS, 9p and FUSE, by `f_type`; `crates/jit` names them.
    const FAR: [u32; 10] = [
        0x6969,
        0xff53_4d42,
        0xfe53_4d42,
        0x00c3_6400,
        0x0bd0_0bd0,
        0x5346_414f,
        0x4750_4653,
        0x1983_0326,
        0x0102_1997,
        0x6573_5546,
    ];
    // The low 32 bits count; some architectures give them with a sign.
    statfs(existing(path)).is_ok_and(|found| FAR.contains(&(found.f_type as u32)))
}

/// A folder of this user's on a local disk, which no other user can write to.
fn local_folder(environment: &Environment) -> Result<PathBuf, String> {
    let user = rustix::process::getuid().as_raw();
    let path = environment
        .own_path(crate::environment::LOCAL)
        .unwrap_or_else(|| PathBuf::from(format!("/var/tmp/warpcc-rtc-{user}")));
    let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
    let found = std::fs::symlink_metadata(&path);
    match found {
        Ok(found) if found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0 => Ok(path),
        Ok(_) => Err(format!(
            "{} is not used: it is not a folder that only this user can write to; set WARPCC_RTC_LOCAL",
            path.display()
        )),
        Err(error) => Err(format!(
            "{} cannot be made ({}); set WARPCC_RTC_LOCAL",
            path.display(),
            made.err().unwrap_or(error)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> CacheSettings {
        CacheSettings::from_environment(&Environment::from_variables(variables.iter().copied()))
    }

    #[test]
    fn the_drivers_variables_mean_what_they_mean_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_str().expect("text");
        let settings = read(&[("CUDA_CACHE_PATH", path), ("CUDA_CACHE_MAXSIZE", "1000")]);
        assert_eq!(settings.tiers[0].path, folder.path().join("warpcc-rtc"));
        assert_eq!(settings.tiers[0].max_size, 1000);
        let large = read(&[
            ("CUDA_CACHE_PATH", path),
            ("CUDA_CACHE_MAXSIZE", "99999999999"),
        ]);
        assert_eq!(large.tiers[0].max_size, 4 << 30);
        for off in [("CUDA_CACHE_DISABLE", "1"), ("CUDA_CACHE_MAXSIZE", "0")] {
            assert!(read(&[("CUDA_CACHE_PATH", path), off]).tiers.is_empty());
        }
        assert!(read(&[("CUDA_FORCE_JIT", "1")]).force_ptx_jit);
        assert!(read(&[("CUDA_DISABLE_PTX_JIT", "1")]).disable_ptx_jit);
        assert!(!read(&[("CUDA_FORCE_PTX_JIT", "0")]).force_ptx_jit);
    }

    #[test]
    fn our_own_go_before_the_drivers() {
        let folder = tempfile::tempdir().expect("a folder");
        let (near, far) = (folder.path().join("near"), folder.path().join("far"));
        let list = std::env::join_paths([&near, &far]).expect("a list");
        let settings = read(&[
            ("WARPCC_RTC_CACHE", list.to_str().expect("text")),
            ("CUDA_CACHE_PATH", "/elsewhere"),
            ("WARPCC_RTC_MAXSIZE", "5"),
            ("CUDA_CACHE_MAXSIZE", "1000"),
        ]);
        let paths: Vec<_> = settings.tiers.iter().map(|tier| &tier.path).collect();
        assert_eq!(paths, [&near, &far]);
        assert_eq!(settings.tiers[0].max_size, 5);
    }

    #[test]
    fn a_home_that_is_no_folder_gets_a_local_tier_before_it() {
        let local = tempfile::tempdir().expect("a folder");
        let local = local.path().join("local");
        let settings = read(&[
            ("HOME", "/proc/self"),
            ("WARPCC_RTC_LOCAL", local.to_str().expect("text")),
        ]);
        // /proc cannot be written to, by anybody.
        let tiers: Vec<_> = settings.tiers.iter().map(|tier| tier.readonly).collect();
        assert!(tiers == [false, true] || tiers == [false], "{settings:?}");
    }

    #[test]
    fn a_size_that_is_no_number_is_said() {
        let remarks = |size| read(&[("HOME", "/nowhere"), ("WARPCC_RTC_MAXSIZE", size)]).remarks;
        assert!(remarks("5G")[0].contains("WARPCC_RTC_MAXSIZE=5G is not used"));
        assert!(
            !remarks("5000")
                .iter()
                .any(|remark| remark.contains("MAXSIZE"))
        );
    }

    #[test]
    fn a_tilde_is_the_home_as_for_warpcc() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().to_str().expect("text");
        let of = |variables: &[(&str, &str)]| {
            let tiers = read(variables).tiers;
            let last = tiers.last().map(|tier| tier.path.clone());
            last.expect("a folder")
        };
        assert_eq!(
            of(&[("HOME", home), ("WARPCC_DIR", "~/c")]),
            folder.path().join("c/rtc")
        );
        assert_eq!(
            of(&[("HOME", home), ("WARPCC_RTC_CACHE", "/elsewhere:~/mine")]),
            folder.path().join("mine")
        );
        let packs = read(&[("HOME", home), ("WARPCC_RTC_PACKS", "~/a.pack:b.pack")]).packs;
        assert_eq!(packs, [folder.path().join("a.pack"), "b.pack".into()]);
        // No folder of that name is made here.
        let unknown = read(&[("WARPCC_RTC_CACHE", "~/mine")]);
        assert!(unknown.tiers.is_empty() && unknown.remarks.len() == 1);
    }

    #[test]
    fn without_a_home_nothing_is_kept_and_said_so() {
        let settings = read(&[]);
        assert!(settings.tiers.is_empty() && settings.remarks.len() == 1);
    }
}
