//! Kinds of commands, and the cost of each before anything was measured.

/// The kind of command of a claim, for the monitor and to learn costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
#[non_exhaustive]
pub enum CommandKind {
    /// Anything else.
    #[default]
    Other = 0,
    /// The host compiler with `-E`.
    Preprocess = 1,
    /// cudafe++.
    CudaFe = 2,
    /// cicc.
    Cicc = 3,
    /// ptxas.
    Ptxas = 4,
    /// The host compiler on what cudafe++ wrote.
    HostCompile = 5,
    /// The assembler.
    Assemble = 6,
    /// fatbinary.
    Fatbinary = 7,
    /// nvlink.
    Nvlink = 8,
    /// The host linker.
    HostLink = 9,
    /// A whole nvcc, with all that it starts.
    Nvcc = 10,
    /// NVRTC inside a process.
    Rtc = 11,
    /// nvcc's dry run.
    DryRun = 12,
}

impl CommandKind {
    /// All kinds, each at the place of its number.
    pub const ALL: [Self; 13] = [
        Self::Other,
        Self::Preprocess,
        Self::CudaFe,
        Self::Cicc,
        Self::Ptxas,
        Self::HostCompile,
        Self::Assemble,
        Self::Fatbinary,
        Self::Nvlink,
        Self::HostLink,
        Self::Nvcc,
        Self::Rtc,
        Self::DryRun,
    ];

    /// Whether it is useful to end the command when memory gets short. It is not for one that needs almost no memory
    /// and is over before the next check.
    pub fn makes_room(self) -> bool {
        self != Self::DryRun
    }

    /// The number on the board.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The kind with this number; a number of a later version is [`CommandKind::Other`].
    pub fn from_number(number: u8) -> Self {
        Self::ALL
            .get(usize::from(number))
            .copied()
            .unwrap_or_default()
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Preprocess => "preprocess",
            Self::CudaFe => "cudafe++",
            Self::Cicc => "cicc",
            Self::Ptxas => "ptxas",
            Self::HostCompile => "host compile",
            Self::Assemble => "assemble",
            Self::Fatbinary => "fatbinary",
            Self::Nvlink => "nvlink",
            Self::HostLink => "host link",
            Self::Nvcc => "nvcc",
            Self::Rtc => "nvrtc",
            Self::DryRun => "dry run",
        }
    }

    /// Milliseconds before anything is known: NVCC_FACTS' Thrust file.
    pub fn usual_millis(self) -> u64 {
        match self {
            Self::Cicc | Self::Rtc => 7400,
            Self::HostCompile => 4100,
            Self::CudaFe => 2400,
            Self::Ptxas => 2100,
            Self::Preprocess => 700,
            Self::Nvlink | Self::HostLink => 500,
            Self::Assemble => 200,
            Self::Fatbinary => 90,
            Self::Nvcc => 15_000,
            Self::Other => 1000,
            Self::DryRun => 30,
        }
    }

    /// Milliseconds before anything is known but the size of the input.
    ///
    /// ptxas takes about as long as its PTX is (1.35, 1.4, 1.45 and 2.2 ms a KiB for files of 0.3 to 8 MB of Thrust and
    /// llama.cpp, 2 shared cores), cudafe++ as the preprocessed text (0.4). cicc does not: 4 MB of
    /// text took it from 1.5 to 24 s.
    pub fn usual_millis_of(self, input_bytes: u64) -> u64 {
        let per_mib = match self {
            Self::Ptxas => 1200,
            Self::CudaFe => 300,
            Self::HostCompile => 500,
            _ => 0,
        };
        if per_mib == 0 || input_bytes == 0 {
            return self.usual_millis();
        }
        (input_bytes.saturating_mul(per_mib) >> 20).clamp(50, 10 * self.usual_millis())
    }

    /// Peak memory in KiB before anything is known.
    ///
    /// High enough for most files with many templates. If the command needs less, more can run as soon as it was
    /// measured once. If it needed more, the build could fail.
    pub fn usual_peak_kib(self) -> u64 {
        let mib = match self {
            Self::Cicc | Self::Rtc => 1200,
            Self::HostCompile => 900,
            Self::CudaFe => 600,
            Self::Ptxas => 500,
            Self::Preprocess => 150,
            Self::Nvlink | Self::HostLink => 400,
            Self::Assemble | Self::Fatbinary => 100,
            Self::Nvcc => 2000,
            Self::Other => 300,
            Self::DryRun => 50,
        };
        mib * 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_kinds_agree() {
        for (number, kind) in CommandKind::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(kind.number()), number);
            assert_eq!(CommandKind::from_number(kind.number()), kind);
        }
        assert_eq!(CommandKind::from_number(200), CommandKind::Other);
    }
}
