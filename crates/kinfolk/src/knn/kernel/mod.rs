//! Integer tile products: <q_i, q_j> of 32 rows with 16 or 32 others, the inner loop of every search.
//!
//! Four kernels give the same integers; the best that the machine has is chosen once.
//!
//! | kernel | needs | products per instruction |
//! |---|---|---|
//! | AMX | amx-int8, granted by Linux, and what VNNI needs | 16,384 |
//! | VNNI | avx512f, avx512bw, avx512vnni | 64 |
//! | AVX2 | avx2 | 32 in three instructions |
//! | portable | nothing | as the compiler finds |

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;
#[cfg(target_arch = "x86_64")]
mod vnni;

use super::codes::Codes;
use std::sync::OnceLock;

/// Rows in a panel of the right-hand side: the 32-bit lanes of a 512-bit register.
pub(super) const PANEL: usize = 16;
/// Rows of the left-hand side that one tile product takes.
pub(super) const ROWS: usize = 32;
/// Columns are padded to a multiple of this: the bytes of a tile row.
pub(super) const STEP: usize = 64;
/// How many rows ahead one is fetched from memory where rows are met in no order.
#[cfg(target_arch = "x86_64")]
const PREFETCH: usize = 8;

/// The products of [`ROWS`] rows with one or two panels; row-major.
#[repr(align(64))]
pub(super) struct Tile(pub [[i32; 2 * PANEL]; ROWS]);

impl Tile {
    pub fn new() -> Self {
        Tile([[0; 2 * PANEL]; ROWS])
    }
}

/// The instructions a search multiplies with. They all give the same neighbours; the default is the fastest that
/// this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// AMX int8 tiles.
    #[cfg(target_arch = "x86_64")]
    Amx,
    /// AVX-512 VNNI.
    #[cfg(target_arch = "x86_64")]
    Vnni,
    /// AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Plain Rust.
    Portable,
}

impl Default for Kernel {
    fn default() -> Self {
        Kernel::best()
    }
}

impl Kernel {
    /// Every kernel this machine can run, fastest first.
    pub fn available() -> Vec<Kernel> {
        let mut kernels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
            let vnni = avx512 && is_x86_feature_detected!("avx512vnni");
            if vnni && crate::amx::multiplies_int8() {
                kernels.push(Kernel::Amx);
            }
            if vnni {
                kernels.push(Kernel::Vnni);
            }
            if is_x86_feature_detected!("avx2") {
                kernels.push(Kernel::Avx2);
            }
        }
        kernels.push(Kernel::Portable);
        kernels
    }

    /// The fastest kernel of this machine.
    fn best() -> Kernel {
        static BEST: OnceLock<Kernel> = OnceLock::new();
        *BEST.get_or_init(|| Kernel::available()[0])
    }

    /// Its name, for reports.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx => "amx-int8",
            #[cfg(target_arch = "x86_64")]
            Kernel::Vnni => "avx512-vnni",
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => "avx2",
            Kernel::Portable => "portable",
        }
    }

    /// The name that a file has, if it is that of a kernel, which this machine need not have.
    pub(in crate::knn) fn known_name(name: &str) -> Option<&'static str> {
        ["amx-int8", "avx512-vnni", "avx2", "portable"].into_iter().find(|known| *known == name)
    }

    /// Calls `each(first row, first panel, panels, tile)` for every tile of `left` x `right`. The tile holds
    /// `panels` (1 or 2) panels of products.
    pub(in crate::knn) fn for_each_tile(
        self,
        left: &Left,
        right: &[i8],
        mut each: impl FnMut(usize, usize, usize, &Tile),
    ) {
        let width = left.width;
        let panels = right.len() / (PANEL * width);
        let mut tile = Tile::new();
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this kernel is chosen only where it is available; nothing below configures tiles.
        let _configured = (self == Kernel::Amx).then(|| unsafe { crate::amx::Configured::new() });
        for panel in (0..panels).step_by(2) {
            let count = (panels - panel).min(2);
            let packed = &right[panel * PANEL * width..][..count * PANEL * width];
            for row in (0..left.rows()).step_by(ROWS) {
                let rows = &left.bytes[row * width..][..ROWS * width];
                let sums = &left.sums[row..][..ROWS];
                match self {
                    // SAFETY: `available` found the instructions, and for AMX `_configured` is alive; the slices
                    // hold ROWS rows and `count` panels of `width` bytes, `width` a multiple of STEP.
                    #[cfg(target_arch = "x86_64")]
                    Kernel::Amx => unsafe { amx::tile(rows, packed, width, &mut tile) },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    Kernel::Vnni => unsafe { vnni::tile(rows, sums, packed, width, &mut tile) },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    Kernel::Avx2 => unsafe { avx2::tile(rows, packed, width, &mut tile) },
                    Kernel::Portable => portable::tile(rows, packed, width, &mut tile),
                }
                #[cfg(not(target_arch = "x86_64"))]
                let _ = sums;
                each(row, panel, count, &tile);
            }
        }
    }

    /// Replaces `out` by the products of one row of codes with those of `codes` at `places`.
    pub(in crate::knn) fn products(self, row: &[i8], codes: &Codes, places: &[u32], out: &mut Vec<i32>) {
        out.clear();
        match self {
            // SAFETY: `available` found the instructions; a machine with AMX has them too.
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx | Kernel::Vnni => unsafe { vnni::products(row, codes, places, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::products(row, codes, places, out) },
            Kernel::Portable => portable::products(row, codes, places, out),
        }
    }
}

/// Rows laid out as the left-hand side: row-major, padded to a multiple of [`ROWS`] with rows that score NaN.
pub(super) struct Left {
    pub width: usize,
    pub bytes: Vec<i8>,
    pub scale: Vec<f32>,
    pub sums: Vec<i32>,
}

impl Left {
    pub fn new(width: usize) -> Self {
        Left { width, bytes: Vec::new(), scale: Vec::new(), sums: Vec::new() }
    }

    /// Replaces the rows by `codes[ids]`.
    pub fn gather(&mut self, codes: &Codes, ids: impl ExactSizeIterator<Item = usize>) {
        let rows = ids.len().next_multiple_of(ROWS);
        self.bytes.clear();
        self.scale.clear();
        self.sums.clear();
        for id in ids {
            self.bytes.extend_from_slice(codes.row(id));
            self.scale.push(codes.scale[id]);
            self.sums.push(codes.sum[id]);
        }
        self.bytes.resize(rows * self.width, 0);
        self.scale.resize(rows, f32::NAN);
        self.sums.resize(rows, 0);
    }

    /// Number of rows, padding included.
    pub fn rows(&self) -> usize {
        self.scale.len()
    }
}
