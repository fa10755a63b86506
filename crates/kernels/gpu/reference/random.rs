//! Data for the checks: numbers that look random, with the values that functions fail at among them.

use warpcc_kernels::dtype::{DType, Family};

use super::datum::{Datum, convert, read};
use super::special::ROOT;

/// Numbers that look random and are the same for one seed.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits (splitmix64).
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound.max(1)
    }

    /// A number from 0 up to 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Elements for a function: where it is only meant for some, these.
    pub fn elements(&mut self, name: &str, types: &[DType]) -> Vec<Datum> {
        let float = types.iter().all(|each| each.family() == Family::Float);
        if name == "gamma_implicit_grad" && float {
            let shape = (self.unit() * 12.0 - 6.0).exp2();
            let shape = convert(types[0], Datum::F(shape));
            let sample = shape.real() * (self.unit() * 4.0 - 2.0).exp();
            return vec![shape, convert(types[1], Datum::F(sample))];
        }
        if name == "gamma_implicit_grad" {
            let small = |value: u64, dtype| convert(dtype, Datum::I(i128::from(value)));
            return vec![
                small(1 + self.below(99), types[0]),
                small(self.below(100), types[1]),
            ];
        }
        let mut elements: Vec<Datum> = types.iter().map(|each| self.element(*each)).collect();
        // Where digamma is zero: hardly any number would come close.
        if name.contains("gamma") && float && self.below(4) == 0 {
            let root = ROOT.0 + self.unit() * (-60.0 * self.unit()).exp2();
            let last = types.len() - 1;
            elements[last] = convert(types[last], Datum::F(root));
        }
        if name.contains("copysign") {
            // Widening a NaN loses its sign on a GPU (PTX ISA, cvt), and nothing is promised of it.
            for (element, dtype) in elements.iter_mut().zip(types) {
                if element.real().is_nan() {
                    *element = convert(*dtype, Datum::F(-1.0));
                }
            }
        }
        elements
    }

    /// An element: special values often, and all magnitudes.
    pub fn element(&mut self, dtype: DType) -> Datum {
        const SPECIAL: [f64; 24] = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            2.0,
            -2.0,
            0.5,
            -0.5,
            3.0,
            -3.0,
            1e-7,
            -1e-7,
            20.0,
            -20.0,
            88.0,
            -88.0,
            700.0,
            -700.0,
            1e-40,
            1e30,
            -1e30,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        if dtype.family() != Family::Float {
            let value = match self.below(4) {
                0 => self.bits() as i128,
                1 => self.below(17) as i128 - 8,
                2 => self.below(200) as i128 - 100,
                _ => [
                    i128::from(i64::MIN),
                    i128::from(i64::MAX),
                    127,
                    128,
                    -1,
                    32768,
                ][self.below(6) as usize],
            };
            return convert(dtype, Datum::I(value));
        }
        let value = match self.below(8) {
            0 => SPECIAL[self.below(24) as usize],
            1 => self.unit() * 2.0 - 1.0,
            2 | 3 => self.unit() * 8.0 - 4.0,
            4 => self.unit() * 200.0 - 100.0,
            5 => (self.below(41) as f64) - 20.0,
            6 => (self.unit() * 160.0 - 80.0).exp2() * if self.below(2) == 0 { 1.0 } else { -1.0 },
            _ => {
                let bytes = self.bits().to_ne_bytes();
                return read(dtype, &bytes[..dtype.size() as usize]);
            }
        };
        convert(dtype, Datum::F(value))
    }
}
