//! Tables of releases: which toolkit or driver supports which architectures and PTX versions, and the numbers of
//! drivers.
//!
//! - `FIRST`: the table *PTX Release History* in NVIDIA's PTX ISA. PTX had 100 and 101 with a driver of CUDA 12.7, of which
//!   there was no toolkit: for these, clang's `MinVersionForOffloadArch`.
//! - `LAST`: clang's `MaxVersionForOffloadArch` for 2.x and 3.0; the release notes of CUDA 12.0 for the rest of Kepler; nvcc of
//!   13.0 lists nothing below 75, and no 101.
//! - `DRIVERS`: the table *CUDA Toolkit and Corresponding Driver Versions* in NVIDIA's release notes of the toolkit, up to 13.3
//!   (610.43.02); for 13.4, CUTLASS's release notes of 4.8.0dev (R615); for 13.5, NVIDIA's list of the driver's archives
//!   (redistrib_620.70.06.json of 2026-11-04), whose compatibility package is that of CUDA 13.5.
//!
//! What is not in a table is not known, and no advice is given for it.

use crate::select::DriverVersion;

/// The first toolkit that compiles for an architecture.
const FIRST: [(u32, (u16, u16)); 22] = [
    (50, (6, 0)),
    (52, (6, 5)),
    (53, (7, 0)),
    (60, (8, 0)),
    (61, (8, 0)),
    (62, (8, 0)),
    (70, (9, 0)),
    (72, (9, 1)),
    (75, (10, 0)),
    (80, (11, 0)),
    (86, (11, 1)),
    (87, (11, 4)),
    (88, (13, 0)),
    (89, (11, 8)),
    (90, (11, 8)),
    (100, (12, 8)),
    (101, (12, 8)),
    (103, (12, 9)),
    (107, (13, 4)),
    (110, (13, 0)),
    (120, (12, 8)),
    (121, (12, 9)),
];

/// The last toolkit that compiles for architectures up to this one: Fermi, the first and the later Kepler, Maxwell to Volta.
const LAST: [(u32, (u16, u16)); 4] = [(21, (8, 0)), (32, (10, 2)), (37, (11, 8)), (72, (12, 9))];
/// What is called 110 from CUDA 13.0 on.
const RENAMED: (u32, (u16, u16)) = (101, (12, 9));

/// The first driver of each CUDA version, by its number. Where two CUDA versions have one branch, the older is not listed.
const DRIVERS: [(u16, (u16, u16)); 20] = [
    (410, (10, 0)),
    (418, (10, 1)),
    (440, (10, 2)),
    (450, (11, 0)),
    (455, (11, 1)),
    (460, (11, 2)),
    (465, (11, 3)),
    (470, (11, 4)),
    (495, (11, 5)),
    (510, (11, 6)),
    (515, (11, 7)),
    (520, (11, 8)),
    (525, (12, 0)),
    (530, (12, 1)),
    (535, (12, 2)),
    (545, (12, 3)),
    (550, (12, 4)),
    (555, (12, 5)),
    (560, (12, 6)),
    (565, (12, 7)),
];
const NEWER_DRIVERS: [(u16, (u16, u16)); 8] = [
    (570, (12, 8)),
    (575, (12, 9)),
    (580, (13, 0)),
    (590, (13, 1)),
    (595, (13, 2)),
    (610, (13, 3)),
    (615, (13, 4)),
    (620, (13, 5)),
];

/// A driver above is of a version that is not in the table.
const NEWEST_DRIVER: u16 = 624;

/// The first toolkit that compiles for GPUs of this number.
pub fn first_toolkit(gpu: u32) -> Option<(u16, u16)> {
    let found = FIRST.iter().find(|(number, _)| *number == gpu);
    found.map(|(_, version)| *version)
}

/// The last toolkit that compiles for GPUs of this number; `None` where the newest still does, or it is not known.
pub fn last_toolkit(gpu: u32) -> Option<(u16, u16)> {
    let found = LAST.iter().find(|(newest, _)| gpu <= *newest);
    let found = found.or(Some(&RENAMED).filter(|(renamed, _)| gpu == *renamed));
    found.map(|(_, version)| *version)
}

fn drivers() -> impl DoubleEndedIterator<Item = &'static (u16, (u16, u16))> {
    DRIVERS.iter().chain(&NEWER_DRIVERS)
}

impl DriverVersion {
    /// The CUDA version of a driver by its own number: 12.8 of 570. `None` for one that is older or newer than all known.
    pub fn of_release(branch: u16) -> Option<Self> {
        if branch > NEWEST_DRIVER {
            return None;
        }
        let found = drivers().rev().find(|(first, _)| *first <= branch);
        found.map(|(_, (major, minor))| Self {
            major: *major,
            minor: *minor,
        })
    }

    /// The number of the first driver with this CUDA version: 570 of 12.8.
    pub fn first_release(self) -> Option<u16> {
        let found = drivers().find(|(_, version)| *version == (self.major, self.minor));
        found.map(|(branch, _)| *branch)
    }

    /// The first driver that compiles PTX of this ISA version.
    pub fn for_ptx(isa: (u16, u16)) -> Option<Self> {
        // No toolkit had more than ten releases of one major version.
        let all = (9..=99).flat_map(|major| (0..10).map(move |minor| Self { major, minor }));
        all.into_iter().find(|driver| driver.newest_ptx() >= isa)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_and_toolkits_find_each_other() {
        let driver = |major, minor| DriverVersion { major, minor };
        assert_eq!(DriverVersion::of_release(570), Some(driver(12, 8)));
        // A later one of a branch is of the same version.
        assert_eq!(DriverVersion::of_release(572), Some(driver(12, 8)));
        assert_eq!(DriverVersion::of_release(390), None);
        assert_eq!(DriverVersion::of_release(595), Some(driver(13, 2)));
        assert_eq!(DriverVersion::of_release(616), Some(driver(13, 4)));
        assert_eq!(DriverVersion::of_release(620), Some(driver(13, 5)));
        assert_eq!(DriverVersion::of_release(625), None);
        assert_eq!(driver(13, 5).first_release(), Some(620));
        assert_eq!(
            [30, 37, 72, 75, 101, 110].map(last_toolkit),
            [
                Some((10, 2)),
                Some((11, 8)),
                Some((12, 9)),
                None,
                Some((12, 9)),
                None
            ]
        );
        assert_eq!(driver(13, 0).first_release(), Some(580));
        assert_eq!(driver(99, 0).first_release(), None);
        for (isa, version) in [
            ((8, 7), (12, 8)),
            ((9, 0), (13, 0)),
            ((8, 5), (12, 5)),
            ((7, 8), (11, 8)),
        ] {
            let found = DriverVersion::for_ptx(isa).expect("a driver");
            assert_eq!((found.major, found.minor), version, "{isa:?}");
        }
        assert!(
            drivers()
                .zip(drivers().skip(1))
                .all(|(a, b)| a < b && a.1 < b.1)
        );
        assert_eq!(
            (first_toolkit(120), last_toolkit(120)),
            (Some((12, 8)), None)
        );
        assert_eq!(
            (first_toolkit(70), last_toolkit(70)),
            (Some((9, 0)), Some((12, 9)))
        );
    }
}
