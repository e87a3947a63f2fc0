//! Images with the identities they show: `.npz` with the arrays `image` (n x side x side, 0 to 255), `label` and
//! optionally `split` (0 to train on, 1 to test on), or a folder with a folder of PNG files for each identity.
//!
//! Files are reduced to grey squares of side 28, dark where there is nothing: an image whose edge is bright is inverted.

use kinfolk::laboratory::read_integers;
use kinfolk::{Error, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Side of the images that are read from files.
const SIDE: usize = 28;
/// The largest side of a file.
const LARGEST: u32 = 16_384;

/// Square grey images and their identities.
pub struct Images {
    pub side: usize,
    pixels: Vec<u8>,
    /// The identity of each.
    pub labels: Vec<u32>,
    /// The number of the identity as it was read, without rotations: what must not be divided between parts.
    pub groups: Vec<u32>,
    /// For each group, whether it is to be tested on, if the file says so.
    pub test: Option<Vec<bool>>,
}

impl Images {
    /// Reads a `.npz` file or a folder.
    pub fn read(path: &Path) -> Result<Self> {
        if path.is_dir() { Self::read_folder(path) } else { Self::read_npz(path) }
    }

    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn group_count(&self) -> usize {
        self.groups.iter().max().map_or(0, |&last| last as usize + 1)
    }

    /// An image.
    pub fn pixels(&self, row: u32) -> &[u8] {
        let size = self.side * self.side;
        &self.pixels[row as usize * size..][..size]
    }

    /// Some images, one after another.
    pub fn gather(&self, rows: &[u32]) -> Vec<u8> {
        rows.iter().flat_map(|&row| self.pixels(row)).copied().collect()
    }

    /// Adds all images turned by 90, 180 and 270 degrees, as other identities.
    pub fn rotated(self) -> Self {
        let (side, size) = (self.side, self.side * self.side);
        let identities = self.group_count() as u32;
        let mut pixels = self.pixels;
        let images = pixels.len();
        let (mut labels, mut groups) = (self.labels, self.groups);
        for turn in 1..4 {
            // The turn before, turned once more: the last column becomes the first row.
            let before = pixels[(turn - 1) * images..].to_vec();
            for image in before.chunks_exact(size) {
                let turned = (0..size).map(|at| image[at % side * side + side - 1 - at / side]);
                pixels.extend(turned);
            }
            let count = images / size;
            labels.extend_from_within(..count);
            let first = labels.len() - count;
            labels[first..].iter_mut().for_each(|label| *label += turn as u32 * identities);
            groups.extend_from_within(..count);
        }
        Self { side, pixels, labels, groups, test: self.test }
    }

    fn read_npz(path: &Path) -> Result<Self> {
        let required = |name: &str| {
            let missing = || Error::format(path, format!("an array named {name}"), "none");
            read_integers(path, name)?.ok_or_else(missing)
        };
        let (shape, values) = required("image")?;
        let place = format!("{} (array image)", path.display());
        let &[count, side, width] = &shape[..] else {
            return Err(Error::format(
                place,
                "images of shape (images, side, side)",
                format!("shape {shape:?}"),
            ));
        };
        if side != width || side < 8 || count == 0 {
            let expected = "at least one square image of side 8 or more";
            return Err(Error::format(place, expected, format!("shape {shape:?}")));
        }
        let byte = |(at, value): (usize, i64)| {
            u8::try_from(value).map_err(|_| Error::Row {
                place: place.clone(),
                row: at / (side * side),
                expected: "values from 0 to 255".to_owned(),
                found: value.to_string(),
            })
        };
        let pixels = values.into_iter().enumerate().map(byte).collect::<Result<Vec<u8>>>()?;
        let check = |name: &str, values: &[i64]| match values.len() == count {
            true => Ok(()),
            false => Err(Error::Length {
                place: format!("{} (array {name})", path.display()),
                what: "values (one per image)".to_owned(),
                expected: count,
                found: values.len(),
            }),
        };
        let (_, names) = required("label")?;
        check("label", &names)?;
        let known: BTreeMap<i64, u32> = {
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted.dedup();
            sorted.into_iter().zip(0..).collect()
        };
        let labels: Vec<u32> = names.iter().map(|name| known[name]).collect();
        let mut test = None;
        if let Some((_, split)) = read_integers(path, "split")? {
            check("split", &split)?;
            let test = test.insert(vec![false; known.len()]);
            labels.iter().zip(&split).for_each(|(&label, &split)| test[label as usize] = split != 0);
        }
        Ok(Self { side, pixels, groups: labels.clone(), labels, test })
    }

    fn read_folder(path: &Path) -> Result<Self> {
        let (mut pixels, mut labels) = (Vec::new(), Vec::new());
        let identities = sorted(path)?.into_iter().filter(|path| path.is_dir());
        for (identity, folder) in identities.enumerate() {
            let is_png = |file: &PathBuf| file.extension().is_some_and(|e| e.eq_ignore_ascii_case("png"));
            for file in sorted(&folder)?.into_iter().filter(is_png) {
                pixels.extend(read_png(&file)?);
                labels.push(identity as u32);
            }
        }
        if labels.is_empty() {
            return Err(Error::format(path, "folders of .png files, one folder for each identity", "none"));
        }
        Ok(Self { side: SIDE, pixels, groups: labels.clone(), labels, test: None })
    }
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let error = |e| Error::io(folder, e);
    let entries = std::fs::read_dir(folder).map_err(error)?;
    let mut paths = entries.map(|entry| Ok(entry.map_err(error)?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// A file as a grey square.
fn read_png(path: &Path) -> Result<Vec<u8>> {
    let unreadable = |e: png::DecodingError| Error::format(path, "a readable PNG file", e.to_string());
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut decoder = png::Decoder::new(BufReader::new(file));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(unreadable)?;
    let (width, height) = reader.info().size();
    if width > LARGEST || height > LARGEST {
        let expected = format!("an image of at most {LARGEST} x {LARGEST}");
        return Err(Error::format(path, expected, format!("{width} x {height}")));
    }
    let size = reader.output_buffer_size().unwrap_or(0);
    let mut bytes = vec![0; size];
    let frame = reader.next_frame(&mut bytes).map_err(unreadable)?;
    let channels = frame.color_type.samples();
    let row = frame.line_size;
    // Without the opacity, and colours by their mean.
    let colours = if channels > 2 { 3 } else { 1 };
    let grey = |x: usize, y: usize| {
        let pixel = &bytes[y * row + x * channels..][..colours];
        pixel.iter().map(|&value| f32::from(value)).sum::<f32>() / colours as f32
    };
    Ok(squared(width as usize, height as usize, grey))
}

/// An image reduced or enlarged to a square of [`SIDE`]: the mean of the pixels that each place covers.
fn squared(width: usize, height: usize, grey: impl Fn(usize, usize) -> f32) -> Vec<u8> {
    let span = |at: usize, length: usize| {
        let first = at * length / SIDE;
        first..((at + 1) * length / SIDE).max(first + 1).min(length.max(first + 1))
    };
    let mut values = Vec::with_capacity(SIDE * SIDE);
    for place in 0..SIDE * SIDE {
        let (ys, xs) = (span(place / SIDE, height), span(place % SIDE, width));
        let count = ys.len() * xs.len();
        let sum: f32 = ys.flat_map(|y| xs.clone().map(move |x| (x, y))).map(|(x, y)| grey(x, y)).sum();
        values.push((sum / count as f32).round() as u8);
    }
    let edge = |at: &usize| [at / SIDE, at % SIDE].iter().any(|&side| side == 0 || side == SIDE - 1);
    let edges: Vec<u32> = (0..SIDE * SIDE).filter(edge).map(|at| u32::from(values[at])).collect();
    if edges.iter().sum::<u32>() > 127 * edges.len() as u32 {
        values.iter_mut().for_each(|value| *value = 255 - *value);
    }
    values
}
